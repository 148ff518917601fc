"""What goes on in a tile at the same time, word by word: the cycles of the Verilog."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.tiles.descriptors import Descriptor, Job, Transfer, TransferKind
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine, TileRun
from cosim.tiles.model import TileModel
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.packets import TileSet
from tlm.program.operations import Engine
from tlm.tiles.banked import Rows
from tlm.tiles.jobs import MatrixJob, VectorJob
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.timing import rtl_tile

pytestmark = pytest.mark.rtl

Queues = dict[tuple[int, Engine], list[Job]]
_ENDS = {
    EventKind.MATRIX: Engine.MATRIX,
    EventKind.VECTOR: Engine.VECTOR,
    EventKind.INJECTED: Engine.TRANSFER,
}
places = st.integers(0, 15)
sizes = st.integers(1, 12)


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(TileModel(2, 2)) as machine:
        yield machine


@st.composite
def products(draw: st.DrawFn) -> MatrixJob:
    length, panels = draw(st.integers(1, 20)), draw(st.integers(1, 3))
    return MatrixJob(
        length=length, a=draw(places), b=1000 + draw(places), c=2000 + draw(places),
        c_row=2 * panels, output_stationary=draw(st.booleans()), accumulate=draw(st.booleans()),
        panels_m=1, panels_n=panels, b_panel=20,
    )  # fmt: skip


@st.composite
def passes(draw: st.DrawFn) -> VectorJob:
    words, rows, operation = draw(sizes), draw(sizes), draw(st.sampled_from(["add", "row-sum"]))
    out = 1 if operation == "row-sum" else words
    return VectorJob(
        operation, words, rows, draw(places), words, 2500 + draw(places), out, out,
        b=500 + draw(places), b_row=words,
    )  # fmt: skip


@st.composite
def transfers(draw: st.DrawFn, to: int) -> Transfer:
    return Transfer(
        TransferKind.UNICAST, draw(st.integers(1, 20)), draw(places), 3000 + draw(places), rows=2,
        source_row=draw(st.integers(20, 30)), target_row=draw(st.integers(20, 30)), col=to,
        tokens=(9,),
    )  # fmt: skip


@st.composite
def queues(draw: st.DrawFn) -> Queues:
    """Tile 0 computes and sends, while tile 1 sends to it."""
    return {
        (0, Engine.MATRIX): draw(st.lists(products(), max_size=3)),
        (0, Engine.VECTOR): draw(st.lists(passes(), max_size=3)),
        (0, Engine.TRANSFER): draw(st.lists(transfers(1), max_size=3)),
        (1, Engine.TRANSFER): draw(st.lists(transfers(0), max_size=3)),
    }


def measured(machine: TileMachine, queues: Queues) -> TileRun:
    images = {tile: TileImage() for tile in (0, 1)}
    for (tile, engine), jobs in queues.items():
        images[tile].queues[engine] = [Descriptor(job) for job in jobs]
    return machine.run(images)


def modelled(run: TileRun, queues: Queues, mesh: TiledMesh) -> list[Event]:
    """What ends and arrives when, if all starts when it did in the Verilog."""
    found: list[Event] = []
    for span in sorted(run.spans, key=lambda span: span.start_cycle):
        found += events(mesh, span.start_cycle + 1)
        job = queues[span.tile, span.engine][span.number]
        if isinstance(job, Transfer):
            source = Rows(job.source, job.rows, job.words, job.source_row)
            target = Rows(job.target, job.rows, job.words, job.target_row)
            mesh.begin_reading(span.start_cycle, span.tile, source, target)
            goal = TileSet.tile(job.row, job.col)
            mesh.inject(span.start_cycle, span.tile, goal, job.rows * job.words)
        else:
            assert isinstance(job, MatrixJob | VectorJob)
            mesh.begin(span.start_cycle, span.tile, job)
    return [*found, *events(mesh, 10**6)]


def events(mesh: TiledMesh, until: int) -> Iterator[Event]:
    while happened := mesh.advance(until):
        yield from happened


def of(found: list[Event], kind: EventKind) -> list[tuple[int, int]]:
    return sorted((event.node, event.cycle) for event in found if event.kind is kind)


@given(queues=queues())
@settings(max_examples=150, deadline=None)
def test_engines_and_interfaces_that_meet_at_banks(machine: TileMachine, queues: Queues) -> None:
    run = measured(machine, queues)
    tile = rtl_tile(machine.model.array_size, machine.model.banks)
    found = modelled(run, queues, TiledMesh(2, 2, rtl_timing(), tile))
    for kind, engine in _ENDS.items():
        ends = sorted((span.tile, span.end_cycle) for span in run.spans if span.engine is engine)
        assert of(found, kind) == ends
    assert of(found, EventKind.EJECTED) == sorted(run.arrivals)
    # The next transfer starts, at the earliest, in the cycle in which the last word is read.
    read = of(found, EventKind.READ)
    starts = sorted((s.tile, s.start_cycle) for s in run.spans if s.engine is Engine.TRANSFER)
    for (_, last_word), ((tile, _), (other, start)) in zip(read, pairwise(starts), strict=False):
        assert tile != other or last_word < start
