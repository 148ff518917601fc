"""Alignment and steps of compute-shift products as a performance model: message by message.

A row that is aligned shifts its blocks while others, and tiles of its own, still align. These
messages meet on links and at ports, and a product waits for the blocks that they delay. On natural
rings a block that crosses the whole line waits for many. So all of them are a graph, and go in
order of time (`parts.shared_links`), as far as that costs little.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine
from workloads.kernels.gemm.compute_shift import alignment
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Rings
from workloads.kernels.parts.shared_links import Graph, Messages

_MOST_WAYS, _LEAST_STEPS = 2**18, 8
"""So many links and ports are looked at, a sixth of a second's work, and no fewer steps."""
_LONG_SINCE = -(2**30)
"""When a buffer was free that nobody has used: who sends to it has known that for long."""
_Numbers = NDArray[np.int64]


class _Shifted:
    """A matrix whose panels go around the rings of a grid while tiles work on them."""

    def __init__(self, moves: Messages, held: int, first: _Numbers) -> None:
        self._moves, self._room = moves, [first]
        self.panels = [first] * held

    def shift(self, graph: Graph, step: int, worked: list[_Numbers]) -> None:
        """Each tile hands on its panel of a step: the next one's last, in the buffer freed last."""
        room = [*worked, *self._room]
        left, come = graph.send(self._moves, [self.panels[step]], room)
        self.panels.append(self._moves.at_takers(come))
        self._room = [left]


def steps_followed(plan: GemmPlan, rings: Rings, *, catch_up: bool) -> int:
    """Steps whose messages are followed; 0: none wait for others, or it costs much.

    ``catch_up``: tiles that are late make up for it, as they do not at the pace of products. Then
    none of the steps tells of those behind it: all are followed, or none. At the pace of products
    messages wait only for those of an alignment.
    """
    across, down = 1 + rings.across.mean_hops, 1 + rings.down.mean_hops
    lock_steps = 0 if plan.skewed else int(alignment(plan, rings).steps.sum())
    step = plan.rows * plan.cols * (across + down)
    steps = min(plan.panels, int((_MOST_WAYS - lock_steps * plan.cols * across) / step))
    least = plan.panels if catch_up else min(plan.panels, _LEAST_STEPS)
    wait = plan.panels > 1 and (lock_steps > 0 or catch_up)
    return steps if wait and steps >= least else 0


def followed_cycles(plan: GemmPlan, rings: Rings, timing: NocTiming, steps: int) -> int:
    """Cycles until all tiles have done some steps of those behind the alignment."""
    tiles = np.stack(np.divmod(np.arange(plan.rows * plan.cols), plan.cols), axis=1)
    graph = Graph(plan.rows, plan.cols, timing, timing.launch_cycles)
    since = graph.known(tiles, np.full(len(tiles), _LONG_SINCE))
    first = since if plan.skewed else _aligned(plan, rings, timing, graph, tiles, since)
    (row, col), held = tiles.T, plan.held
    across = row * plan.cols + rings.across.neighbours(1)[col]
    down = rings.down.neighbours(1)[row] * plan.cols + col
    shifted = (
        _Shifted(Messages.of(tiles, across, plan.a_flits, timing), held[0], first),
        _Shifted(Messages.of(tiles, down, plan.b_flits, timing), held[1], since),
    )
    worked: list[_Numbers] = []
    for step in range(steps):
        panels = [matrix.panels[step] for matrix in shifted]
        product = graph.work(Engine.MATRIX, tiles, plan.step_cycles, panels)
        for matrix, count in zip(shifted, held, strict=True):
            if step + count < plan.panels:
                matrix.shift(graph, step, worked)
        worked = [product]
    return int(graph.times(*worked).max())


def _aligned(
    plan: GemmPlan,
    rings: Rings,
    timing: NocTiming,
    graph: Graph,
    tiles: _Numbers,
    since: _Numbers,
) -> _Numbers:
    """Units of tiles that have all their panels of A."""
    (row, col), held, aligned = tiles.T, plan.held[0], alignment(plan, rings)
    back, on = (row * plan.cols + rings.across.neighbours(way)[col] for way in (-1, 1))
    taker = np.where(aligned.back[row], back, on)
    moves, steps = Messages.of(tiles, taker, plan.a_flits, timing), aligned.steps[row]
    # Panels that a tile gets, and buffers that become free, by number.
    panels = np.tile(since, (int(steps.max()) + held, 1))
    free = np.tile(since, (int(steps.max()) + 1, 1))
    for step in range(int(steps.max())):
        who = np.flatnonzero(steps > step)
        if plan.align_cycles:
            waits = [panels[step, who]]
            panels[step, who] = graph.work(Engine.CONTROL, tiles[who], plan.align_cycles, waits)
        left, come = graph.send(moves, [panels[step]], [free[step]], who)
        free[step + 1, who] = left
        panels[step + held, taker[who]] = come
    every = np.arange(len(tiles))
    waits = [free[steps, every], *(panels[steps + number, every] for number in range(held))]
    return graph.work(Engine.CONTROL, tiles, 0, waits)
