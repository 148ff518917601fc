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
from tlm.engines.lt.contention import ordered
from tlm.engines.lt.memory import needed_bytes
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from tlm.program import Engine, Load, Multicast, Operation, Program, Reduce, Send, Store, Work
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


@pytest.mark.parametrize("along", ["row", "column"])
def test_multicasts_both_ways_take_turns_with_blocks(along: Along) -> None:
    edge, root = edge_of(4, 4), TileSet.tile(3, 3)
    tokens = {"one": (0, 1), "other": (0, 1), "come": (0, 1)}
    operations: list[Operation] = [Load(root, 64, arrivals=(name,)) for name in ("one", "other")]
    operations.append(Multicast(root, along, range(4), 64, takes=("one",), arrivals=("come",)))
    program = program_of(4, 4, operations, **tokens)
    at, lt = run(program, edge)[0], run_lt(program, TIMING, offchip=edge)
    assert lt.last_arrival_cycle == pytest.approx(at.last_arrival_cycle, rel=0.04)


def shared(rows: int, cols: int, flits: int) -> list[Operation]:
    """Tiles of the first column load blocks, which one multicast sends along all rows."""
    first = TileSet(range(rows), range(1))
    return [
        Load(first, flits, takes=("room",), arrivals=("in",)),
        Multicast(
            first, "row", range(cols), flits, takes=("in",), gives=("room",), arrivals=("a",)
        ),
    ]


@pytest.mark.parametrize("flits", [4, 31, 64])
def test_a_root_sends_its_block_on_while_others_wait_for_theirs(flits: int) -> None:
    edge = edge_of(6, 3)
    program = program_of(6, 3, shared(6, 3, flits) * 2, room=(1, 1), a=(0, 2), **{"in": (0, 1)})
    at, lt = run(program, edge)[0], run_lt(program, TIMING, offchip=edge)
    assert lt.cycles == at.cycles
    assert lt.last_arrival_cycle.tolist() == at.last_arrival_cycle.tolist()


def summed(rows: int, cols: int, flits: int, steps: int) -> Program:
    """The same again and again, then work, and sums of it that go off chip from the last column."""
    everywhere, last = (
        TileSet(range(rows), range(cols)),
        TileSet(range(rows), range(cols - 1, cols)),
    )
    tokens = {
        "room": (2, 2),
        "in": (0, 2),
        "a": (0, 2),
        "c": (0, 2),
        "sum": (0, 2),
        "kept": (0, 99),
    }
    tokens |= {"beside": (0, 99)}
    left = TileSet(range(rows), range(1, cols))
    operations: list[Operation] = []
    for _ in range(steps):
        operations += [
            *shared(rows, cols, flits),
            Work(Engine.MATRIX, everywhere, 40, takes=("a",), gives=("c",)),
            Reduce(last, "row", range(cols), flits // 2, takes=("c",), arrivals=("sum",)),
            Store(last, flits // 2, takes=("sum",), arrivals=("kept",)),
            Send(left, np.arange(rows), np.arange(cols - 1), 5, arrivals=("beside",)),
        ]
    return program_of(rows, cols, operations, **tokens)


@pytest.mark.parametrize("flits", [8, 30, 64])
@pytest.mark.parametrize("side", [2, 4, 6])
def test_reductions_and_sends_go_among_them(side: int, flits: int) -> None:
    program, edge = summed(side, side, flits, 5), edge_of(side, side)
    at, lt = run(program, edge)[0].cycles, run_lt(program, TIMING, offchip=edge).cycles
    assert lt == at


@st.composite
def mixed(draw: st.DrawFn) -> tuple[Program, Edge]:
    """Any blocks, multicasts, sums and sends along lines, each behind the last one at its tiles."""
    rows, cols = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    operations: list[Operation] = []
    named = {"takes": ("unit",), "arrivals": ("unit",)}
    for _ in range(draw(st.integers(1, 8))):
        flits, row = draw(st.integers(1, 50)), draw(st.integers(0, rows - 1))
        col = draw(st.integers(0, cols - 1))
        tiles = TileSet(range(row + 1), range(col, cols))
        along: Along = draw(st.sampled_from(["row", "column"]))
        kind = draw(st.sampled_from([Load, Store, Multicast, Reduce, Send, Work]))
        if kind is Load or kind is Store:
            operations.append(kind(tiles, flits, **named))
        elif kind is Send:
            shift, every = np.array([*range(1, rows), 0]), TileSet(range(rows), tiles.cols)
            operations.append(Send(every, shift, np.array(tiles.cols), flits, **named))
        elif kind is Work:
            operations.append(Work(Engine.MATRIX, tiles, flits, takes=("unit",), gives=("unit",)))
        elif along == "row":
            roots = TileSet(tiles.rows, range(col, col + 1))
            operations.append(kind(roots, along, range(cols), flits))
        else:
            roots = TileSet(range(row, row + 1), tiles.cols)
            operations.append(kind(roots, along, range(rows), flits))
    return program_of(rows, cols, operations, unit=(1, 1)), edge_of(rows, cols)


def test_any_of_them_are_close_at_both_levels() -> None:
    errors = []

    @settings(deadline=None, max_examples=100)
    @given(mixed())
    def close(drawn: tuple[Program, Edge]) -> None:
        program, edge = drawn
        at, lt = run(program, edge)[0].cycles, run_lt(program, TIMING, offchip=edge).cycles
        errors.append(abs(lt - at) / max(at, 1))
        assert run_lt(program, TIMING, offchip=edge).cycles == lt  # not planned again

    close()
    assert max(errors) < 0.35
    assert np.mean(errors) < 0.03
    assert np.mean([error == 0 for error in errors]) > 0.6


@pytest.mark.parametrize("limit", ["_MOST_ROWS", "_MOST_PLACES"])
def test_few_operations_at_a_time_are_near(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    program, edge = summed(4, 4, 30, 5), edge_of(4, 4)
    together = run_lt(program, TIMING, offchip=edge)
    monkeypatch.setattr(ordered, limit, 1)
    alone = run_lt(replace(program), TIMING, offchip=edge)
    assert alone.cycles == pytest.approx(together.cycles, rel=0.05)
    assert alone.matrix_busy_cycles.tolist() == together.matrix_busy_cycles.tolist()


def test_a_send_that_turns_ends_what_goes_together() -> None:
    turning = Send(TileSet.tile(0, 0), np.array([3]), np.array([2]), 9, takes=("c",))
    program, edge = summed(4, 4, 30, 1), edge_of(4, 4)
    operations = [*program.operations(), Work(Engine.VECTOR, TileSet.tile(0, 0), 7, gives=("c",))]
    tokens = {name: (token.initial, token.depth) for name, token in program.tokens.items()}
    longer = program_of(4, 4, [*operations, turning, *operations], **tokens)
    at, lt = run(longer, edge)[0].cycles, run_lt(longer, TIMING, offchip=edge).cycles
    assert lt == pytest.approx(at, rel=0.02)


def test_a_graph_that_does_not_fit_is_refused() -> None:
    program, edge = summed(8, 8, 30, 20), edge_of(8, 8)
    message = "^8 x 8 tiles whose blocks share links at level lt: takes "
    with pytest.raises(InputError, match=message):
        run_lt(program, TIMING, offchip=edge, memory_bytes=needed_bytes(program))
    run_lt(program, TIMING, offchip=edge, memory_bytes=needed_bytes(program) + 16 * 2**20)
