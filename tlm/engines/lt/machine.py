"""The times of a run of the loosely-timed engine, and the calls that change them.

Which calls a run is made of depends on its program alone, not on times. So who plans them
(`tlm.engines.lt.run`) may note them, and the next run of it makes them again.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.batch import Sweep
from tlm.engines.lt.contention.graph import Done, end_transfer
from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.contention.multicasts import MulticastLinks
from tlm.engines.lt.contention.ordered import OrderedLinks
from tlm.engines.lt.contention.sends import SharedLinks
from tlm.engines.lt.cycle_tables import CycleTables
from tlm.engines.lt.load import BlockMove, OffChipTimes, Requests
from tlm.engines.lt.memory import check_links_memory
from tlm.engines.lt.state import EMPTY, GridArrays, Spare, TileSlot, Times, engine_ends
from tlm.engines.lt.step import Pools
from tlm.engines.lt.sweep import sweep
from tlm.engines.lt.tokens import Fault
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.program import OffChip, Operation, Program

Note = Callable[[int, Operation, Times, Times], object]


@dataclass(frozen=True, slots=True)
class Fixed:
    """What all runs of a program have in common.

    Attributes:
        program: What runs.
        timing: Measured constants of the router.
        launch_cycles: From the start of a transfer to its first flit.
        threads: Threads that share the grid.
        memory_bytes: A run may take so many; None: what the machine has to spare.
        offchip: Channels of off-chip memory.
        ordered: Whether their blocks are packets among others.
        turned: Whether rows and columns of the state have changed places.
        both: Whether the program uses both computing engines.
        first: Times of any tile before the run, shape (slots, 1).
        pools: Numbers that steps name by offsets.
        tables: Cycles of work that differ from tile to tile.
        told_fault: What is wrong with a queue, in words.
    """

    program: Program
    timing: NocTiming
    launch_cycles: int
    threads: int
    memory_bytes: int | None
    offchip: Edge | None
    ordered: bool
    turned: bool
    both: bool
    first: Times
    pools: Pools
    tables: CycleTables
    told_fault: Callable[[int], str]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the state: rows, slots and columns."""
        rows, cols = (self.program.rows, self.program.cols)[:: -1 if self.turned else 1]
        return rows, len(self.first), cols


class Machine:
    """A run's times: of tiles, links and channels. ``note``, if any, is told of operations."""

    def __init__(self, fixed: Fixed, note: Note | None = None) -> None:
        self.fixed, self.note = fixed, note
        self.state: Times = np.empty(fixed.shape, dtype=np.int32)
        self.state[:] = fixed.first
        self._scratch = [
            np.zeros((len(Spare), fixed.shape[2]), dtype=np.int32) for _ in range(fixed.threads)
        ]
        for scratch in self._scratch:
            scratch[Spare.NEVER] = EMPTY
        self.links: MulticastLinks | None = None
        network = fixed.program, fixed.timing, fixed.launch_cycles, self.slots
        self.shared = SharedLinks(*network, fixed.memory_bytes)
        self.offchip, self.ordered = None, None
        if fixed.offchip is not None and fixed.ordered:
            self.ordered = OrderedLinks(*network, fixed.offchip, fixed.memory_bytes)
        elif fixed.offchip is not None:
            own = fixed.timing, fixed.offchip, fixed.launch_cycles, self.state
            self.offchip = OffChipTimes(*own, turned=fixed.turned)
        self._done: list[Done] = []

    @property
    def slots(self) -> Times:
        """The state as the tiles lie: shape (slots, rows, columns)."""
        return self.state.transpose((1, 2, 0) if self.fixed.turned else (1, 0, 2))

    @property
    def latest_cycle(self) -> int:
        """No time is later, nor will be when what is under way has ended."""
        latest = int(self.state[:, : TileSlot.PORT + 1].max())
        if self.offchip is None:
            return latest
        return max(latest, self.offchip.latest_cycle) + self.offchip.longest_under_way

    def sweep(self, batch: Sweep) -> None:
        """Do the operations of a batch."""
        steps, threads = batch.steps, self.fixed.threads
        faults = [np.full((len(steps), 2), -1, dtype=np.int64) for _ in range(threads)]
        for shares in batch.phases:
            self._sweep(batch, shares, faults)
        found = [(k, *own[k]) for own in faults for k in np.flatnonzero(own[:, 0] >= 0)]
        if found:
            k, _, slot = min(found)
            self._refuse((*batch.operations[steps[k]["operation"]], int(slot)))

    def _sweep(
        self,
        batch: Sweep,
        shares: list[list[NDArray[np.void]]],
        faults: list[NDArray[np.int64]],
    ) -> None:
        pools, tables = self.fixed.pools, self.fixed.tables.values

        def work(thread: int) -> None:
            scratch = self._scratch[thread]
            grid = GridArrays(self.state, tables, pools.indices, pools.delays, scratch)
            for region in shares[thread]:
                sweep(batch.steps, grid, region, faults[thread])

        if sum(map(len, shares)) <= 1:
            work(0)
        else:
            with ThreadPoolExecutor(self.fixed.threads) as pool:
                list(pool.map(work, range(self.fixed.threads)))

    def begin(self, taken: Taken) -> None:
        """Send a multicast that meets others on its way."""
        fixed = self.fixed
        if self.links is None:
            check_links_memory(fixed.program, fixed.memory_bytes)
            self.links = MulticastLinks(fixed.timing, fixed.launch_cycles, self.slots)
        self._refuse(self.links.start(taken))

    def end(self, taken: Taken) -> None:
        """Let it come to all its tiles."""
        assert self.links is not None
        self._refuse(self.links.finish(taken, self.note))

    def carry(self, together: Sequence[Taken], ordered: bool) -> None:
        """Bring transfers, and work between them, through the network, in order of time or not."""
        links = self.ordered if ordered else self.shared
        assert links is not None
        self._done = links.carry(together)

    def end_transfer(self, taken: Taken, place: int) -> None:
        """End a transfer that has a place among those brought through the network last."""
        fixed, done = self.fixed, self._done[place]
        self._refuse(end_transfer(self.slots, fixed.launch_cycles, taken, done, self.note))

    def ask(self, move: BlockMove) -> None:
        """Ask for the blocks of an operation."""
        assert self.offchip is not None
        self.offchip.start(move, told=self.note is not None)

    def answer(self, requests: Requests) -> None:
        """Have the channels serve all blocks that are under way."""
        assert self.offchip is not None
        self._refuse(self.offchip.finish(requests, self._tell_access))

    def _tell_access(self, number: int, operation: OffChip, engines: Times) -> None:
        """Show who looks on what has come of blocks that were moved."""
        assert self.note is not None
        sent = operation.of_flits(operation.sent_flits).within_tiles()
        as_tiles = engines.swapaxes(1, 2) if self.fixed.turned else engines
        self.note(number, sent, as_tiles, self._arrivals())

    def tell(self, number: int, operation: Operation) -> None:
        """Show who looks on what has come of an operation."""
        assert self.note is not None
        slots = self.slots
        self.note(
            number, operation, engine_ends(slots, self.fixed.launch_cycles), slots[TileSlot.PORT]
        )

    def _arrivals(self) -> Times:
        """When something has come to the tiles last."""
        ports = self.slots[TileSlot.PORT]
        return ports if self.offchip is None else self.offchip.arrivals(ports)

    def outcome(self, busy_cycles: NDArray[np.int64]) -> Outcome:
        """The times after the last operation.

        Args:
            busy_cycles: Of each computing engine, shape (2, rows, columns).
        """
        slots = self.slots
        ends = engine_ends(slots, self.fixed.launch_cycles).astype(np.int64, order="C")
        arrived = np.array(self._arrivals(), dtype=np.int64, order="C")
        matrix_busy, vector_busy = busy_cycles
        computed = matrix_busy + vector_busy
        if self.fixed.both:
            computed -= slots[TileSlot.OVERLAP]
        return Outcome(
            engine_end_cycle=ends,
            last_arrival_cycle=np.maximum(arrived, 0, out=arrived),
            matrix_busy_cycles=np.array(matrix_busy, order="C"),
            compute_busy_cycles=np.ascontiguousarray(computed),
        )

    def _refuse(self, fault: Fault | None) -> None:
        if fault:
            number, operation, slot = fault
            raise InputError(f"{operation.called(number)} {self.fixed.told_fault(slot)}")
