"""Collectives in software between a root and a group: data, messages, cycles at each level."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.chips.parts import own_tile
from tlm.chips.profile import load_chip
from tlm.engines.at import run_at
from tlm.errors import InputError
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.lines import hops
from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Program, Send, Token
from tlm.program.functional import TileBlocks, run_functional
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import TileTiming
from tlm.trace import TransferLog
from wafertlm.noc.networks import project_network
from wafertlm.noc.run import MeshParameters
from wafertlm.noc.software import addition_cycles, software_cycles
from workloads.kernels.parts.broadcast import Broadcast
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines, Path
from workloads.kernels.parts.software import BLOCK, KINDS, SoftwareCollective

FLITS = (1, 2, 3, 5, 8, 13, 22, 40, 100)


def tile() -> TileTiming:
    own = own_tile(load_chip("rtl-2x2"))
    assert own is not None
    return own


@st.composite
def collectives(draw: st.DrawFn) -> SoftwareCollective:
    rows, cols = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    root = draw(st.integers(0, rows - 1)), draw(st.integers(0, cols - 1))
    r0, r1 = sorted((draw(st.integers(0, rows - 1)), draw(st.integers(0, rows - 1))))
    c0, c1 = sorted((draw(st.integers(0, cols - 1)), draw(st.integers(0, cols - 1))))
    group = TileSet(range(r0, r1 + 1), range(c0, c1 + 1))
    if list(group) == [root]:
        group = TileSet(range(rows), range(cols))
    kind = draw(st.sampled_from(KINDS))
    return SoftwareCollective(kind, rows, cols, root, group, draw(st.integers(1, 30)))


@settings(deadline=None)
@given(collectives())
def test_the_root_has_the_sum_or_the_group_the_block(collective: SoftwareCollective) -> None:
    program = collective.program()
    blocks = TileBlocks(program, seed=3)
    inside = collective.root in list(collective.group)
    if collective.reduces and not inside:
        blocks[BLOCK][collective.root] = 0
    before = blocks[BLOCK].copy()
    run_functional(program, blocks)
    if collective.reduces:
        parts = np.sum([before[at].astype(np.int64) for at in collective.group], axis=0)
        np.testing.assert_array_equal(
            np.asarray(blocks[BLOCK][collective.root]).astype(np.int32), parts.astype(np.int32)
        )
    else:
        for at in collective.group:
            np.testing.assert_array_equal(blocks[BLOCK][at], before[collective.root])


@given(collectives())
def test_messages_and_links_are_those_of_the_program(collective: SoftwareCollective) -> None:
    ways = [
        (way.tile, at)
        for operation in collective.program().operations()
        if isinstance(operation, Send)
        for way in operation.ways()
        for at in way.members
    ]
    assert len(ways) == collective.messages == len({collective.root, *collective.group}) - 1
    assert sum(hops(*way) for way in ways) * collective.flits == collective.flit_hops


@given(collectives())
def test_the_smallest_grid_has_the_same_messages(collective: SoftwareCollective) -> None:
    small = collective.cropped()
    assert (small.messages, small.flit_hops) == (collective.messages, collective.flit_hops)
    assert small.rows <= collective.rows and small.cols <= collective.cols
    assert [*small.program().operations()]  # which fit the grid


@pytest.mark.parametrize("kind", ["seq-reduce", "tree-reduce"])
@pytest.mark.parametrize("flits", [1, 16, 22])
def test_a_row_takes_the_cycles_of_a_kernels_reduction(kind: str, flits: int) -> None:
    """A kernel's begins without a launch, and ends with the last addition and the root's token."""
    timing, own, length, root = rtl_timing(), tile(), 7, 2
    row = TileSet(range(1), range(length))
    collective = SoftwareCollective(kind, 1, length, (0, root), row, flits)
    reduction = Reduction(
        Lines("row", range(1), length), root, collective.method, "sum", "part", "there", flits, 0
    )
    block = Buffer(1, 2 * flits, 32)
    kernel = Program(
        1, length, {"there": Token(initial=1)} | reduction.tokens(), reduction.reduce,
        {"part": block} | reduction.buffers(block),
    )  # fmt: skip
    seen, mesh = TransferLog(row), TiledMesh(1, length, timing, own)
    outcome = run_at(on_tiles(kernel, own), timing, mesh, seen, own.queues)
    network = project_network(MeshParameters(1, length, timing.fifo_depth))
    cycles = software_cycles(collective, "at", network)
    assert cycles == seen.arrival_cycle - 1 - own.queues.launch_cycles
    last = addition_cycles(collective) + own.queues.least_work_cycles
    # The root may be at an addition yet when the last message has come.
    assert outcome.cycles >= cycles + own.queues.launch_cycles + 1 + last
    if kind == "tree-reduce":
        assert outcome.cycles == cycles + own.queues.launch_cycles + 1 + last


@pytest.mark.rtl
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_in_verilog_take_the_cycles_of_the_model(kind: str) -> None:
    rng = random.Random(5)
    network = project_network(MeshParameters(4, 4, rtl_timing().fifo_depth))
    for flits in (1, 7, 32, 100):
        (r0, r1), (c0, c1) = (sorted(rng.sample(range(5), 2)) for _ in range(2))
        root, group = (rng.randrange(4), rng.randrange(4)), TileSet(range(r0, r1), range(c0, c1))
        if list(group) == [root]:
            group = TileSet(range(4), range(4))
        collective = SoftwareCollective(kind, 4, 4, root, group, flits)
        rtl, at = (software_cycles(collective, level, network) for level in ("rtl", "at"))
        assert rtl == at, collective


@pytest.mark.parametrize("kind", KINDS)
def test_the_closed_form_is_near_wherever_the_group_lies(kind: str) -> None:
    rng, errors = random.Random(7), []
    network = project_network(MeshParameters(16, 16, rtl_timing().fifo_depth))
    while len(errors) < 25:
        side = rng.choice([4, 8, 16])
        (r0, r1), (c0, c1) = (sorted(rng.sample(range(side + 1), 2)) for _ in range(2))
        root, group = (
            (rng.randrange(side), rng.randrange(side)),
            TileSet(range(r0, r1), range(c0, c1)),
        )
        if list(group) == [root]:
            continue
        collective = SoftwareCollective(kind, 16, 16, root, group, rng.choice(FLITS))
        at, perf = (software_cycles(collective, level, network) for level in ("at", "perf"))
        errors.append(abs(perf - at) / at)
    # Multicasts of lone messages are exact; links that are shared, and banks, are left out.
    assert max(errors) <= (0.0 if kind == "seq-multicast" else 0.04)
    assert np.mean(errors) <= 0.005


def test_a_root_whose_block_lies_where_it_is_wanted_sends_itself_none() -> None:
    lines = Lines("row", range(1), 5)

    def targets(method: str, target: str) -> list[int]:
        sent = Broadcast(lines, 2, method, 4, "block", target, (), "there").operations()
        return sorted(
            at[1]
            for operation in sent
            if isinstance(operation, Send)
            for way in operation.ways()
            for at in way.members
        )

    for method in ("tree", "sequential"):
        assert targets(method, "block") == [0, 1, 3, 4]
        assert targets(method, "other") == [0, 1, 2, 3, 4]


def test_a_path_has_no_tree_of_routers() -> None:
    path = Path.of([(0, 0), (1, 2), (0, 3)])
    assert path.hops(0, 1) == 3
    with pytest.raises(InputError, match="path of 3 tiles: found a tree of routers"):
        path.multicast(0, 4, source="block", target="block")


def test_impossible_collectives_are_refused() -> None:
    row = TileSet(range(1, 2), range(4))
    with pytest.raises(InputError, match="unknown collective 'reduce'; known: seq-mu"):
        SoftwareCollective("reduce", 4, 4, (0, 0), row, 1)
    with pytest.raises(InputError, match="--flits: found 0; allowed: 1 to 1048576"):
        SoftwareCollective("seq-reduce", 4, 4, (0, 0), row, 0)
    with pytest.raises(InputError, match="--group: holds no tile but the source"):
        SoftwareCollective("tree-reduce", 4, 4, (2, 2), TileSet.tile(2, 2), 1)
