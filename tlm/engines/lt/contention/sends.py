"""Sends whose transfers share links, for the loosely-timed engine, with the work between them.

Operations of a program are not in order of time: a tile may be far ahead of another. So sends, and
work that stands between them, are a graph (`graph`), whose packets go through the network as soon
as what they wait for is there (`tlm.interconnect.unicast_packets`), behind those of sends before.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, forget_stale
from tlm.engines.lt.contention.graph import Done, Graph
from tlm.engines.lt.contention.held import Taken
from tlm.engines.lt.memory import check_shared_memory
from tlm.engines.lt.state import TileSlot, Times
from tlm.interconnect import unicast_packets
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.packets import TileSet
from tlm.interconnect.unicast_network import (
    PORTS,
    Crossing,
    OutputLink,
    Table,
    fresh_ways,
    network_of,
    packets_in_buffer,
    router_of,
)
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from tlm.program.operations import Operation, Send, Work

MOST_HOPS = 2**27
"""A run's packets are followed over so many links, half a minute's work; later ones are not."""
MOST_TOGETHER = 2**20
"""Transfers, and tiles' work, in the network at once."""
_NOBODY = -1
_Numbers = NDArray[np.int64]
Form = tuple[TileSet, bytes, bytes]
"""Of a send: its tiles, and the rows and columns that they send to."""


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
        self._router = router_of(timing, program.cols, launch_cycles)
        self._hops_left = MOST_HOPS if timing.link_interval_cycles == 1 else 0
        self._has_room = False
        self._ways: Table | None = None

    def share(self, operations: Sequence[Operation]) -> bool:
        """Whether sends, and work between them, are to be done here: in order of time.

        They are if transfers share links with others, or ports that they reach in another order
        than that of the program. One of them that waits holds links, and so others that share none.
        """
        if self._hops_left == 0:
            return False
        given = {token for each in operations if isinstance(each, Work) for token in each.gives}
        groups = [
            [*group]
            for are_sends, group in groupby(operations, lambda each: isinstance(each, Send))
            if are_sends
        ]
        by_group = [tuple(map(_form, group)) for group in groups]
        forms = tuple(dict.fromkeys(chain.from_iterable(by_group)))
        bursts = dict.fromkeys(a for group in by_group for a, b in pairwise(group) if a == b)
        worked = dict.fromkeys(
            _form(each) for each in chain.from_iterable(groups) if not given.isdisjoint(each.takes)
        )
        return (
            any(link_use(*each)[1] > 1 for each in forms)
            or links_meet(forms, self._timing.y_first)
            or any(map(ports_meet, by_group))
            or others_come((*bursts, *worked), forms)
        )

    def follows(self, operations: Sequence[Operation]) -> bool:
        """Whether sends, and work between them, are to be done here.

        Raises:
            InputError: if there is no memory for that.
        """
        sends = [each for each in operations if isinstance(each, Send)]
        hops = sum(link_use(*_form(each))[0] for each in sends)
        if hops > self._hops_left:
            self._hops_left = 0
            return False
        self._hops_left -= hops
        if not self._has_room:
            together = min(MOST_TOGETHER, sum(len(each.near) for each in operations))
            shortest = min(each.flits for each in sends)
            packets = packets_in_buffer(self._router, together, shortest)
            check_shared_memory(self._program, together, packets, self._memory_bytes)
            unicast_packets.ready()
            self._has_room = True
        return True

    def carry(self, together: Sequence[Taken]) -> list[Done]:
        """Bring sends, and work between them, to their ends.

        The run's state is left as it is, but for what it knows of ports.
        """
        if self._ways is None:
            self._ways = fresh_ways(self._program.rows * self._program.cols)
        rows, waits = Graph(self._times, self._timing, self._launch_cycles).of(together)
        transfers = rows[rows[:, Crossing.WORKER] == 0]
        ports = self._ways[MeshPort.LOCAL :: PORTS]
        shape = self._times[TileSlot.PORT].shape
        ends = transfers[:, Crossing.TO_ROW], transfers[:, Crossing.TO_COL]
        # Of a port the state knows when flits are written.
        for column, slot in ((OutputLink.SINCE, TileSlot.BUSY), (OutputLink.UNTIL, TileSlot.PORT)):
            ports[:, column] = self._times[slot].ravel().astype(np.int64) - self._router.ejection
        unicast_packets.carry(network_of(self._router, rows, self._ways, waits))
        for column, slot in ((OutputLink.SINCE, TileSlot.BUSY), (OutputLink.UNTIL, TileSlot.PORT)):
            busy = ports[:, column].reshape(shape)[ends]
            self._times[slot][ends] = busy + self._router.ejection
        sizes = [len(each.operation.near) for each in together]
        done = rows[:, [Crossing.FREE, Crossing.BEFORE, Crossing.COME]]
        return [(*each.T,) for each in np.split(done, np.cumsum(sizes)[:-1])]


def _form(send: Operation) -> Form:
    assert isinstance(send, Send)
    return send.tiles, send.to_rows.tobytes(), send.to_cols.tobytes()


@lru_cache(2**12)  # loops send the same way again and again
def link_use(tiles: TileSet, to_rows: bytes, to_cols: bytes) -> tuple[int, int]:
    """Links that the transfers of a send cross in all, and how many cross the busiest of them.

    Destinations differ. So transfers that turn share a link only with others of their line.
    """
    (by_row, most_by_row), (by_col, most_by_col) = (
        _hops(tiles.rows, to_rows),
        _hops(tiles.cols, to_cols),
    )
    hops = by_row * len(tiles.cols) + by_col * len(tiles.rows)
    return hops, max(most_by_row, most_by_col)


@lru_cache(2**10)
def links_meet(sends: tuple[Form, ...], y_first: bool) -> bool:
    """Whether transfers of different tiles cross a link, of sends that each cross it once.

    Those of one tile follow each other anyway.
    """
    if len(sends) < 2:
        return False
    reached = [_reach(*each) for each in sends]
    rows, cols = (max(each[axis] for each in reached) for axis in range(2))
    senders = np.full((len(MeshPort), rows * cols), _NOBODY)
    return any(_mark(senders, cols, *_ends(*each), y_first) for each in sends)


@lru_cache(2**10)
def ports_meet(sends: tuple[Form, ...]) -> bool:
    """Whether what other tiles send may come to a tile before what stands before it in the program.

    A tile sends one after the other: what it sends last comes last, as a rule.
    """
    reached = [_reach(*each) for each in sends]
    rows, cols = (max(each[axis] for each in reached) for axis in range(2))
    sent = np.zeros(rows * cols, dtype=np.int64)
    come = np.full(rows * cols, _NOBODY)
    for send in sends:
        here, there = (ends[0] * cols + ends[1] for ends in _ends(*send))
        if (sent[here] <= come[there]).any():
            return True
        come[there] = sent[here]
        sent[here] += 1
    return False


@lru_cache(2**10)
def others_come(sends: tuple[Form, ...], others: tuple[Form, ...]) -> bool:
    """Whether others come to a tile to which another tile sends several times in a row, or results.

    A port takes turns with a row of sends, where in the order of the program one waits for all
    others. When tiles have results depends on their work.
    """
    if not sends:
        return False
    reached = [_reach(*each) for each in others]
    rows, cols = (max(each[axis] for each in reached) for axis in range(2))
    source = np.full(rows * cols, _NOBODY)
    for send in (*sends, *others):
        here, there = (ends[0] * cols + ends[1] for ends in _ends(*send))
        if ((source[there] != _NOBODY) & (source[there] != here)).any():
            return True
        if send in sends:
            source[there] = here
    return False


def _reach(tiles: TileSet, to_rows: bytes, to_cols: bytes) -> tuple[int, int]:
    """Rows and columns of a grid that has both ends of all transfers."""
    ends = ((tiles.rows, to_rows), (tiles.cols, to_cols))
    rows, cols = (
        1 + max(int(np.frombuffer(there, dtype=np.int64).max()), *here) for here, there in ends
    )
    return rows, cols


@compiled
def _mark(senders: _Numbers, cols: int, here: _Numbers, there: _Numbers, y_first: bool) -> bool:
    """Note who sends over links, by direction and the tile they leave; whether others do, too."""
    for n in range(here.shape[1]):
        place = here[0, n], here[1, n]
        source = here[0, n] * cols + here[1, n]
        for turn in range(2):
            axis = turn if y_first else 1 - turn
            row, col = place
            at, end = place[axis], there[axis, n]
            step = 1 if end > at else -1
            while at != end:
                node = at * cols + col if axis == 0 else row * cols + at
                link = 2 * axis + (1 if step > 0 else 0)
                before = senders[link, node]
                if before not in (_NOBODY, source):
                    return True
                senders[link, node] = source
                at += step
            place = (end, col) if axis == 0 else (row, end)
    return False


def _ends(
    tiles: TileSet, to_rows: bytes, to_cols: bytes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the sources of a send's transfers, and of their targets."""
    targets = (np.frombuffer(each, dtype=np.int64) for each in (to_rows, to_cols))
    here, there = (
        np.stack(np.meshgrid(*lines, indexing="ij")).reshape(2, -1)
        for lines in ((tiles.rows, tiles.cols), targets)
    )
    return here, there


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


forget_stale(_mark)
