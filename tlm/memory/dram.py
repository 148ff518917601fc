"""A DRAM pseudo-channel with its controller, at the level of commands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.memory import dram_core as core
from tlm.memory import dram_state as d
from tlm.memory.address_map import AddressMap
from tlm.memory.devices import HBM2, Device
from tlm.memory.policies import Kind, Policy

Int64s = NDArray[np.int64]
_TIMES = (
    "t_rcd_rd", "t_rcd_wr", "t_rp", "t_ras", "t_rc", "t_rrd_s", "t_rrd_l", "t_faw", "t_ccd_s",
    "t_ccd_l", "t_rtw", "t_wtr_s", "t_wtr_l", "t_rtp", "t_wtp", "t_rfc", "t_refi", "t_rp_ref",
    "t_rc_ref", "rl", "wl", "bl", "t_ppd", "activate_ticks",
)  # fmt: skip
_LONG_AGO = -(2**40)
# rtl/memory/memory_channel.sv with its defaults: commands take a cycle, and refresh waits as an
# activate does.
RTL_HBM2 = replace(
    HBM2,
    name="rtl",
    source="rtl/memory/README.md",
    row_bits=14,
    t_rp_ref=HBM2.t_rp,
    t_rc_ref=HBM2.t_rc,
    activate_ticks=1,
)


@dataclass(frozen=True, slots=True)
class Requests:
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
class Outcome:
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
        commands: Shape (m, 7): tick, kind (0 activate, 1 precharge, 2 precharge all, 3 refresh,
            4 read, 5 write), group, bank, row, column, request; -1 for what there is not. No rows
            if they were not asked for.
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

    Requesters offer one request at a time; one request is taken a tick, from requesters in turn.

    Attributes:
        device: Shape and times.
        policy: Controller.
        address_map: How addresses fall apart.
        grain_requests: Requests that are taken from a requester before it is the next one's turn,
            if it offers so many.
    """

    device: Device
    policy: Policy
    address_map: AddressMap
    grain_requests: int = 1

    def __post_init__(self) -> None:
        if self.grain_requests < 1:
            raise InputError(f"grain_requests: {self.grain_requests}; must be at least 1")

    @classmethod
    def of(cls, device: Device, policy: Policy, map_name: str = "bg-co-ba-ro") -> "DramChannel":
        """A channel with the map of a name."""
        return cls(device, policy, AddressMap(map_name, device))

    def simulate(
        self, requests: Requests, queue_depth: int | None = None, *, commands: bool = False
    ) -> Outcome:
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
        state = self.new_state(len(requests.counts))
        stops = np.cumsum(requests.counts)
        state.ports[:, d.NEXT] = stops - requests.counts
        state.ports[:, d.STOP] = stops
        if queue_depth is not None:
            state.ports[:, d.DEPTH] = queue_depth
        state = state._replace(requests=self.table(requests.tick, requests.write, requests.burst))
        state.now[d.LEFT] = len(requests)
        state.rules[d.LOGGING] = int(commands)
        while state.now[d.LEFT]:
            if commands:  # the core stops when the log is full
                state = state._replace(log=_longer(state.log))
            core.run(state, d.NEVER)
        columns = (d.BEGIN_REQ, d.END_REQ, d.BEGIN_RESP, d.END_RESP)
        begin_req, end_req, begin_resp, end_resp = (state.requests[:, c].copy() for c in columns)
        return Outcome(
            begin_req=begin_req,
            end_req=end_req,
            begin_resp=begin_resp,
            end_resp=end_resp,
            ticks=int(state.now[d.CLOCK]),
            columns=int(state.now[d.COLUMNS]),
            row_hits=int(state.now[d.HITS]),
            refresh_ticks=int(state.now[d.REFRESH_TICKS]),
            commands=state.log[: int(state.now[d.LOGGED])],
        )

    def table(self, tick: Int64s, write: Int64s, burst: Int64s) -> Int64s:
        """The rows of the core's table of requests; shape (n, columns)."""
        places = self.address_map.places(burst)
        table = np.zeros((len(burst), d.REQUEST_COLUMNS), dtype=np.int64)
        columns = (write, places.bank, places.row, places.column, tick)
        for place, values in enumerate(columns):
            table[:, place] = values
        return table

    def new_state(self, requesters: int, *, by_hand: bool = False) -> d.State:
        """An idle channel at tick 0, without requests.

        Args:
            requesters: Requesters; what each may have outstanding is unbounded.
            by_hand: Whether answers are taken by ``dram_core.take_response``.
        """
        device, policy = self.device, self.policy
        slots, places = self._places()
        now = np.zeros(d.NOW_PLACES, dtype=np.int64)
        now[[d.CLOCK, d.OLDEST, d.SHOWN, d.TAKEN, d.LAST_TAKEN]] = -1
        now[[d.COLUMN_AT, d.ROW_AT, d.RESPONSE_AT, d.SCHEDULE_AT]] = d.NEVER
        now[d.WINDOW : d.WINDOW + 4] = _LONG_AGO
        now[d.REFRESH_AT] = now[d.REFRESH_DUE] = device.t_refi
        banks = np.zeros((device.banks, d.BANK_COLUMNS), dtype=np.int64)
        banks[:, [d.OPEN_ROW, d.ACTIVE]] = -1
        lists = np.zeros((2 * device.banks, d.ENTRY + places), dtype=np.int64)
        lists[:, [d.HIT, d.MISS]] = -1
        free = np.zeros((slots, 8), dtype=np.int64)
        free[:, d.NEXT_FREE] = np.arange(1, slots + 1)
        ports = np.zeros((requesters, d.PORT_COLUMNS), dtype=np.int64)
        ports[:, d.DEPTH] = d.NEVER
        ring = 1 << (policy.response_depth + slots).bit_length()
        return d.State(
            times=self._times(),
            rules=self._rules(by_hand),
            now=now,
            banks=banks,
            groups=np.zeros((device.bank_groups, 3), dtype=np.int64),
            lists=lists,
            slots=free,
            requests=np.zeros((0, d.REQUEST_COLUMNS), dtype=np.int64),
            ports=ports,
            responses=np.zeros((ring, 3), dtype=np.int64),
            entry=np.zeros((2, 1 + max(policy.read_depth, policy.write_depth)), dtype=np.int64),
            log=np.zeros((0, d.LOG_COLUMNS), dtype=np.int64),
        )

    def _places(self) -> tuple[int, int]:
        """Requests that can wait in all, and in one list."""
        policy, banks = self.policy, self.device.banks
        buffers = policy.read_depth + policy.write_depth
        return {
            Kind.RTL: (policy.read_depth, policy.read_depth),
            Kind.RAMULATOR: (buffers + banks, max(policy.read_depth, policy.write_depth)),
            Kind.DRAMSIM3: (buffers + banks * policy.bank_depth, policy.bank_depth),
            Kind.DRAMSYS: (banks * policy.bank_depth, policy.bank_depth),
        }[policy.kind]

    def _times(self) -> Int64s:
        times = [getattr(self.device, name) for name in _TIMES]
        if self.policy.activate_ticks is not None:
            times[d.ACTIVATE_TICKS] = self.policy.activate_ticks
        bank_bits = self.device.banks_per_group.bit_length() - 1
        return np.array([*times, self.device.edge_ticks - 1, bank_bits], dtype=np.int64)

    def _rules(self, by_hand: bool) -> Int64s:
        policy = self.policy
        own = (
            policy.kind, policy.read_depth, policy.write_depth, policy.bank_depth,
            policy.response_depth, policy.pass_limit, policy.write_above, policy.write_below,
            policy.row_hit_cap, policy.drain_level,
        )  # fmt: skip
        return np.array([*own, self.grain_requests, by_hand, False], dtype=np.int64)


def _longer(log: Int64s) -> Int64s:
    longer = np.zeros((max(1 << 16, 2 * len(log)), d.LOG_COLUMNS), dtype=np.int64)
    longer[: len(log)] = log
    return longer
