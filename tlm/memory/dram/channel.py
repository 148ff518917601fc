"""A DRAM pseudo-channel with its controller, at the level of commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tlm.compiled import prepare
from tlm.errors import InputError
from tlm.memory.dram import layout, state
from tlm.memory.dram.address_map import AddressMap
from tlm.memory.dram.controllers.controller import Controller
from tlm.memory.dram.device import Device
from tlm.memory.dram.state import Asked, Head, Port
from tlm.memory.tables import Int64s

# Commands noted before they are taken out of the core's array.
_LOG_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class BurstRequests:
    """Requests of a burst each, those of a requester in the order in which it offers them.

    Attributes:
        tick: Shape (n,): tick before which each is not offered; never falling for a requester.
        write: Shape (n,): 1 for a write.
        burst: Shape (n,): address in bursts.
        counts: How many each requester has; the first requester's come first. They sum to n.
    """

    tick: Int64s
    write: Int64s
    burst: Int64s
    counts: Sequence[int]

    def __len__(self) -> int:
        return len(self.burst)

    def __post_init__(self) -> None:
        if sum(self.counts) != len(self.burst) or min(self.counts, default=0) < 0:
            raise InputError(f"requests: counts {list(self.counts)} of {len(self.burst)} requests")


@dataclass(frozen=True, slots=True)
class ChannelRun:
    """What became of requests; phases have shape (n,), in ticks.

    Attributes:
        begin_req: The request was offered.
        end_req: It was taken.
        begin_resp: Its answer began: the last beat of a read has come.
        end_resp: Its answer was taken.
        ticks: Length of the run.
        columns: Column commands.
        row_hits: Columns to a row that had served one since its activate.
        refresh_ticks: From every refresh falling due to the end of its tRFC.
        commands: Shape (m, columns), the columns of `state.Logged`. No rows if they were not asked
            for.
    """

    begin_req: Int64s
    end_req: Int64s
    begin_resp: Int64s
    end_resp: Int64s
    ticks: int
    columns: int
    row_hits: int
    refresh_ticks: int
    commands: Int64s

    def latency_ticks(self) -> Int64s:
        """From acceptance to the answer."""
        return self.end_resp - self.end_req


@dataclass(frozen=True, slots=True)
class DramChannel:
    """A pseudo-channel, its controller, and the arbiter in front of it.

    Requesters offer one request at a time; one request is taken a tick, from requesters in turn or,
    by DRAMSys' controller, in the order in which they began to offer.

    Attributes:
        device: Shape and times.
        controller: How it queues requests and chooses commands.
        address_map: How addresses fall apart.
        grain_requests: Requests that are taken from a requester before it is the next one's turn,
            if it offers so many.
    """

    device: Device
    controller: Controller
    address_map: AddressMap
    grain_requests: int = 1

    def __post_init__(self) -> None:
        if self.grain_requests < 1:
            raise InputError(f"grain_requests: {self.grain_requests}; must be at least 1")

    @classmethod
    def of(
        cls, device: Device, controller: Controller, map_name: str = "bg-co-ba-ro"
    ) -> "DramChannel":
        """A channel with the map of a name."""
        return cls(device, controller, AddressMap(map_name, device))

    def simulate(
        self, requests: BurstRequests, queue_depth: int | None = None, *, commands: bool = False
    ) -> ChannelRun:
        """Run requests to their answers, which are taken at once.

        Args:
            requests: What is asked.
            queue_depth: Most requests of a requester that are taken and not answered; without it,
                no bound.
            commands: Whether to note every DRAM command.

        Raises:
            InputError: for an address that the device does not have, or a depth below 1.
        """
        if queue_depth is not None and queue_depth < 1:
            raise InputError(f"queue_depth: {queue_depth}; must be at least 1")
        m = self.new_state(len(requests.counts), log_rows=_LOG_ROWS if commands else 0)
        ports, stops = layout.port_table(m), np.cumsum(requests.counts)
        ports[:, Port.NEXT], ports[:, Port.STOP] = stops - requests.counts, stops
        if queue_depth is not None:
            ports[:, Port.DEPTH] = queue_depth
        table = self.table(requests.tick, requests.write, requests.burst)
        m[Head.LEFT] = len(requests)
        log = [layout.take_log(m)]
        while m[Head.LEFT]:  # the core stops when its log is full
            self.controller.advance(m, table, state.NEVER)
            log.append(layout.take_log(m))
        begin_req, end_req, begin_resp, end_resp = table[:, Asked.BEGIN_REQ :].T.copy()
        return ChannelRun(
            begin_req,
            end_req,
            begin_resp,
            end_resp,
            ticks=int(m[Head.CLOCK]),
            columns=int(m[Head.COLUMNS]),
            row_hits=int(m[Head.HITS]),
            refresh_ticks=int(m[Head.REFRESH_TICKS]),
            commands=np.concatenate(log),
        )

    def table(self, tick: Int64s | int, write: Int64s | int, burst: Int64s) -> Int64s:
        """The rows of the core's table of requests; shape (n, columns)."""
        places = self.address_map.places(burst)
        bank = state.BANKS + state.BANK_COLUMNS * places.bank
        table = np.zeros((len(burst), len(Asked)), dtype=np.int64)
        for column, values in enumerate((write, bank, places.row, places.column, tick)):
            table[:, column] = values
        return table

    def new_state(self, requesters: int, *, log_rows: int = 0) -> Int64s:
        """The core's array, as `layout.new_state` has it; the controller is compiled."""
        _compile(type(self.controller))
        return layout.new_state(
            self.device, self.controller, requesters, self.grain_requests, log_rows
        )


@cache
def _compile(controller: type[Controller]) -> None:
    prepare(controller.advance)
