"""SUMMA as a performance model: panel after panel, and the columns of tiles one by one.

A panel of A is on its way when all columns have used the one that was in its buffer. That of B goes
down a column as soon as that column has used its own; but the corner, the tile where both begin,
sends A first, and so the column of A's root is the last to multiply. Panels under way at the same
time share the ports of the tiles that they come to, and those of a matrix its links. They take
turns there so long as both have packets left. Of the rows only the corner's and the farthest count.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles, hold_cycles
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.parts.line_state import LineSteps, one_line
from workloads.kernels.parts.line_steps import line_cycles

Times = NDArray[np.float64]
"""One for each column."""
_LONG_AGO = -1e18


def multicast_summa_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles of SUMMA whose panels are multicast."""
    if plan.serial:
        return _in_turn_cycles(plan, timing)
    if min(plan.rows, plan.cols) == 1 and plan.panels > 1:
        return _on_a_line_cycles(plan, timing)
    return round(_Panels(plan, timing).last_end())


def _on_a_line_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles where each tile sends itself the panels of one matrix."""
    along_row, tiles = plan.rows == 1, max(plan.rows, plan.cols)
    steps = LineSteps(
        plan.a_flits if along_row else plan.b_flits,
        plan.b_flits if along_row else plan.a_flits,
        own_first=not along_row,
        buffers=plan.receive_buffers,
        product=plan.step_cycles,
    )
    roots = np.arange(plan.panels)[:, None] * tiles // plan.panels
    return line_cycles(steps, one_line(tiles), roots, timing)


@dataclass(frozen=True, slots=True)
class Block:
    """How blocks of a matrix go through the network.

    Attributes:
        flits: Of a block.
        hold: Cycles for which a root sends one if nothing is in its way.
        tail: From then to the arrival beside the root.
        whole: Whether a block is one packet: others pass before it or behind it.
    """

    flits: int
    hold: int
    tail: int
    whole: bool

    @classmethod
    def of(cls, timing: NocTiming, flits: int, *, forks: bool = True) -> "Block":
        """Of blocks of so many flits; ``forks``: whether there are others on the root's line."""
        there = arrival_cycles(timing, int(forks), flits, multicast=forks)
        hold = hold_cycles(timing, flits, multicast=forks)
        tail = there - timing.hop_cycles * forks - timing.launch_cycles - hold
        return cls(flits, hold, tail, flits <= timing.packet_bound)

    def flow(self, begin: Times) -> "Flow":
        """Such blocks that begin at some times, and have nothing in their way."""
        return Flow(begin, np.full_like(begin, self.hold), self.flits)


@dataclass(frozen=True, slots=True)
class Flow:
    """A panel on its way: in each column when it begins, and for how long it is sent."""

    begin: Times
    cycles: Times
    flits: int

    @property
    def end(self) -> Times:
        """When it has been sent."""
        return self.begin + self.cycles

    def left(self, now: Times) -> Times:
        """Flits still to be sent."""
        gone = np.maximum(now - self.begin, 0) / self.cycles
        left: Times = self.flits * np.maximum(1 - gone, 0)
        return left


def beside(
    block: Block, begin: Times, same: list[Flow], others: list[Flow], *, apart: Any = False
) -> Flow:
    """A panel beside others of its matrix, and of the other one.

    Those of its matrix are in its way on links, too: it takes turns with each. All of them together
    take turns with those of the other matrix at ports.

    Args:
        block: Of the panel.
        begin: When it begins.
        same: Others of its matrix.
        others: Those of the other matrix.
        apart: Where each of these comes through a link of its own, and has its own turns.
    """
    cycles: Any = np.full_like(begin, block.hold)
    queue: Any = np.full_like(begin, block.flits)  # of the matrix
    across: Any = np.zeros_like(begin)  # of the other one
    met = sorted([*same, *others], key=lambda flow: float(np.maximum(flow.begin, begin).mean()))
    for flow in met:
        own, left = any(flow is each for each in same), flow.left(begin)
        if block.whole:
            more = np.where(flow.begin <= begin, left, 0)
        else:
            rest = np.clip(1 - (flow.begin - begin) / cycles, 0, 1)
            turns = block.flits * rest if own else queue * rest - np.where(apart, 0, across)
            more = np.minimum(left, np.maximum(turns, 0))
        # A packet finds some room where the queue waits for empty buffers.
        cycles = cycles + more * np.maximum(2 - cycles / (queue + across), 0)
        queue, across = (queue + more, across) if own else (queue, across + more)
    return Flow(begin, cycles, block.flits)


def _in_turn_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """The same with panels of B behind those of A: none of a step meet on links, or at ports.

    A row sends A when its own tiles have multiplied, and a column B when it has besides got A where
    its root is. Rows at both ends stand for all others than that of B's roots: it comes there last.
    """
    a = Block.of(timing, plan.a_flits, forks=plan.cols > 1)
    b = Block.of(timing, plan.b_flits, forks=plan.rows > 1)
    cols, hop, launch = np.arange(plan.cols), timing.hop_cycles, timing.launch_cycles
    own, flits = credit_cycles(timing, 0), plan.a_flits + plan.b_flits
    never = np.full((3, plan.cols), _LONG_AGO)
    ends, come_last = [never] * plan.receive_buffers, never
    for number in range(plan.panels):
        col, row = number * plan.cols // plan.panels, number * plan.rows // plan.panels
        across = np.abs(cols - col) * hop
        down = np.array([[0], [row], [plan.rows - 1 - row]]) * hop
        used = ends[-plan.receive_buffers]
        begin = np.maximum(0, (used + across + own).max(axis=1, keepdims=True)) + launch
        come = begin + a.hold + a.tail + across
        free = np.maximum(0, (used + down + own).max(axis=0))
        sent = np.maximum(come[0], free) + launch + b.hold + b.tail
        come_last = np.maximum(np.maximum(come, sent + down), come_last + flits)
        ends = [*ends[1:], np.maximum(come_last, ends[-1]) + plan.step_cycles]
    return round(float(ends[-1].max()))


class _Roots(NamedTuple):
    """Of a step: the column that A's panel comes from, and the row that B's comes from."""

    col: int
    row: int


class _Panels:
    """The steps, one after the other."""

    def __init__(self, plan: GemmPlan, timing: NocTiming) -> None:
        self._plan, self._timing = plan, timing
        self._a = Block.of(timing, plan.a_flits, forks=plan.cols > 1)
        self._b = Block.of(timing, plan.b_flits, forks=plan.rows > 1)
        self._cols = np.arange(plan.cols)
        never = np.full(plan.cols, _LONG_AGO)
        self._ends = [never, never]  # of the last two steps' products
        self._last_a = self._last_b = Flow(never, np.ones(plan.cols), 0)
        self._free = np.zeros(plan.cols)  # when the last root of A in a column is
        self._last_roots = _Roots(-1, -1)

    def last_end(self) -> float:
        """When the last product ends."""
        for number in range(self._plan.panels):
            self._step(number)
        return float(self._ends[-1].max())

    def _step(self, number: int) -> None:
        roots, following, last = self._roots(number), self._roots(number + 1), self._last_roots
        used = self._ends[-self._plan.receive_buffers]
        a_begin = np.maximum(self._a_begin(number, used), self._free[roots.col])
        b_begin = np.maximum(self._b_begin(number, used), self._free)
        corner_begin = a_begin
        if last.row == roots.row:  # the same tiles send one panel of B after the other
            b_begin = np.maximum(b_begin, self._last_b.end)
            if last.col == roots.col:
                corner_begin = np.maximum(a_begin, self._last_b.end[roots.col])
        next_a = self._a_begin(number + 1, self._ends[-1])
        next_b = np.maximum(self._b_begin(number + 1, self._ends[-1]), self._free)
        if self._plan.receive_buffers == 1:  # nothing is sent while this is worked on
            next_a, next_b = np.full_like(next_a, np.inf), np.full_like(next_b, np.inf)
        corner, rows = self._a_flows(
            (roots, following), (corner_begin, a_begin), b_begin, (next_a, next_b)
        )
        if self._plan.rows == 1:
            rows = corner
        here = self._cols == roots.col
        self._free[roots.col] = rows.end[roots.col]
        come = np.maximum(rows.end, corner.end) + self._a.tail
        come = come + np.abs(self._cols - roots.col) * self._timing.hop_cycles
        b_begin = np.maximum(b_begin, np.where(here, corner.end[roots.col], 0))
        same, others = [self._last_b], [rows]
        if number + 1 < self._plan.panels and self._plan.receive_buffers > 1:
            busy = self._free
            if following.col == roots.col:  # its tiles send the next panel of A behind this one
                next_a = np.maximum(next_a, self._free[roots.col])
                busy = next_a + self._a.hold
            if following.row != roots.row:
                same.append(self._b.flow(np.maximum(next_b, np.where(here, busy, 0))))
            together = (next_a < rows.end[roots.col]) & (not self._a.whole)
            cycles = np.where(together, rows.cycles, self._a.hold)
            others.append(Flow(next_a, cycles, self._a.flits))
        self._last_a, self._last_roots = rows, roots
        self._last_b = beside(self._b, b_begin, same, others, apart=here & (self._plan.cols > 1))
        far = max(roots.row, self._plan.rows - 1 - roots.row) * self._timing.hop_cycles
        come = np.maximum(come, self._last_b.end + self._b.tail + far)
        self._ends = [self._ends[-1], np.maximum(come, self._ends[-1]) + self._plan.step_cycles]

    def _a_flows(
        self,
        roots: tuple[_Roots, _Roots],
        begin: tuple[Times, Times],
        b_begin: Times,
        following: tuple[Times, Times],
    ) -> tuple[Flow, Flow]:
        """A's panel in the corner's row, and in the others.

        Args:
            roots: Of this step and of the next one.
            begin: When it begins there.
            b_begin: When the panel of B begins.
            following: When the next panels of A and of B could.
        """
        (here, there), (next_a, next_b) = roots, following
        corner, rows = begin
        other_cols = self._cols != here.col
        alone = beside(self._b, b_begin, [self._last_b], [self._last_a, self._a.flow(rows)])
        if there.row == here.row:
            next_b = np.where(other_cols, np.maximum(next_b, alone.end), np.inf)
        others = [self._last_b, self._b.flow(np.where(other_cols, b_begin, np.inf))]
        beside_corner, beside_rows = [self._last_a], [self._last_a]
        if next_a[0] < np.inf:
            others.append(self._b.flow(next_b))
            if there.col != here.col:
                # The corner's row has the roots of B, which send that first.
                beside_rows.append(self._a.flow(next_a))
                beside_corner.append(self._a.flow(np.maximum(next_a, alone.end[there.col])))
        return (
            self._held(here.col, beside(self._a, corner, beside_corner, others)),
            self._held(here.col, beside(self._a, rows, beside_rows, others)),
        )

    def _held(self, root: int, flow: Flow) -> Flow:
        """A's panel as its root sends it: each buffer on the way holds packets of what waits."""
        room = self._timing.input_places - self._timing.return_cycles
        held = (flow.cycles - room * np.abs(self._cols - root)).max()
        busy = self._a.hold if self._a.whole else max(self._a.hold, float(held))
        cycles = np.maximum(flow.cycles, busy)
        cycles[root] = busy
        return Flow(flow.begin, cycles, flow.flits)

    def _roots(self, number: int) -> _Roots:
        plan = self._plan
        return _Roots(number * plan.cols // plan.panels, number * plan.rows // plan.panels)

    def _a_begin(self, number: int, ends: Times) -> Times:
        """When roots know that all columns have used what was before."""
        if number == self._plan.panels:
            return np.full(len(ends), np.inf)
        hops = np.abs(self._cols - self._roots(number).col) * self._timing.hop_cycles
        known = float((ends + credit_cycles(self._timing, 0) + hops).max())
        return np.full(len(ends), max(0.0, known) + self._timing.launch_cycles)

    def _b_begin(self, number: int, ends: Times) -> Times:
        """When roots know that their columns have."""
        row = self._roots(number).row
        known = ends + credit_cycles(self._timing, max(row, self._plan.rows - 1 - row))
        begin: Times = np.maximum(0, known) + self._timing.launch_cycles
        return begin
