"""Messages from each of some tiles to one of its own: as few sends as name them all, and links."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program import Indices
from workloads.kernels.parts.line import even_runs
from workloads.machine.order import Moves, Tile

#: Who sends, and the rows and columns of the takers, as a send of a program has them.
Sent = tuple[TileSet, Indices, Indices]
#: A link, by the tiles whose routers it joins.
Link = tuple[Tile, Tile]


@lru_cache(256)  # loops send the same way again and again
def sends_of(moves: Moves) -> list[Sent]:
    """Sources, and rows and columns of their takers, of as few sends as name them all."""
    by_rows: dict[tuple[int, int], dict[int, int]] = {}
    for (row, col), (to_row, to_col) in moves:
        by_rows.setdefault((row, to_row), {})[col] = to_col
    alike: dict[tuple[range, tuple[int, ...]], dict[int, int]] = {}
    for (row, to_row), to_cols in sorted(by_rows.items()):
        for cols in even_runs(sorted(to_cols)):
            key = cols, tuple(to_cols[col] for col in cols)
            alike.setdefault(key, {})[row] = to_row
    return [
        (TileSet(rows, cols), np.array([to_rows[row] for row in rows]), np.array(takers))
        for (cols, takers), to_rows in alike.items()
        for rows in even_runs(sorted(to_rows))
    ]


def link_flits(sent: Iterable[tuple[Moves, int]]) -> Counter[Link]:
    """Flits over each link that carries any, of messages of so many flits each."""
    loads: Counter[Link] = Counter()
    for moves, flits in sent:
        for tile, taker in moves:
            for link in pairwise(way(tile, taker)):
                loads[link] += flits
    return loads


def way(tile: Tile, taker: Tile) -> Iterator[Tile]:
    """The tiles whose routers a message passes; packets go along rows first."""
    (row, col), (to_row, to_col) = tile, taker
    east, south = (1 if to_col > col else -1), (1 if to_row > row else -1)
    yield from ((row, place) for place in range(col, to_col, east))
    yield from ((place, to_col) for place in range(row, to_row, south))
    yield taker
