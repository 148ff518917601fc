"""Sends whose transfers share links, for the loosely-timed engine: a whole send at a time.

Units are taken from and given to the state of the run; the packets go through the network line by
line (`tlm.engines.lt.contention.send_packets`), behind those of sends before.
"""

import numpy as np

from tlm.engines.lt.contention import send_packets
from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.contention.tiles import (
    Cycles,
    TileIndex,
    give_units,
    take_units,
    write_through_ports,
)
from tlm.engines.lt.memory import check_shared_memory
from tlm.engines.lt.state import Times
from tlm.engines.lt.tokens import Fault
from tlm.interconnect.packets import TileSet
from tlm.interconnect.transfer_times import credit_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from tlm.program.operations import Engine, Send

MOST_HOPS = 2**27
"""A run's packets are followed over so many links, half a minute's work; later ones are not."""


class SharedLinks:
    """The links of the grid, as sends have left them.

    Args:
        program: What is run.
        timing: Measured constants of the router.
        launch_cycles: From the start of a transfer to its first flit.
        times: State of the run as the tiles lie, shape (slots, rows, columns).
        memory_bytes: The run may take so many; None: what the machine has to spare.
    """

    def __init__(
        self,
        program: Program,
        timing: NocTiming,
        launch_cycles: int,
        times: Times,
        memory_bytes: int | None,
    ) -> None:
        self._program, self._memory_bytes = program, memory_bytes
        self._timing, self._launch_cycles, self._times = timing, launch_cycles, times
        self._hops_left = MOST_HOPS if timing.link_interval_cycles == 1 else 0
        # Along rows and along columns, as `send_packets.cross` has them.
        self._links: list[Cycles] = []

    def follows(self, hops: int) -> bool:
        """Whether a send is to be done here, whose packets cross so many links; 0: it shares none.

        Raises:
            InputError: if there is no memory for that.
        """
        if not 0 < hops <= self._hops_left:
            return False
        self._hops_left -= hops
        if not self._links:
            check_shared_memory(self._program, self._memory_bytes)
            send_packets.ready()
            _, rows, cols = self._times.shape
            shapes = (rows, 2, 2, cols), (cols, 2, 2, rows)
            self._links = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        return True

    def send(self, taken: Taken) -> Fault | None:
        """Do a send that moves along one axis."""
        send = taken.operation
        assert isinstance(send, Send)
        here, there = send.near.index, send.far.index
        row_hops = np.abs(send.to_rows - np.array(send.tiles.rows))
        hops = row_hops[:, None] + np.abs(send.to_cols - np.array(send.tiles.cols))
        starts, missing = self._start(taken, here, there, hops)
        along_row = not row_hops.any()
        sources = len(send.tiles.cols if along_row else send.tiles.rows)
        length = send_packets.length_of(self._timing, send.flits, sources)
        come, free = self._cross(send, length, starts, along_row=along_row)
        times, held = write_through_ports(self._times, there, come, hops + 1, length)
        np.maximum(free, held, out=free)
        self._times[Engine.TRANSFER][here] = free
        over = give_units(self._times, taken.places["gives"], here, free)
        full = give_units(self._times, taken.places["arrivals"], there, times)
        return taken.fault(missing or over or full)

    def _start(
        self, taken: Taken, here: TileIndex, there: TileIndex, hops: Cycles
    ) -> tuple[Cycles, int]:
        """Take units; when each source starts, as far as these tell; and the fault."""
        units, missing = take_units(self._times, taken.places["takes"], here)
        slots, unfree = take_units(self._times, taken.places["slots"], there)
        known = np.maximum(units, slots + credit_cycles_over(self._timing, hops))
        known += self._launch_cycles
        return np.maximum(self._times[Engine.TRANSFER][here], known), missing or unfree

    def _cross(
        self, send: Send, length: send_packets.Length, starts: Cycles, *, along_row: bool
    ) -> tuple[Cycles, Cycles]:
        """When transfers could be written at their ends, and when they have left their sources."""
        tiles = send.tiles
        lines, places, targets = tiles.rows, tiles.cols, send.to_cols
        if not along_row:
            lines, places, targets = tiles.cols, tiles.rows, send.to_rows
        starts = np.ascontiguousarray(starts if along_row else starts.T)
        come = starts + (length.ejection + send.flits)
        free = starts + send.flits
        links = self._links[0 if along_row else 1]
        # May be written, as compiled.
        ends = (np.array(lines), np.array(places), np.array(targets))
        transfers = send_packets.Transfers(*ends, starts, come, free, links)
        room = send_packets.room_of(length, links.shape[-1], len(places))
        send_packets.cross(length, transfers, room)
        return (come, free) if along_row else (come.T, free.T)


def shared_hops(tiles: TileSet, to_rows: bytes, to_cols: bytes) -> int:
    """Links that the transfers of a send cross in all, if two of them share one; else 0.

    Those that move along both axes are not followed: 0.
    """
    by_row, by_col = _hops(tiles.rows, to_rows), _hops(tiles.cols, to_cols)
    if by_row[0] and by_col[0]:
        return 0
    crossed, most = by_col if by_col[0] else by_row
    return crossed * len(tiles.rows if by_col[0] else tiles.cols) if most > 1 else 0


def _hops(places: range, targets: bytes) -> tuple[int, int]:
    """Links crossed in all on a line, and how many cross the busiest of them in a direction."""
    here, there = np.array(places), np.frombuffer(targets, dtype=np.int64)
    size = int(max(here.max(), there.max())) + 1
    most = 0
    for forward in (True, False):
        going = (there > here) == forward
        first, last = (here, there) if forward else (there, here)
        changes = np.bincount(first[going], minlength=size) - np.bincount(
            last[going], minlength=size
        )
        most = max(most, int(np.cumsum(changes).max()))
    return int(np.abs(there - here).sum()), most
