"""Rows of multicasts, blocks, reductions and the work between them, and who waits for whom.

A multicast has a row for each of its roots, which begins when that root's units are there. Blocks
of off-chip memory have one for each tile's request, and one for each answer. What a tile sends
along its own row or column is a multicast to one place.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tlm.engines.lt.contention.blocks import describe, law_of
from tlm.engines.lt.contention.graph import UnitNumbers
from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.contention.multicast_network import (
    NONE,
    SUM_COLUMNS,
    TREE_COLUMNS,
    Job,
    NodeTable,
    Numbers,
    Sum,
    Tree,
    TreeGraph,
    TreeTable,
    fill,
)
from tlm.engines.lt.contention.tiles import TileIndex, ends_of
from tlm.engines.lt.laws import Laws
from tlm.engines.lt.reduce import Combining, reduce_fields
from tlm.engines.lt.state import TileSlot, Times
from tlm.engines.lt.step import Pools
from tlm.engines.lt.tokens import Places
from tlm.interconnect.transfer_times import credit_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.program.operations import Engine, Multicast, OffChip, Operation, Reduce, Send, Work


def joins(operation: Operation) -> bool:
    """Whether the graph takes an operation: what is sent stays in its row, or in its column."""
    if isinstance(operation, Send):
        rows, cols = operation.tiles.rows, operation.tiles.cols
        return [*operation.to_rows] == [*rows] or [*operation.to_cols] == [*cols]
    return isinstance(operation, Multicast | OffChip | Reduce | Work)


def row_count(operation: Operation) -> int:
    """Rows of the graph that an operation takes."""
    return len(operation.near) * (2 if isinstance(operation, OffChip) else 1)


class TreeRows(NamedTuple):
    """Rows of operations, and how they depend on each other."""

    trees: TreeTable
    arrivals: NodeTable  # when something comes to each router; those of several operations a row
    firsts: list[int]  # number of the first row of each operation,
    shared: list[int]  # and which row of ``arrivals`` is its; `NONE` of work
    graph: TreeGraph


class MulticastGraph:
    """Rows from the state of a run, as they stand in the program.

    Args:
        times: The state as the tiles lie, shape (slots, rows, columns); stays as it is.
        timing: Measured constants of the router.
        launch_cycles: From the start of a transfer to its first flit.
        edge: Channels of off-chip memory.
    """

    def __init__(self, times: Times, timing: NocTiming, launch_cycles: int, edge: Edge) -> None:
        self._units, self._edge = UnitNumbers(times), edge
        self._timing, self._launch_cycles = timing, launch_cycles
        self._laws = Laws(timing, Pools(), launch_cycles)
        _, rows, self._cols = times.shape
        self._routers = (rows + edge.edge_rows) * self._cols
        self._trees = self._queues = np.empty(0, dtype=np.int64)
        self._due = [np.zeros(self._routers, dtype=np.int32)]
        self._sums: list[list[int]] = []

    def of(self, together: Sequence[Taken]) -> TreeRows:
        """The rows of operations, as they stand in the program."""
        sizes = [row_count(each.operation) for each in together]
        ends = np.cumsum(sizes).tolist()
        firsts = [0, *ends[:-1]]
        self._trees = trees = np.zeros((ends[-1], TREE_COLUMNS), dtype=np.int64)
        trees[:, [Tree.NEXT, Tree.ANSWER]] = NONE
        self._queues = np.full(ends[-1], NONE, dtype=np.int64)
        parts = zip(together, firsts, ends, strict=True)
        shared = [self._enter(*part) for part in parts]
        due = np.stack(self._due)
        waits = self._units.waits(len(trees) + due.size)
        trees[:, Tree.WAITS] = np.bincount(waits.who, minlength=len(trees))
        self._queue()
        sums = np.array(self._sums, dtype=np.int64).reshape(-1, SUM_COLUMNS)
        longest = int(sums[:, Sum.COUNT].max(initial=0))
        graph = TreeGraph(
            waits=waits,
            due=due,
            ready=np.zeros(1 + len(trees), dtype=np.int64),
            sums=sums,
            spare=np.zeros((2, longest), dtype=np.int32),
            places=np.zeros(longest, dtype=np.int64),
        )
        return TreeRows(trees, np.zeros_like(due), firsts, shared, graph)

    def _queue(self) -> None:
        """Have rows wait for those before them in their queues; answers for what they answer."""
        trees, queues = self._trees, self._queues
        order = np.argsort(queues, kind="stable")
        answers, order = np.split(order, [int((queues == NONE).sum())])
        same = queues[order[1:]] == queues[order[:-1]]
        trees[order[:-1][same], Tree.NEXT] = order[1:][same]
        trees[order[1:][same], Tree.WAITS] += 1
        trees[answers, Tree.WAITS] = 1

    def _enter(self, taken: Taken, first: int, end: int) -> int:
        """Fill in the rows of an operation; which row of what comes is its."""
        operation, places, rows = taken.operation, taken.places, self._trees[first:end]
        here, there = operation.near.index, operation.far.index
        times, count = self._units.times, len(operation.near)
        who, own = np.arange(first, first + count), rows[:count]
        self._queues[who] = self._nodes(here) * len(Engine) + operation.engine
        row, behind = NONE, self._launch_cycles
        if isinstance(operation, Work):
            behind = 0
            fill(own, {Tree.JOB: Job.WORK, Tree.FLITS: np.ravel(operation.cycles)})
        else:
            row = self._row(self._nodes(there))
        if isinstance(operation, OffChip):
            self._describe_blocks(operation, rows, first, row)
        elif isinstance(operation, Multicast):
            self._describe_multicast(operation, places, own, who, row)
        elif isinstance(operation, Reduce):
            self._describe_operands(operation, places, own, who, row)
        elif isinstance(operation, Send):
            self._describe_send(operation, places, own, who, row)
        ready = self._units.take(places["takes"], here, who, np.full(count, behind))
        columns = {
            Tree.READY: np.maximum(own[:, Tree.READY], ready),
            Tree.FREE: times[operation.engine][here].ravel(),
            Tree.BEFORE: times[TileSlot.LEFT][here].ravel(),
        }
        fill(own, columns)
        self._units.give(places["gives"], here, who)
        if row != NONE:
            come = len(self._trees) + row * self._routers + self._nodes(there)
            self._units.give(places["arrivals"], there, come)
        return row

    def _nodes(self, tiles: TileIndex) -> Numbers:
        """Numbers of some tiles' routers."""
        rows, cols = tiles
        numbers: Numbers = (rows * self._cols + cols).ravel()
        return numbers

    def _row(self, nodes: Numbers) -> int:
        """A row of what comes in which nothing comes to some tiles yet."""
        if self._due[-1][nodes].any():
            self._due.append(np.zeros(self._routers, dtype=np.int32))
        self._due[-1][nodes] = 1
        return len(self._due) - 1

    def _describe_blocks(self, operation: OffChip, rows: TreeTable, first: int, row: int) -> None:
        """Requests of tiles, and the answers behind them."""
        law, count = law_of(self._timing, self._edge, operation), len(rows) // 2
        trees = rows[:count], rows[count:]
        describe(trees, first + count, operation, law, self._edge, self._timing, row)
        self._due[row][self._nodes(operation.far.index)] = self._edge.units(law.come_flits)

    def _describe_multicast(
        self, multicast: Multicast, places: Places, own: TreeTable, who: Numbers, row: int
    ) -> None:
        """The tree of each root, which waits for a slot of every destination."""
        lines, roots = multicast.root_lines
        segment, by_row = multicast.segment, multicast.by_row
        longest = self._timing.packet_bound if multicast.forks else multicast.flits
        there = multicast.far.index
        self._due[row][self._nodes(there)] = -(-multicast.flits // longest)
        behind = self._credits(np.abs(np.array(segment) - roots[:, None]))
        waiting = np.broadcast_to(who[:, None], behind.shape)
        if not by_row:
            waiting, behind = waiting.T, behind.T
        ready = self._units.take(places["slots"], there, waiting.ravel(), behind.ravel())
        columns = {
            Tree.BASE: np.array(lines) * (self._cols if by_row else 1),
            Tree.STEP: 1 if by_row else self._cols,
            Tree.ROOT: roots,
            Tree.FIRST: segment[0],
            Tree.LAST: segment[-1],
            Tree.STRIDE: segment.step,
            Tree.FLITS: multicast.flits,
            Tree.READY: ready.reshape(waiting.shape).max(axis=1 if by_row else 0),
            Tree.PACKET: longest,
            Tree.OPERATION: row,
            Tree.ROOM: longest if multicast.forks else 1,
        }
        fill(own, columns)

    def _describe_send(
        self, send: Send, places: Places, own: TreeTable, who: Numbers, row: int
    ) -> None:
        """A tree of one destination for each tile, whose packet is all that it sends."""
        near, far = ends_of(send.near.index), ends_of(send.far.index)
        by_row = bool((near[0] == far[0]).all())
        root, end = (near[1], far[1]) if by_row else (near[0], far[0])
        behind = self._credits(np.abs(end - root))
        columns = {
            Tree.BASE: near[0] * self._cols if by_row else near[1],
            Tree.STEP: 1 if by_row else self._cols,
            Tree.ROOT: root,
            Tree.FIRST: end,
            Tree.LAST: end,
            Tree.STRIDE: 1,
            Tree.FLITS: send.flits,
            Tree.READY: self._units.take(places["slots"], send.far.index, who, behind),
            Tree.PACKET: send.flits,
            Tree.OPERATION: row,
            Tree.ROOM: 1,
        }
        fill(own, columns)

    def _describe_operands(
        self, reduction: Reduce, places: Places, own: TreeTable, who: Numbers, row: int
    ) -> None:
        """What each tile adds, and the sum of each line."""
        lines, roots = reduction.root_lines
        segment, by_row = reduction.segment, reduction.by_row
        shape = len(lines), len(segment)
        operands = who.reshape(shape) if by_row else who.reshape(shape[::-1]).T
        behind = self._credits(np.abs(np.array(segment) - roots[:, None]))
        ready = self._units.take(places["slots"], reduction.far.index, operands, behind)
        sums = len(self._sums) + np.repeat(np.arange(len(lines)), len(segment))
        at = operands.ravel() - who[0]
        own[at, Tree.READY], own[at, Tree.ANSWER] = ready.ravel(), sums
        fill(own, {Tree.JOB: Job.OPERAND, Tree.FLITS: reduction.flits})
        step = 1 if by_row else len(lines)
        nodes = self._nodes(reduction.far.index)
        for first, root, node in zip(operands[:, 0], roots, nodes, strict=True):
            law, latency = self._reduce_law(segment, int(root), reduction.flits)
            line = int(first), step, len(segment), segment[0], segment.step, int(root), int(node)
            self._sums.append([*line, row, len(segment), latency, *law])

    def _reduce_law(self, segment: range, root: int, flits: int) -> tuple[Combining, int]:
        """The law of a reduction to a place of a line, and what follows its last operand."""
        fields, _ = self._laws.keep(reduce_fields, self._laws, segment, root, flits)
        law = Combining(*(fields[name] for name in Combining._fields))
        return law, int(self._laws.pools.delays[fields["latency"]])

    def _credits(self, hops: Numbers) -> Numbers:
        """From a slot's freeing to the first flit that some hops away is sent for it."""
        return self._launch_cycles + credit_cycles_over(self._timing, hops)
