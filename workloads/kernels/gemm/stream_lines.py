"""Lines of tiles of a streaming product without off-chip memory that share at most one operand.

All lines do the same. One is followed, step by step. Where K is cut across lines, it is followed
with those whose tiles add up their sums with its own.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm.stream_plan import GridCut, StreamPlan
from workloads.kernels.gemm.stream_steps import Numbers, Steps
from workloads.kernels.parts.line import Message, chain, sequential, tree
from workloads.kernels.parts.line_state import LineSteps, LineTiles
from workloads.kernels.parts.line_steps import line_cycles

_GATHERS = {"chain": chain, "tree": tree, "sequential": sequential}
_BUFFERS = 2
"""For sums that come to a tile in turn."""


def beside_own_blocks(
    problem: StreamPlan, steps: Steps, timing: NocTiming, cycles: Numbers, rivals: Numbers | None
) -> Numbers:
    """``cycles``, but where tiles share at most one operand, and send themselves the other.

    Args:
        problem: The problem.
        steps: Of its candidates.
        timing: Of the network.
        cycles: Of each candidate where blocks meet no others.
        rivals: See `stream_closed_form.candidate_cycles`.
    """
    lines = _lines(steps)
    found = np.array(cycles, dtype=float)
    followed = np.flatnonzero(lines.followed)
    if rivals is None:
        for each in followed.tolist():
            found[each] = _line_cycles(problem, steps, timing, lines, each)
        return found
    best = np.full(int(rivals.max()) + 1, np.inf)
    np.minimum.at(best, rivals, np.where(lines.followed, np.inf, found))
    for each in followed[np.argsort(lines.least[followed], kind="stable")].tolist():
        behind = lines.least[each] > best[rivals[each]]
        found[each] = np.inf if behind else _line_cycles(problem, steps, timing, lines, each)
        best[rivals[each]] = min(best[rivals[each]], found[each])
    return found


class _Lines(NamedTuple):
    """What tiles of each candidate send, where they share at most one operand.

    Attributes:
        followed: Whether blocks that tiles send themselves and others meet there.
        shared: Which operand tiles share: A (1), B (2) or none (0).
        sent: Flits of its blocks.
        own: Flits of what a tile sends itself in a step.
        least: Cycles that a candidate takes at least.
    """

    followed: NDArray[np.bool_]
    shared: NDArray[np.int64]
    sent: NDArray[np.int64]
    own: NDArray[np.int64]
    least: NDArray[np.float64]


def _lines(steps: Steps) -> _Lines:
    (a, b), parts = (steps.a, steps.b), np.asarray(steps.cut.parts[2])
    a_shared, b_shared = np.broadcast_arrays(a.shared, b.shared)
    shared = np.where(a_shared, 1, np.where(b_shared, 2, 0))
    own = np.where(a_shared, 0, a.flits) + np.where(b_shared, 0, b.flits)
    sent = np.where(a_shared, a.flits, np.where(b_shared, b.flits, 0))
    meet = (shared > 0) & (not b.there) | (parts > 1)
    come, summed = own + sent, np.where(parts > 1, steps.c_flits, 0)
    # The first blocks come, then products and blocks side by side, and the last sum is behind them.
    least = come + (steps.count - 1) * np.maximum(steps.product, come) + steps.product
    least += summed + np.where(parts > 1, steps.combine, 0)
    least = np.maximum(least, steps.count * (come + summed / steps.depth))  # through a port
    return _Lines(meet & ~(a_shared & b_shared), shared, sent, own, least)


def _line_cycles(
    problem: StreamPlan, steps: Steps, timing: NocTiming, lines: _Lines, each: int
) -> int:
    """Cycles of a candidate, step by step on a line of tiles."""
    cut = GridCut(*(int(column[each]) for column in steps.cut[:6]))
    shared = ("", "a", "b")[int(lines.shared[each])]
    line = LineSteps(
        int(lines.sent[each]),
        int(lines.own[each]),
        own_first=True,
        buffers=2,
        product=int(steps.product[each]),
        depth=int(steps.depth[each]) if cut.parts[2] > 1 else 0,
        summed=int(steps.c_flits[each]),
        combine=int(steps.combine[each]),
        in_network=problem.method == "network",
    )
    count = int(steps.count[each])
    return _followed(problem.place.rows, cut, shared, problem.method, line, count, timing)


@lru_cache(1 << 15)
def _followed(
    rows: int, cut: GridCut, shared: str, method: str, line: LineSteps, count: int,
    timing: NocTiming,
) -> int:  # fmt: skip
    """Cycles of so many steps; problems that differ in M alone share many."""
    tiles, roots = _tiles(rows, cut, shared, method)
    return line_cycles(line, tiles, np.tile(roots, (count, 1)), timing)


@lru_cache(1 << 10)
def _tiles(
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
