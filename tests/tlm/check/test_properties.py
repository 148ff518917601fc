"""The four properties of PLMR, against figures that can be counted by hand or otherwise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tlm.programs import program_of, send, tile
from tlm.check import TileLimits, check_program
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Gemm, Multicast, Operation, Program, Reduce, Send, Work
from tlm.program.data import Buffer

SIZES = (2, 3, 5, 8, 13)


def pipeline(size: int) -> Program:
    """An all-reduce that passes sums from tile to tile up to the last one, which tells all."""
    operations: list[Operation] = [
        send(at, at + 1, 4, takes=("sum",) if at else (), arrivals=("sum",))
        for at in range(size - 1)
    ]
    operations.append(Multicast(tile(size - 1), "row", range(size - 1), 4, takes=("sum",)))
    return program_of(1, size, operations, sum=(0, 1))


@pytest.mark.parametrize("size", SIZES)
def test_a_pipeline_with_its_root_at_the_edge(size: int) -> None:
    """2 (N - 1) hops and N - 1 routing stages."""
    latency = check_program(pipeline(size)).latency
    assert (latency.chain_hops, latency.chain_stages) == (2 * (size - 1), size - 1)


def test_a_reduction_is_one_transfer_from_its_farthest_tile() -> None:
    operations: list[Operation] = [
        Reduce(tile(1), "row", range(6), 4, arrivals=("sum",)),
        Multicast(tile(1), "row", range(6), 4, takes=("sum",)),
    ]
    latency = check_program(program_of(1, 6, operations, sum=(0, 1))).latency
    assert (latency.chain_hops, latency.chain_stages, latency.transfers) == (8, 1, 2)


def test_a_credit_makes_a_chain_and_adds_no_hops() -> None:
    operations: list[Operation] = []
    for _ in range(3):
        operations.append(send(0, 2, 4, slots=("free",), arrivals=("block",)))
        operations.append(Work(Engine.MATRIX, tile(2), 1, takes=("block",), gives=("free",)))
    for slots, hops in ((1, 6), (2, 4), (3, 2)):
        program = program_of(1, 3, operations, free=(slots, slots), block=(0, slots))
        assert check_program(program).latency.chain_hops == hops


def paths_by_hand(program: Program) -> np.ndarray:
    """Routes as sets, walked tile by tile."""
    routes: set[tuple[tuple[int, int], tuple[int, int] | tuple[str, range]]] = set()
    for operation in program.operations():
        assert isinstance(operation, Send | Multicast)
        if isinstance(operation, Send):
            for i, row in enumerate(operation.tiles.rows):
                for j, col in enumerate(operation.tiles.cols):
                    target = (int(operation.to_rows[i]), int(operation.to_cols[j]))
                    if target != (row, col):
                        routes.add(((row, col), target))
        else:
            assert isinstance(operation.roots, TileSet)
            for row in operation.roots.rows:
                for col in operation.roots.cols:
                    routes.add(((row, col), (operation.along, operation.segment)))
    count = np.zeros((program.rows, program.cols), dtype=int)
    for (row, col), (first, second) in routes:
        if isinstance(first, int):
            assert isinstance(second, int)
            tiles = {(row, at) for at in range(min(col, second), max(col, second) + 1)}
            tiles |= {(at, second) for at in range(min(row, first), max(row, first) + 1)}
        else:
            assert isinstance(second, range)
            at = col if first == "row" else row
            reach = range(min(second[0], at), max(second[-1], at) + 1)
            tiles = {(row, k) if first == "row" else (k, col) for k in reach}
        for place in tiles:
            count[place] += 1
    return count


@st.composite
def transfers(draw: st.DrawFn) -> Program:
    rows, cols = draw(st.integers(1, 5)), draw(st.integers(2, 5))
    operations: list[Operation] = []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            to_rows = np.array(draw(st.permutations(range(rows))))
            to_cols = np.array(draw(st.permutations(range(cols))))
            tiles = TileSet(range(rows), range(cols))
            operations.append(Send(tiles, to_rows, to_cols, 4))
        else:
            first = draw(st.integers(0, cols - 2))
            roots = TileSet(range(rows), range((root := draw(st.integers(0, cols - 1))), root + 1))
            operations.append(Multicast(roots, "row", range(first, cols), 4))
    return program_of(rows, cols, operations)


@settings(max_examples=60, deadline=None)
@given(transfers())
def test_routing_paths_are_those_counted_by_hand(program: Program) -> None:
    expected = paths_by_hand(program)
    routing = check_program(program).routing
    assert (routing.most_paths, expected[routing.tile]) == (expected.max(), expected.max())
    assert not routing.at_least


def test_too_many_routing_paths() -> None:
    operations = [send(0, target, 4) for target in range(1, 8)]
    limits = TileLimits(routing_paths=6)
    assert check_program(program_of(1, 8, operations[:6]), limits).holds
    (found,) = check_program(program_of(1, 8, operations), limits).findings
    assert found.message == (
        "tile (0, 0): 7 distinct routes begin, pass or end here; a router holds 6"
    )


def test_a_source_of_very_many_destinations_gives_a_lower_bound() -> None:
    operations = [send(0, target, 4) for target in range(1, 80)]
    report = check_program(program_of(1, 80, operations), TileLimits(routing_paths=32))
    assert (report.routing.most_paths, report.routing.at_least) == (64, True)
    assert "at least 64 distinct routes" in report.findings[0].message


def test_an_over_full_tile() -> None:
    """Only one tile holds all three blocks; part of a block takes no room of its own."""
    buffers = {
        "a": Buffer(8, 8, 16),
        "b": Buffer(8, 8, 16),
        "c": Buffer(8, 8, 32),
        "part": Buffer(2, 8, 16, within="a"),
    }
    operations: list[Operation] = [
        Send(tile(0), np.array([0]), np.array([1]), 4, source="a", target="b"),
        Work(Engine.MATRIX, tile(1), 5, task=Gemm("a", "b", "c")),
        Send(tile(2), np.array([0]), np.array([0]), 4, source="part", target="part"),
    ]
    program = Program(1, 3, {}, lambda: iter(operations), buffers)
    assert check_program(program, TileLimits(tile_bytes=512)).holds
    (found,) = check_program(program, TileLimits(tile_bytes=511)).findings
    assert found.message == "tile (0, 1): buffers take 512 bytes; a tile has 511"


def test_idle_tiles_and_uneven_work() -> None:
    cycles = np.array([[10, 20, 30]])
    operations: list[Operation] = [Work(Engine.VECTOR, TileSet(range(1), range(3)), cycles)]
    parallelism = check_program(program_of(2, 3, operations)).parallelism
    assert (parallelism.busy_share, parallelism.balance) == (0.5, 10 / 30)
