"""Where `lt` and `at` must agree to the cycle: programs without contention."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tlm.programs import TIMING, Along, program_of, run_mesh, tile
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Indices, Multicast, Operation, Program, Reduce, Roots, Send, Work
from tlm.tiles.timing import QueueTiming
from workloads.kernels.gemm.ring import Ring


@st.composite
def patterns(draw: st.DrawFn, rows: int, cols: int) -> Callable[..., Send]:
    """A send in which every tile has links, and a destination, of its own, whenever it starts.

    Along one axis: a ring (a link carries at most one of its edges), or a shift of every n-th tile
    by n.
    """
    by_row = draw(st.booleans())
    size = cols if by_row else rows
    if draw(st.booleans()):
        make = draw(st.sampled_from([Ring.natural, Ring.interleaved]))
        line, targets = range(size), make(size).neighbours(draw(st.sampled_from([1, -1])))
    else:
        stride = draw(st.integers(1, size))
        line = range(0, max(1, size - stride), stride)
        targets = np.minimum(np.array(line) + stride, size - 1)
        if draw(st.booleans()):
            line, targets = range(size - 1 - line[-1], size, stride), size - 1 - targets[::-1]
    across = range(0, rows if by_row else cols, draw(st.integers(1, 2)))
    stay: Indices = np.array(across)
    tiles = TileSet(across, line) if by_row else TileSet(line, across)
    to = (stay, targets) if by_row else (targets, stay)
    return lambda flits, **tokens: Send(tiles, *to, flits, **tokens)


def jitter(draw: st.DrawFn, rows: int, cols: int, most: int) -> np.ndarray:
    seed = draw(st.integers(0, 2**31 - 1))
    return np.random.default_rng(seed).integers(0, most + 1, (rows, cols))


sizes = st.integers(1, 8)
KINDS: list[Along | Literal["pattern", "single"]] = ["pattern", "single", "row", "column"]
ALONG: list[Along] = ["row", "column"]


@st.composite
def pipelines(draw: st.DrawFn) -> Program:
    """One pattern again and again: jittered work, bounded buffers, credits.

    Free of contention because each link and each port serves one source throughout.
    """
    rows, cols = draw(st.integers(1, 16)), draw(st.integers(1, 16))
    depth = draw(st.integers(1, 3))
    pattern = draw(patterns(rows, cols))
    sends = pattern(1)
    everywhere = TileSet(range(rows), range(cols))
    receivers = [TileSet.tile(int(row), int(col)) for row in sends.to_rows for col in sends.to_cols]
    operations: list[Operation] = []
    for _ in range(draw(st.integers(1, 5))):
        flits = draw(st.integers(1, 40))
        take_cycles = jitter(draw, rows, cols, 60)
        operations += [
            Work(Engine.VECTOR, everywhere, jitter(draw, rows, cols, 50)),
            Work(Engine.VECTOR, sends.tiles, 0, gives=("block",)),
            pattern(flits, takes=("block",), slots=("free",), gives=("gone",), arrivals=("come",)),
            Work(Engine.CONTROL, sends.tiles, 3, takes=("gone",)),
        ]
        for where in receivers:
            cycles = int(take_cycles[where.rows[0], where.cols[0]])
            operations.append(Work(Engine.MATRIX, where, cycles, takes=("come",), gives=("free",)))
    tokens = {"block": (0, 1), "gone": (0, 1), "free": (depth, depth), "come": (0, depth)}
    return program_of(rows, cols, operations, **tokens)


@st.composite
def spaced(draw: st.DrawFn) -> Program:
    """Any uncontended transfer after any other, each long after the one before it."""
    rows, cols = draw(sizes), draw(sizes)
    everywhere = TileSet(range(rows), range(cols))
    operations: list[Operation] = []
    spent = np.zeros((rows, cols), dtype=np.int64)
    for phase in range(1, draw(st.integers(1, 4)) + 1):
        until = 1000 * phase + jitter(draw, rows, cols, 30)
        operations.append(Work(Engine.CONTROL, everywhere, until - spent))
        spent = until
        flits = draw(st.integers(1, 40))
        kind = draw(st.sampled_from(KINDS))
        transfer: Send | Multicast
        if kind == "pattern":
            transfer = draw(patterns(rows, cols))(flits, arrivals=("come",))
        elif kind == "single":
            row, col = draw(st.integers(0, rows - 1)), draw(st.integers(0, cols - 1))
            to_row, to_col = draw(st.integers(0, rows - 1)), draw(st.integers(0, cols - 1))
            to = np.array([to_row]), np.array([to_col])
            transfer = Send(tile(col, row), *to, flits, arrivals=("come",))
        else:
            transfer = draw(multicasts(rows, cols, kind, flits))
        sources = transfer.tiles if isinstance(transfer, Send) else transfer.roots
        operations += [
            Work(Engine.CONTROL, sources, 0, gives=("go",)),
            replace(transfer, takes=("go",), gives=("gone",)),
            Work(Engine.VECTOR, sources, 1, takes=("gone",)),
        ]
    return program_of(rows, cols, operations, go=(0, 1), gone=(0, 1), come=(0, 4))


@st.composite
def multicasts(draw: st.DrawFn, rows: int, cols: int, along: Along, flits: int) -> Multicast:
    size, others = (cols, rows) if along == "row" else (rows, cols)
    root = draw(st.integers(0, size - 1))
    first = draw(st.integers(0, size - 1))
    segment = range(first, draw(st.integers(first, size - 1)) + 1, draw(st.integers(1, 3)))
    lines, at = range(0, others, draw(st.integers(1, 3))), range(root, root + 1)
    roots = TileSet(lines, at) if along == "row" else TileSet(at, lines)
    return Multicast(roots, along, segment, flits, arrivals=("come",))


@st.composite
def reductions(draw: st.DrawFn) -> Program:
    """Reductions of some lines to roots of their own, from contributors that come when they come.

    What waits for other operands has a buffer of its own, in nobody's way.
    """
    rows, cols, along = draw(sizes), draw(sizes), draw(st.sampled_from(ALONG))
    size, lines = (cols, rows) if along == "row" else (rows, cols)
    everywhere = TileSet(range(rows), range(cols))
    operations: list[Operation] = []
    for phase in range(1, draw(st.integers(1, 3)) + 1):
        first = draw(st.integers(0, size - 1))
        segment = range(first, draw(st.integers(first, size - 1)) + 1, draw(st.integers(1, 3)))
        chosen = range(0, lines, draw(st.integers(1, 3)))
        places = st.lists(st.integers(0, size - 1), min_size=len(chosen), max_size=len(chosen))
        roots = Roots(chosen, np.array(draw(places)))
        ready = jitter(draw, rows, cols, draw(st.sampled_from([0, 3, 80])))
        operations += [
            Work(Engine.VECTOR, everywhere, 1000 * phase + ready),
            Work(Engine.VECTOR, everywhere, 0, gives=(f"block.{phase}",)),
            Reduce(roots, along, segment, draw(st.integers(1, 20)), takes=(f"block.{phase}",)),
        ]
    return program_of(rows, cols, operations, **{f"block.{phase}": (0, 1) for phase in (1, 2, 3)})


@st.composite
def timings(draw: st.DrawFn) -> NocTiming:
    """Routers of one stage or of two, whose buffers keep up with a flit a cycle."""
    cycles = draw(st.integers(1, 2))
    depth = draw(st.integers(cycles + 1, 9))
    return NocTiming(cycles, cycles, depth, cycles, 8)


def assert_equal(program: Program, timing: NocTiming) -> None:
    lt, at = run_lt(program, timing), run_mesh(program, timing)
    assert lt.engine_end_cycle.tolist() == at.engine_end_cycle.tolist()
    assert lt.last_arrival_cycle.tolist() == at.last_arrival_cycle.tolist()
    assert lt.matrix_busy_cycles.tolist() == at.matrix_busy_cycles.tolist()


@settings(max_examples=60)
@given(pipelines())
def test_levels_agree_on_bounded_pipelines(program: Program) -> None:
    assert_equal(program, TIMING)


@settings(max_examples=80)
@given(spaced(), timings())
def test_levels_agree_on_transfers_far_apart(program: Program, timing: NocTiming) -> None:
    assert_equal(program, timing)


@settings(max_examples=80)
@given(reductions(), timings(), st.integers(0, 2))
def test_levels_agree_on_reductions(
    program: Program, timing: NocTiming, reduce_cycles: int
) -> None:
    assert_equal(program, replace(timing, reduce_cycles=reduce_cycles))


@pytest.mark.parametrize("places", [1, 2])
@pytest.mark.parametrize("flits", [1, 5, 8])
@pytest.mark.parametrize("root", [0, 2])
def test_levels_agree_on_units_of_few_results(places: int, flits: int, root: int) -> None:
    timing = NocTiming(2, 2, 8, 2, 8, reduce_cycles=3, unit_places=places, unit_return_cycles=1)
    goal = Reduce(Roots(range(1), np.array([root])), "row", range(4), flits, arrivals=("come",))
    assert_equal(program_of(1, 4, [goal], come=(0, 1)), timing)


def test_locked_channels_are_refused_at_lt() -> None:
    timing = replace(TIMING, channel="receiver")
    with pytest.raises(InputError, match="^channel: found receiver; allowed at level lt: none$"):
        run_lt(program_of(1, 2, []), timing)


@pytest.mark.parametrize("side", [16, pytest.param(64, marks=pytest.mark.slow)])
def test_levels_agree_on_a_large_grid(side: int) -> None:
    # Blocks go around the rows, worked on for longer at some tiles than at others.
    everywhere, stay = TileSet(range(side), range(side)), np.arange(side)
    cycles = np.random.default_rng(side).integers(20, 60, (side, side))
    step: list[Operation] = [
        Work(Engine.MATRIX, everywhere, cycles, takes=("there",), gives=("free", "done")),
        Send(
            everywhere,
            stay,
            Ring.interleaved(side).neighbours(1),
            16,
            takes=("done",),
            slots=("free",),
            arrivals=("there",),
        ),
    ]
    assert_equal(program_of(side, side, step * 4, there=(1, 2), free=(1, 2), done=(0, 1)), TIMING)


@settings(max_examples=40)
@given(pipelines(), st.integers(0, 2**31 - 1))
def test_later_work_makes_nothing_earlier(program: Program, seed: int) -> None:
    random = np.random.default_rng(seed)
    operations = [
        replace(operation, cycles=operation.cycles + int(random.integers(0, 40)))
        if isinstance(operation, Work)
        else operation
        for operation in program.build()
    ]
    slower = run_lt(replace(program, build=lambda: operations), TIMING)
    faster = run_lt(program, TIMING)
    assert (slower.engine_end_cycle >= faster.engine_end_cycle).all()
    assert (slower.last_arrival_cycle >= faster.last_arrival_cycle).all()


def test_levels_agree_on_every_segment_of_a_line() -> None:
    for root in range(5):
        for first in range(5):
            for last in range(first, 5):
                for flits in (1, 4, 5, 8, 13):
                    multicast = Multicast(tile(root), "row", range(first, last + 1), flits)
                    assert_equal(program_of(1, 5, [multicast]), TIMING)


@given(st.one_of(pipelines(), spaced(), reductions()))
@settings(max_examples=60, deadline=None)
def test_launches_beside_the_transfer_before_are_the_same(program: Program) -> None:
    # Of transfers that are shorter than a launch, the second one before has to leave first.
    queues = QueueTiming(launch_cycles=3, outstanding=2)
    lt = run_lt(program, TIMING, queues=queues)
    mesh = HandshakeMesh(program.rows, program.cols, TIMING)
    at = run_at(program, TIMING, mesh, queues=queues)
    np.testing.assert_array_equal(lt.engine_end_cycle, at.engine_end_cycle)
    np.testing.assert_array_equal(lt.last_arrival_cycle, at.last_arrival_cycle)


@pytest.mark.parametrize("shared", [False, True], ids=["apart", "shared"])
def test_short_transfers_behind_each_other_wait_for_their_launches(shared: bool) -> None:
    """Whether links are followed because others share them, or not."""
    lengths = [1, 1, 2, 1, 4, 1, 1, 1]
    sends: list[Operation] = []
    for flits in lengths:
        line = range(2) if shared else range(1)
        sends.append(Send(TileSet(range(1), line), np.array([0]), np.array(line) + 2, flits))
    program = program_of(1, 4, sends)
    queues = QueueTiming(launch_cycles=3, outstanding=2)
    lt = run_lt(program, TIMING, queues=queues)
    at = run_at(program, TIMING, HandshakeMesh(1, 4, TIMING), queues=queues)
    if not shared:  # else the level knows when a tail has left a source only about
        np.testing.assert_array_equal(lt.engine_end_cycle, at.engine_end_cycle)
    np.testing.assert_array_equal(lt.last_arrival_cycle, at.last_arrival_cycle)


def test_other_numbers_of_launches_are_refused() -> None:
    with pytest.raises(InputError, match="^outstanding: found 1; allowed at level lt: 2$"):
        run_lt(program_of(1, 1, []), TIMING, queues=QueueTiming(launch_cycles=3))
