"""Orders of a rectangle's tiles: how a logical ring of tiles lies on them.

Tile i of an order passes blocks on to tile i + 1, and the last one to the first. On one row of
four tiles::

    linear      0 1 2 3     one link a step, and three from the last back to the first
    interleave  0 2 3 1     out on even places, back on odd ones: two links at most

On two rows of two, tiles numbered row by row::

    ring        0 1 3 2     there on one row and back on the other: one link a step
    mesh        0 1 2 3     row by row, each row and their sequence interleaved

Sources: NpuSim (arXiv 2510.05632), section 4.1 and figure 4; the interleaved line is WaferLLM's.
"""

from collections.abc import Callable
from functools import lru_cache
from math import isqrt

from tlm.errors import InputError, choose
from tlm.interconnect.lines import hops

Tile = tuple[int, int]
Order = tuple[Tile, ...]
#: Who sends to whom: each tile sends and takes one message at most.
Moves = tuple[tuple[Tile, Tile], ...]


@lru_cache(64)  # programs ask again and again
def tile_order(placement: str, rows: int, cols: int) -> Order:
    """All tiles of a rectangle, each once, in the order in which a ring passes them.

    Raises:
        InputError: for an unknown placement, or a ring on a rectangle that has none.
    """
    choose("placement", placement, PLACEMENTS)
    return tuple(_ORDERS[placement](rows, cols))


def footprint(placement: str, tiles: int, chip_cols: int) -> tuple[int, int]:
    """Rows and columns that a placement gives a number of tiles on a chip of some columns.

    Lines take as few rows as they can; rings two; meshes the block nearest to a square.

    Raises:
        InputError: for an unknown placement, or a number that does not fill such a rectangle.
    """
    choose("placement", placement, PLACEMENTS)
    if placement == "mesh":
        rows = max(side for side in range(1, isqrt(tiles) + 1) if tiles % side == 0)
    elif placement == "ring" and tiles > 2:
        rows = 2
    else:
        rows = -(-tiles // chip_cols)
    if tiles % rows or tiles // rows > chip_cols:
        raise InputError(
            f"placement {placement}: found {tiles} tiles; allowed on {chip_cols} columns: "
            "rows as long as each other"
        )
    return rows, tiles // rows


def step_hops(order: Order) -> list[int]:
    """Links that each tile's blocks go over to the next tile."""
    return [hops(here, there) for here, there in zip(order, (*order[1:], order[0]), strict=True)]


def _by_index(rows: int, cols: int) -> list[Tile]:
    return [(row, col) for row in range(rows) for col in range(cols)]


def _interleaved(rows: int, cols: int) -> list[Tile]:
    """Out and back on the line that goes there on one row and back on the next one."""
    line = [
        (row, col if row % 2 == 0 else cols - 1 - col) for row in range(rows) for col in range(cols)
    ]
    return [line[place] for place in _out_and_back(rows * cols)]


def _ring(rows: int, cols: int) -> list[Tile]:
    if rows * cols <= 2:
        return _by_index(rows, cols)
    if min(rows, cols) == 1 or rows * cols % 2:
        raise InputError(
            f"placement ring: found {rows}x{cols} tiles; allowed: two rows and columns or more, "
            "an even number of one of them"
        )
    if rows % 2:
        return [(row, col) for col, row in _ring(cols, rows)]
    # Row by row through all columns but the first, which is the way back.
    there = [
        (row, col if row % 2 == 0 else cols - col) for row in range(rows) for col in range(1, cols)
    ]
    return [(0, 0), *there, *((row, 0) for row in range(rows - 1, 0, -1))]


def _mesh(rows: int, cols: int) -> list[Tile]:
    return [(row, col) for row in _out_and_back(rows) for col in _out_and_back(cols)]


def _out_and_back(size: int) -> list[int]:
    """Even places as they rise, then odd ones as they fall."""
    return [*range(0, size, 2), *range(size - 1 - size % 2, 0, -2)]


_ORDERS: dict[str, Callable[[int, int], list[Tile]]] = {
    "linear": _by_index,
    "interleave": _interleaved,
    "ring": _ring,
    "mesh": _mesh,
}
#: Names of the orders.
PLACEMENTS = tuple(_ORDERS)
