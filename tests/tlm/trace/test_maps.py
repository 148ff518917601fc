"""Flits over each link, against ways walked one by one."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tlm.programs import program_of, send, tile
from tlm.interconnect.packets import TileSet
from tlm.program import Along, Multicast, Operation, Program, Reduce, Roots, Send
from tlm.trace import link_flits

Tile = tuple[int, int]
DIRECTIONS = {(-1, 0): "north", (0, 1): "east", (1, 0): "south", (0, -1): "west"}


def way(source: Tile, target: Tile, y_first: bool) -> list[tuple[str, Tile]]:
    """Directions and tiles of the links from a tile to another."""
    links, at = [], source
    while at != target:
        if at[1] != target[1] and not (y_first and at[0] != target[0]):
            step = (0, 1 if target[1] > at[1] else -1)
        else:
            step = (1 if target[0] > at[0] else -1, 0)
        links.append((DIRECTIONS[step], at))
        at = (at[0] + step[0], at[1] + step[1])
    return links


def walked(program: Program, y_first: bool) -> Counter[tuple[str, Tile]]:
    loads: Counter[tuple[str, Tile]] = Counter()
    for operation in program.operations():
        if isinstance(operation, Send):
            for i, row in enumerate(operation.tiles.rows):
                for j, col in enumerate(operation.tiles.cols):
                    target = (int(operation.to_rows[i]), int(operation.to_cols[j]))
                    for link in way((row, col), target, y_first):
                        loads[link] += operation.flits
        else:
            assert isinstance(operation, Multicast | Reduce)
            for root in operation.root_tiles:
                tree = set()
                for at in operation.segment:
                    end = (root[0], at) if operation.along == "row" else (at, root[1])
                    ends = (end, root) if isinstance(operation, Reduce) else (root, end)
                    tree |= set(way(*ends, y_first))
                for link in tree:
                    loads[link] += operation.flits
    return loads


@st.composite
def programs(draw: st.DrawFn) -> Program:
    rows, cols = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    operations: list[Operation] = []
    for _ in range(draw(st.integers(1, 5))):
        flits = draw(st.integers(1, 9))
        if draw(st.booleans()):
            tiles = TileSet(range(rows), range(cols))
            to_rows = np.array(draw(st.permutations(range(rows))))
            to_cols = np.array(draw(st.permutations(range(cols))))
            operations.append(Send(tiles, to_rows, to_cols, flits))
            continue
        along: Along = draw(st.sampled_from(["row", "column"]))
        lines, size = (rows, cols) if along == "row" else (cols, rows)
        places = draw(st.lists(st.integers(0, size - 1), min_size=lines, max_size=lines))
        first = draw(st.integers(0, size - 1))
        segment = range(first, draw(st.integers(first, size - 1)) + 1, draw(st.integers(1, 2)))
        make = draw(st.sampled_from([Multicast, Reduce]))
        operations.append(make(Roots(range(lines), np.array(places)), along, segment, flits))
    return program_of(rows, cols, operations)


@given(programs(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_link_flits_are_those_of_ways_walked_one_by_one(program: Program, y_first: bool) -> None:
    loads = walked(program, y_first)
    for direction, flits in link_flits(program, y_first=y_first).items():
        expected = [
            [loads[direction, (row, col)] for col in range(program.cols)]
            for row in range(program.rows)
        ]
        assert flits.tolist() == expected


def test_repeated_operations_add_up() -> None:
    program = program_of(1, 4, [send(0, 3, 5)] * 7 + [send(3, 1, 2)])
    flits = link_flits(program)
    assert flits["east"].tolist() == [[35, 35, 35, 0]]
    assert flits["west"].tolist() == [[0, 0, 2, 2]]


def test_a_tile_that_sends_to_itself_uses_no_link() -> None:
    flits = link_flits(program_of(1, 2, [send(0, 0, 5), Multicast(tile(1), "row", range(1, 2), 3)]))
    assert all((each == 0).all() for each in flits.values())
