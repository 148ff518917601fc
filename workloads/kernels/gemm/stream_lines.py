"""Lines of tiles of a streaming product without off-chip memory that share at most one operand.

All lines do the same. One is followed. Where K is cut across lines, it is followed with those whose
tiles add up their sums with its own.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workloads.kernels.gemm.stream_plan import GridCut
from workloads.kernels.parts.line import Message, chain, sequential, tree
from workloads.kernels.parts.line_steps import LineTiles

_GATHERS = {"chain": chain, "tree": tree, "sequential": sequential}
_BUFFERS = 2
"""For sums that come to a tile in turn."""


@lru_cache(1 << 10)
def lines_of(
    rows: int, cut: GridCut, shared: str, method: str
) -> tuple[LineTiles, NDArray[np.int64]]:
    """The tiles of a cut of a grid, and from which of them blocks are multicast to each tree.

    Args:
        rows: Of the grid.
        cut: Cuts K along one side of the grid at most.
        shared: The operand that tiles share, ``a`` along rows or ``b`` along columns; or none.
        method: How partial sums come together (`parts.collectives`).
    """
    by_row, parts = shared == "a", cut.k_rows * cut.k_cols
    sharing = {"a": cut.n_cols, "b": cut.m_rows, "": 1}[shared]
    beside = (cut.k_cols if by_row else cut.k_rows) == 1  # lines of K's parts lie side by side
    number = np.arange(sharing * parts).reshape(parts, sharing)
    if not beside:
        number = np.arange(sharing * parts).reshape(sharing, parts).T
    # Senders of A lie on the diagonal; those of B come first on their lines.
    senders = np.arange(parts) * sharing // rows if by_row and beside else np.zeros(parts, int)
    whole = _whole(rows, cut, shared)
    of = np.full(number.size, -1)
    parent, away, behind = of.copy(), 0 * of, of.copy()
    children: list[list[int]] = [[] for _ in of]
    for place, root in enumerate(whole):
        for group in _gather(parts, root, method) if parts > 1 else ():
            for here, there in group:
                tile, to = number[here, place], number[there, place]
                parent[tile], away[tile] = to, abs(here - there)
                if method != "network" and len(children[to]) >= _BUFFERS:
                    behind[tile] = children[to][-_BUFFERS]
                children[to].append(tile)
    of[number] = np.arange(parts)[:, None]
    tiles = LineTiles(
        of,
        number[:, [0, -1]].copy(),
        1 if beside else parts,
        parent,
        away,
        np.cumsum([0, *map(len, children)]),
        np.array(sum(children, []), dtype=np.int64),
        behind,
    )
    return tiles, number[np.arange(parts), senders] if sharing > 1 else np.full(parts, -1)


def _whole(rows: int, cut: GridCut, shared: str) -> list[int]:
    """Which part of K has the whole sum, of each place that shares blocks."""
    if shared == "b" and cut.k_cols > 1:
        return [row * cut.k_cols // rows for row in range(cut.m_rows)]
    sharing = {"a": cut.n_cols, "b": cut.m_rows, "": 1}[shared]
    return [cut.k_rows // 2] * sharing


def _gather(length: int, root: int, method: str) -> list[list[Message]]:
    if method == "network":
        return sequential(length, root)
    return _GATHERS[method](length, root)
