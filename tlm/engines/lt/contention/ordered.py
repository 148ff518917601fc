"""What moves beside blocks of off-chip memory, for the loosely-timed engine, in order of time.

A tile that has its block sends it on while other tiles of the same multicast still wait for theirs.
So operations are gathered, and go through the network as one graph (`multicast_graph`).
"""

from collections.abc import Sequence

import numpy as np

from tlm.engines.lt.contention import multicast_network as parts
from tlm.engines.lt.contention import multicast_packets as packets
from tlm.engines.lt.contention.graph import Done
from tlm.engines.lt.contention.held import Taken, kept
from tlm.engines.lt.contention.multicast_graph import MulticastGraph, TreeRows, row_count
from tlm.engines.lt.memory import check_ordered_memory
from tlm.engines.lt.state import TileSlot, Times
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.program import Operation, Program

_MOST_TILES = 2**14
_MOST_ROWS = 2**18
"""Of the graph at once, as are"""
_MOST_PLACES = 2**23
"""operations times routers."""


class OrderedLinks:
    """The links of the grid and of its edge, as operations have left them.

    Args:
        program: What is run.
        timing: Measured constants of the router.
        launch_cycles: From the start of a transfer to its first flit.
        times: State of the run as the tiles lie, shape (slots, rows, columns).
        edge: Channels of off-chip memory, each as fast as its link.
        memory_bytes: The run may take so many; None: what the machine has to spare.
    """

    def __init__(
        self,
        program: Program,
        timing: NocTiming,
        launch_cycles: int,
        times: Times,
        edge: Edge,
        memory_bytes: int | None,
    ) -> None:
        self._program, self._memory_bytes, self._edge = program, memory_bytes, edge
        self._timing, self._launch_cycles, self._times = timing, launch_cycles, times
        _, self._rows, self._cols = times.shape
        routers = (self._rows + edge.edge_rows) * self._cols
        self._waiting: list[Taken] = []
        self._count = 0
        self._served = np.zeros(self._cols, dtype=np.int64)
        self._nodes, self._queues = parts.fresh_nodes(routers), parts.fresh_queues(routers)

    def __len__(self) -> int:
        """How many operations wait."""
        return len(self._waiting)

    @staticmethod
    def takes(program: Program) -> bool:
        """Whether a grid is so small that its tiles are followed one by one."""
        return program.rows * program.cols <= _MOST_TILES

    def has_room(self, operation: Operation) -> bool:
        """Whether an operation can go with those that wait."""
        places = (len(self._waiting) + 1) * len(self._nodes)
        return self._count + row_count(operation) <= _MOST_ROWS and places <= _MOST_PLACES

    def append(self, taken: Taken) -> None:
        """Have an operation wait for those behind it."""
        self._count += row_count(taken.operation)
        self._waiting.append(kept(taken))

    def all(self) -> list[Taken]:
        """All of them, which wait no more."""
        waiting, self._waiting, self._count = self._waiting, [], 0
        return waiting

    def carry(self, together: Sequence[Taken]) -> list[Done]:
        """Bring operations to their ends: of each of them when its tiles are free.

        The run's state is left as it is, but for what it knows of ports.
        """
        packets.ready()
        state = self._times, self._timing, self._launch_cycles, self._edge
        rows = MulticastGraph(*state).of(together)
        size = len(self._nodes), len(rows.trees), rows.arrivals.size
        check_ordered_memory(self._program, *size, self._memory_bytes)
        network = parts.Network(
            router=parts.router_of(self._timing, self._launch_cycles),
            nodes=self._nodes,
            queues=self._queues,
            trees=rows.trees,
            wheel=np.zeros(parts.WHEEL_SIZE, dtype=np.int64),
            arrivals=rows.arrivals,
            owed=np.zeros(len(rows.arrivals), dtype=np.int64),
            answers=np.full(self._cols, parts.NONE, dtype=np.int64),
            served=self._served,
            graph=rows.graph,
            cols=self._cols,
        )
        self._ports()[:] = self._times[TileSlot.PORT : TileSlot.BUSY + 1].transpose(1, 2, 0)
        packets.carry(network)
        self._times[TileSlot.PORT : TileSlot.BUSY + 1] = self._ports().transpose(2, 0, 1)
        ends = zip(together, rows.firsts, rows.shared, strict=True)
        return [self._done(rows, *each) for each in ends]

    def _done(self, rows: TreeRows, taken: Taken, first: int, shared: int) -> Done:
        """What has become of an operation."""
        operation = taken.operation
        own = rows.trees[first : first + len(operation.near)]
        there, cols = operation.far.index
        come = rows.arrivals[shared, (there * self._cols + cols).ravel()]
        return own[:, parts.Tree.END], own[:, parts.Tree.BEFORE], come

    def _ports(self) -> Times:
        """When ejection ports are free and since when they are busy, shape (rows, columns, 2)."""
        nodes = self._nodes.reshape(-1, self._cols, parts.NODE_COLUMNS)
        return nodes[: self._rows, :, parts.PORT_COLUMNS]
