"""Closed forms of the network without contention: the `perf` level, and the arithmetic of `lt`.

The laws are those of rtl/noc/router.sv; their constants are measured (calibration/routers).
"""

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError, choose, hold_least

#: How a router sends a multicast: each branch reads the buffer at its own pace; a flit goes when
#: the last one has left by all branches, by each as soon as it can; by all in the same cycle.
FORKS = ("own-pace", "flit-by-flit", "lockstep")
#: Who gets an output or a reduction unit: the next requester after the last winner; the first in
#: line; or the winner of a tree of pairs that the bits of a pointer decide, which goes to the next
#: request each time.
ARBITERS = ("round-robin", "fixed", "tree")
#: Which reductions ask for a router's unit: those whose operands have all come; or each from its
#: first operand on, so that who is first in line keeps the unit for a partner that is late.
UNIT_CHOICES = ("complete", "first")
#: Whether a message is sent by request, acknowledge and data, and what an output is locked for from
#: its first data flit to its last: for the message; or for its receiver, so that messages to it
#: share the output, flit by flit in the order of arbitration.
CHANNELS = ("none", "output", "receiver")


_Hops = TypeVar("_Hops", int, NDArray[np.int64])  # of a way, or of each of several


@dataclass(frozen=True, slots=True)
class NocTiming:
    """What the timing of a mesh is made of.

    Attributes:
        hop_cycles: From the write into a router's buffer to the write into the next one.
        ejection_cycles: From the write into the last router's buffer to the tile's port.
        fifo_depth: Flits that a router's input buffer holds.
        multicast_gap_cycles: Idle cycles between multicast packets as long as the buffer.
        flit_bytes: Payload of a flit.
        output_depth: Flits that a router's output buffers; 0 without.
        tile_depth: The same of the output to the tile; None: as the others.
        reduce_cycles: From the meeting of operands to their result.
        y_first: Packets go along the column first.
        cut_through: A multicast branch and a reduction wait for room for the whole packet.
        loopback: A tile in the destinations of its own multicast gets a copy.
        fork: One of `FORKS`.
        arbiter: One of `ARBITERS`.
        line: Inputs (0 local, 1 north, 2 east, 3 south, 4 west, 5 the reduction unit) as they stand
            in line at an output after reset.
        return_cycles: From a flit's leaving an input buffer until its place can be filled again; 0:
            in the same cycle, also where the buffer is full.
        lock_on_transfer: An output is a packet's when its first flit goes; until then another that
            comes may be first in line. Else it is from the cycle of the choice on.
        turnaround_cycles: Idle cycles of an output between packets.
        link_interval_cycles: From flit to flit on a link.
        reduce_interval_cycles: From flit to flit of a reduction in a router.
        operands_share: Operands wait for each other in the input buffers, in the way of all others;
            one that meets no other passes as a unicast. Else they have buffers of their own.
        operand_limit: Most operands that a router combines.
        unit_choice: One of `UNIT_CHOICES`. Inputs stand in line at the unit as at the outputs.
        unit_arbiter: One of `ARBITERS`: which reduction gets the unit of those that ask.
        unit_lock_on_transfer: The unit is a reduction's when its first result is begun; until then
            another that comes may be first in line. Else it is from the cycle of the choice on.
        unit_places: Flits of results that it holds; None: as many as it begins in
            ``reduce_cycles``.
        unit_return_cycles: From a result's leaving the unit until its place can be filled again.
        channel: One of `CHANNELS`. With locks a tile's interface takes a message's head and holds
            it until the receiver has acknowledged; all but data wait where an output is locked.
        request_cycles: From the head's coming into the interface to the offer of its request.
        acknowledge_cycles: From a request's arrival to the offer of its acknowledge.
        data_cycles: From an acknowledge's arrival to the offer of the first data flit.
    """

    hop_cycles: int
    ejection_cycles: int
    fifo_depth: int
    multicast_gap_cycles: int
    flit_bytes: int
    output_depth: int = 0
    tile_depth: int | None = None
    reduce_cycles: int = 1
    y_first: bool = False
    cut_through: bool = True
    loopback: bool = True
    fork: str = "own-pace"
    arbiter: str = "round-robin"
    line: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    return_cycles: int = 1
    lock_on_transfer: bool = False
    turnaround_cycles: int = 0
    link_interval_cycles: int = 1
    reduce_interval_cycles: int = 1
    operands_share: bool = False
    operand_limit: int = 5
    unit_choice: str = "complete"
    unit_arbiter: str = "round-robin"
    unit_lock_on_transfer: bool = False
    unit_places: int | None = None
    unit_return_cycles: int = 0
    channel: str = "none"
    request_cycles: int = 1
    acknowledge_cycles: int = 1
    data_cycles: int = 1

    def __post_init__(self) -> None:
        """Hold that it can be built.

        Raises:
            InputError: naming the field.
        """
        least = {
            "hop_cycles": 1 + int(self.output_depth > 0),
            "ejection_cycles": 1 + int(self.tile_places > 0),
            "fifo_depth": 1,
            "multicast_gap_cycles": 0,
            "flit_bytes": 1,
            "output_depth": 0,
            "tile_places": 0,
            "reduce_cycles": 0,
            "return_cycles": 0,
            "turnaround_cycles": 0,
            "link_interval_cycles": 1,
            "reduce_interval_cycles": 1,
            "operand_limit": 1,
            "unit_return_cycles": 0,
            "result_places": int(self.reduce_cycles > 0 or self.unit_lock_on_transfer),
            "request_cycles": 1,
            "acknowledge_cycles": 1,
            "data_cycles": 1,
        }
        for name, allowed in least.items():
            hold_least(name, getattr(self, name), allowed)
        choose("fork", self.fork, FORKS)
        choose("arbiter", self.arbiter, ARBITERS)
        choose("unit_choice", self.unit_choice, UNIT_CHOICES)
        choose("unit_arbiter", self.unit_arbiter, ARBITERS)
        choose("channel", self.channel, CHANNELS)
        if self.channel == "receiver" and (rest := self.turnaround_cycles):
            raise InputError(f"turnaround_cycles: found {rest}; allowed with channel receiver: 0")
        if sorted(self.line) != [0, 1, 2, 3, 4, 5]:
            raise InputError(f"line: found {list(self.line)}; allowed: 0 to 5, each once")
        if self.operands_share and self.cut_through:
            raise InputError("operands_share: found with cut_through; allowed: one of them")
        if self.fork == "lockstep" and self.cut_through and self.output_depth:
            raise InputError(
                "fork: found lockstep with cut_through and output buffers; allowed: two of them"
            )

    @property
    def launch_cycles(self) -> int:
        """From the start of a transfer to its first flit: none of the network's (`Launching`)."""
        return 0

    @property
    def input_places(self) -> int:
        """Flits that a router's input buffer holds."""
        return self.fifo_depth

    @property
    def packet_bound(self) -> int:
        """Flits of the longest packet of a multicast."""
        return self.fifo_depth

    @property
    def tile_places(self) -> int:
        """Flits that the output to the tile buffers."""
        return self.output_depth if self.tile_depth is None else self.tile_depth

    @property
    def result_places(self) -> int:
        """Flits of results that a reduction unit holds."""
        if self.unit_places is None:
            return -(-self.reduce_cycles // self.reduce_interval_cycles)
        return self.unit_places

    @property
    def locks(self) -> bool:
        """Whether a message's data lock their way, after a request and an acknowledge."""
        return self.channel != "none"

    def head_cycles(self, hops: _Hops) -> _Hops:
        """From the head flit's injection handshake to its ejection handshake."""
        way = hops * self.hop_cycles + self.ejection_cycles
        return way + self.set_up_cycles(hops) if self.locks else way

    def way_cycles(self, hops: _Hops) -> _Hops:
        """From a flit's write into the first router's buffer to its ejection."""
        return hops * self.hop_cycles + self.ejection_cycles

    def set_up_cycles(self, hops: _Hops) -> _Hops:
        """From the head's coming into the interface to its leaving for the router."""
        if not self.locks:
            return 0 * hops
        own = self.request_cycles + self.acknowledge_cycles + self.data_cycles
        return 2 * self.way_cycles(hops) + own

    def unicast_cycles(self, hops: int, flits: int) -> int:
        """From the head flit's injection handshake to the tail flit's ejection handshake."""
        return self.head_cycles(hops) + (flits - 1) * (self.link_interval_cycles if hops else 1)

    def multicast_cycles(self, hops: int, flits: int) -> int:
        """The same for a multicast whose farthest destination is ``hops`` away.

        Raises:
            InputError: with locked channels, which carry unicasts alone.
        """
        self._hold_free("multicast")
        waits = self._packet_waits(flits, self.multicast_gap_cycles) if hops else 0
        return self.unicast_cycles(hops, flits) + waits

    def reduction_cycles(self, hops: int, flits: int) -> int:
        """The same for a reduction whose farthest operand is ``hops`` from the root.

        All operands are offered together, and have buffers of their own.

        Raises:
            InputError: with locked channels, which carry unicasts alone.
        """
        self._hold_free("reduction")
        per_hop = self.hop_cycles + self.reduce_cycles
        waits = self._packet_waits(flits, per_hop) if hops else 0
        interval = max(self.reduce_interval_cycles, self.link_interval_cycles if hops else 1)
        latency = self.ejection_cycles + self.reduce_cycles + hops * per_hop
        results = self.cut_results_cycles if hops else self.results_cycles
        return latency + results(flits, interval) + waits

    def results_cycles(self, flits: _Hops, interval: _Hops) -> _Hops:
        """From the first result of a unit to the last one.

        A place of the unit is filled again when its result has been made and has left, and the
        place has come back: at most so many results a round as it has places.

        Args:
            flits: Flits of the reduction, or of each of several.
            interval: Cycles from result to result while there are places.
        """
        round_cycles, places = self.reduce_cycles + self.unit_return_cycles, self.result_places
        cycles = (flits - 1) * interval
        if not places:
            return cycles
        rounds, rest = (flits - 1) // places, (flits - 1) % places
        waits = rounds * round_cycles + rest * interval - cycles
        found: _Hops = cycles + waits * ((waits > 0) & (flits > 1))
        return found

    def cut_results_cycles(self, flits: _Hops, interval: _Hops) -> _Hops:
        """The same of packets as long as a buffer, and a rest, but for what these wait for room.

        Where one waits all places come back. Only those within a packet are waited for.
        """
        full, rest = flits // self.fifo_depth, flits % self.fifo_depth
        whole = full * (self.results_cycles(self.fifo_depth + 0 * flits, interval) + interval)
        last = self.results_cycles(rest + (rest == 0), interval)
        found: _Hops = whole + last * (rest > 0) - interval * (rest == 0)
        return found

    def _hold_free(self, what: str) -> None:
        if self.locks:
            raise InputError(f"channel: found {self.channel} with a {what}; allowed: unicasts")

    def _packet_waits(self, flits: int, gap_cycles: int) -> int:
        """What the packets of a transfer wait that need room for all of themselves.

        One that is longer than a buffer is cut into packets as long as one, and a rest. Each full
        packet but the first waits until the buffer behind it is empty, ``gap_cycles`` after the
        one before has left it; the rest until there is room for it.
        """
        full, rest = divmod(flits, self.fifo_depth)
        waits = max(full - 1, 0) * gap_cycles
        if full and rest:
            waits += max(rest + gap_cycles - self.fifo_depth, 0)
        return waits


@dataclass(frozen=True, slots=True)
class Launching(NocTiming):
    """A network whose tiles take some cycles from the start of a transfer to its first flit.

    For closed forms alone: the engines know the costs of tiles themselves. A credit has none.
    """

    launch_cycles: int = 0

    @classmethod
    def of(cls, timing: NocTiming, launch_cycles: int) -> "Launching":
        """The same network with such tiles."""
        own = {field.name: getattr(timing, field.name) for field in fields(NocTiming)}
        return cls(**own, launch_cycles=launch_cycles)


@dataclass(frozen=True, slots=True)
class Profiled(NocTiming):
    """A network that a chip's profile describes: a message alone is as fast as if it were not cut.

    So ``fifo_depth`` is as good as none. What a buffer holds, and the packets into which multicasts
    that meet others are cut, are other figures.
    """

    buffer_flits: int = 1
    packet_flits: int = 1

    @property
    def packet_bound(self) -> int:
        """See `NocTiming`."""
        return min(self.packet_flits, self.buffer_flits)

    @property
    def input_places(self) -> int:
        """See `NocTiming`."""
        return self.buffer_flits
