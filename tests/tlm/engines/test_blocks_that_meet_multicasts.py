"""Blocks of off-chip memory beside multicasts at level `lt`: against `at`, and by themselves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tlm.offchip.test_loads import edge_of, move, run
from tests.tlm.programs import TIMING, program_of, tile
from tests.tlm.trace.test_loosely import Notes
from tlm.engines.lt import run_lt
from tlm.interconnect.packets import TileSet
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from tlm.program import Engine, Load, Multicast, Operation, Program, Store, Work
from tlm.program.operations import Along


def down(rows: int, root: int, flits: int, taken: str, given: str, col: int = 0) -> Multicast:
    """A multicast from a tile to all of its column."""
    at = TileSet(range(root, root + 1), range(col, col + 1))
    return Multicast(at, "column", range(rows), flits, takes=(taken,), arrivals=(given,))


def test_channels_that_keep_their_links_busy() -> None:
    edge = edge_of(4, 4)
    slow = ChannelTiming(latency_cycles=30, bytes_per_cycle=15, queue_depth=16)
    assert edge.fills_links
    assert not edge_of(4, 4, 2).fills_links
    assert not replace(edge, timing=slow).fills_links
    assert not replace(edge, channels=16, at_tiles=True).fills_links


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from([Load, Store]), st.integers(1, 60)), min_size=1, max_size=5),
    st.integers(1, 40),
    st.data(),
)
def test_a_tile_alone_is_equal_at_both_levels(
    rows: int, moved: list[tuple[type[Load] | type[Store], int]], flits: int, data: st.DataObject
) -> None:
    root = data.draw(st.integers(0, rows - 1))
    blocks = [move(kind, tile(0, root), length) for kind, length in moved]
    operations = [*blocks, down(rows, root, flits, "free", "come")]
    program = program_of(rows, 1, operations, free=(1, 1), come=(0, 1))
    edge = edge_of(rows, 1)
    at, lt = run(program, edge)[0], run_lt(program, TIMING, offchip=edge)
    assert lt.cycles == at.cycles
    assert lt.last_arrival_cycle.tolist() == at.last_arrival_cycle.tolist()


@pytest.mark.parametrize("root", range(4))
def test_a_multicast_and_a_block_that_comes_take_turns(root: int) -> None:
    # The second block comes to the port, and over the links, that the first one is sent on by.
    where, edge = tile(0, root), edge_of(4, 1)
    loads: list[Operation] = [Load(where, 128, arrivals=(name,)) for name in ("one", "other")]
    tokens = {"one": (0, 1), "other": (0, 1), "come": (0, 1)}
    program = program_of(4, 1, [*loads, down(4, root, 128, "one", "come")], **tokens)
    alone = run_lt(program_of(4, 1, loads, **tokens), TIMING, offchip=edge).cycles
    at, lt = run(program, edge)[0], run_lt(program, TIMING, offchip=edge)
    assert lt.cycles > alone + 100
    assert lt.last_arrival_cycle == pytest.approx(at.last_arrival_cycle, rel=0.04)


def test_who_waits_to_store_does_not_send() -> None:
    # The farthest tile has to let all others' blocks by, before its multicast.
    edge, tiles = edge_of(6, 1), TileSet(range(6), range(1))
    operations = [
        Store(tiles, 100, gives=("gone",), arrivals=("kept",)),
        down(6, 0, 8, "gone", "come"),
    ]
    program = program_of(6, 1, operations, gone=(0, 1), kept=(0, 1), come=(0, 1))
    at, lt = run(program, edge)[0], run_lt(program, TIMING, offchip=edge)
    left = [outcome.engine_end_cycle[Engine.TRANSFER, 0, 0] for outcome in (lt, at)]
    assert left[0] == pytest.approx(left[1], rel=0.05)
    assert left[0] > 400
    assert lt.cycles == pytest.approx(at.cycles, rel=0.05)


def streamed(rows: int, cols: int, flits: int, steps: int) -> Program:
    """Tiles of a diagonal load blocks, and send them on along their rows and columns."""
    everywhere, tokens = TileSet(range(rows), range(cols)), {}
    operations: list[Operation] = []
    for name in "ab":
        tokens |= {f"{name}.in": (0, 2), f"{name}.room": (2, 2)}
        tokens |= {f"{name}.there": (0, 2), f"{name}.free": (2, 2)}
    for _ in range(steps):
        for name, shift in (("a", 0), ("b", 1)):
            loads = [
                Load(
                    TileSet.tile(row, (row + shift) % cols),
                    flits,
                    takes=(f"{name}.room",),
                    arrivals=(f"{name}.in",),
                )
                for row in range(rows)
            ]
            operations += loads
        operations += [
            Multicast(
                TileSet(range(row, row + 1), range(row, row + 1)), "row", range(cols), flits,
                takes=("a.in",), slots=("a.free",), gives=("a.room",), arrivals=("a.there",),
            )
            for row in range(rows)
        ]  # fmt: skip
        operations += [
            replace(
                down(rows, row, flits, "b.in", "b.there", (row + 1) % cols),
                slots=("b.free",), gives=("b.room",),
            )
            for row in range(rows)
        ]  # fmt: skip
        taken, free = ("a.there", "b.there"), ("a.free", "b.free")
        operations.append(Work(Engine.MATRIX, everywhere, 40, takes=taken, gives=free))
    return program_of(rows, cols, operations, **tokens)


@pytest.mark.parametrize("flits", [8, 30, 64])
@pytest.mark.parametrize(("side", "part"), [(2, 0.15), (4, 0.04), (6, 0.03)])
def test_streams_are_near(side: int, part: float, flits: int) -> None:
    program, edge = streamed(side, side, flits, 6), edge_of(side, side)
    at, lt = run(program, edge)[0].cycles, run_lt(program, TIMING, offchip=edge).cycles
    assert lt == pytest.approx(at, rel=part)


def test_who_looks_on_changes_nothing() -> None:
    program, edge = streamed(4, 4, 30, 4), edge_of(4, 4)
    notes = Notes()
    watched = run_lt(program, TIMING, offchip=edge, recorder=notes)
    alone = run_lt(program, TIMING, offchip=edge, threads=2)
    assert watched.engine_end_cycle.tolist() == alone.engine_end_cycle.tolist()
    assert watched.last_arrival_cycle.tolist() == alone.last_arrival_cycle.tolist()


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 50), st.booleans(), st.integers(1, 40))
def test_links_of_a_column_carry_a_flit_a_cycle(
    rows: int, cols: int, flits: int, loads: bool, sent: int
) -> None:
    edge, tiles = edge_of(rows, cols), TileSet(range(rows), range(cols))
    kind = Load if loads else Store
    operations = [kind(tiles, flits, arrivals=("there",)), down(rows, 0, sent, "free", "come")]
    program = program_of(rows, cols, operations, there=(0, 1), free=(1, 1), come=(0, 1))
    outcome = run_lt(program, TIMING, offchip=edge)
    assert outcome.cycles > rows * flits
    assert (np.asarray(outcome.last_arrival_cycle) > flits).all()


def test_an_edge_that_does_not_fill_its_links_knows_no_turns() -> None:
    where = tile(0, 2)
    loads: list[Operation] = [Load(where, 64, arrivals=(name,)) for name in ("one", "other")]
    tokens = {"one": (0, 1), "other": (0, 1), "come": (0, 1)}
    slow = ChannelTiming(latency_cycles=30, bytes_per_cycle=8, queue_depth=16)
    edge = Edge(4, 1, 1, 8, 32, 1 << 28, slow)
    program = program_of(4, 1, [*loads, down(4, 2, 64, "one", "come")], **tokens)
    lt = run_lt(program, TIMING, offchip=edge)
    assert (
        lt.last_arrival_cycle[3, 0]
        == run_lt(
            program_of(4, 1, [loads[0], down(4, 2, 64, "one", "come")], **tokens),
            TIMING,
            offchip=edge,
        ).last_arrival_cycle[3, 0]
    )


@pytest.mark.parametrize(("along", "turns"), [("row", False), ("column", True)])
def test_only_multicasts_along_columns_share_links_with_blocks(
    monkeypatch: pytest.MonkeyPatch, along: Along, turns: bool
) -> None:
    edge, root = edge_of(4, 4), TileSet.tile(3, 3)
    tokens = {"one": (0, 1), "other": (0, 1), "come": (0, 1)}
    operations: list[Operation] = [Load(root, 64, arrivals=(name,)) for name in ("one", "other")]
    operations.append(Multicast(root, along, range(4), 64, takes=("one",), arrivals=("come",)))
    program = program_of(4, 4, operations, **tokens)
    cycles = run_lt(program, TIMING, offchip=edge).cycles
    monkeypatch.setattr(Edge, "fills_links", False)
    assert (cycles != run_lt(program, TIMING, offchip=edge).cycles) == turns
