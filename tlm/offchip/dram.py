"""The DRAM behind a tile's own channel, command by command, as what it was asked for until now.

A channel is some pseudo-channels of a device, in turn (`tlm.memory.dram.interleaved`). What it does
from now on depends on what it was asked for, and on nothing else. So an answer's time is known when
the last request has come, until another one comes. Tiles that ask alike, as those of a group do,
are one history: it is computed once.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from tlm.memory.dram import layout, state
from tlm.memory.dram.address_map import interleave
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import DEVICES
from tlm.memory.dram.state import Asked, Head, Port, Response, Slot
from tlm.memory.dram.streams import CONTROLLER, INTERLEAVE_BYTES, pseudo_channels
from tlm.memory.tables import Int64s

#: Histories kept beside those that tiles are at: some tiles may be a few requests behind others.
_KEPT = 64


@dataclass(frozen=True, slots=True)
class DramOfTile:
    """Pseudo-channels of a device, whose clock is such that their peak is the channel's.

    Attributes:
        device: One of `DEVICES`.
        pseudo_channels: Of it.
        ticks_per_cycle: Of the device, in a cycle of the chip.
        more_cycles: From its answer to the channel's: what the channel's latency has besides.
    """

    device: str
    pseudo_channels: int
    ticks_per_cycle: Fraction
    more_cycles: int

    @classmethod
    def of(
        cls, device: str, bytes_per_cycle: Fraction, clock_hz: float, latency_cycles: int
    ) -> "DramOfTile":
        """What is nearest to a channel of so many bytes a cycle, and such a latency of a read."""
        count = pseudo_channels(device, bytes_per_cycle * Fraction(clock_hz))
        one = DEVICES[device]
        ticks = bytes_per_cycle * one.bl / (count * one.burst_bytes)
        unloaded = -(-(1 + one.t_rcd_rd + one.rl) // ticks)  # of a read whose bank is closed
        return cls(device, count, ticks, max(0, latency_cycles - int(unloaded)))

    @property
    def channel(self) -> DramChannel:
        """Each of them."""
        return DramChannel.of(DEVICES[self.device], CONTROLLERS[CONTROLLER])


class Ask(NamedTuple):
    """Units of a block, one a cycle.

    Attributes:
        now: Cycle in which the request comes.
        first: Cycle in which the first one is asked for.
        writes: Or reads.
        address: Of the first, in bytes.
        units: How many.
    """

    now: int
    first: int
    writes: bool
    address: int
    units: int


class _Part(NamedTuple):
    """A pseudo-channel.

    Attributes:
        m: Its records.
        requests: What it was asked for, shape (n, columns), as far as it has come.
        ended: The same when all is answered, if it is asked for nothing else.
        dropped: Requests before these.
    """

    m: Int64s
    requests: Int64s
    ended: Int64s
    dropped: int


class _Open(NamedTuple):
    """Where the bursts of a block are.

    Attributes:
        number: Of the block, among those that the channel was asked for.
        ask: What it was asked for.
        bursts: Of each pseudo-channel that has some those of the block, by their place in it.
        requests: The same, by their number among its requests.
    """

    number: int
    ask: Ask
    bursts: dict[int, Int64s]
    requests: dict[int, Int64s]


class History:
    """A channel after some requests.

    Attributes:
        asked: How many.
        times: Of the last block and of loads under way, by their numbers among the requests: the
            cycle in which each unit is answered, or taken if it is written. Shape (units,).
    """

    def __init__(
        self, of: "Histories", parts: Sequence[_Part], opened: Sequence[_Open], asked: int
    ) -> None:
        self._of, self._parts, self._open, self.asked = of, parts, opened, asked
        self._next: WeakValueDictionary[Ask, History] = WeakValueDictionary()
        self.times = {each.number: of.times(each, parts) for each in opened}

    def after(self, ask: Ask) -> "History":
        """The channel when it has been asked for more."""
        found = self._next.get(ask)
        if found is None:
            found = self._next[ask] = self._after(ask)
        self._of.recent.append(found)
        return found

    def _after(self, ask: Ask) -> "History":
        of = self._of
        where, address = of.bursts(ask)
        parts, bursts, requests = [*self._parts], {}, {}
        for number in {*where.tolist()}:
            bursts[number] = np.flatnonzero(where == number)
            before = parts[number].dropped + len(parts[number].requests)
            requests[number] = np.arange(before, before + len(bursts[number]))
        block = _Open(self.asked, ask, bursts, requests)
        # Later requests change no time in which a write is taken: it was the first in its turn.
        loads = (each for each in self._open if not each.ask.writes)
        opened = [each for each in loads if of.under_way(each, self._parts, ask.now)]
        for number in bursts:
            parts[number] = of.asked(parts[number], number, block, address, opened)
        return History(of, parts, [*opened, block], self.asked + 1)


class Histories:
    """What all histories of equal channels share.

    Attributes:
        first: Before the first request.
        recent: Of the last ones, which stay at hand for other tiles.

    Args:
        dram: A channel.
        unit_bytes: What it is asked for at a time.
    """

    def __init__(self, dram: DramOfTile, unit_bytes: int) -> None:
        self._dram, self._channel = dram, dram.channel
        self._of_unit = unit_bytes // self._channel.device.burst_bytes
        self.recent: deque[History] = deque(maxlen=_KEPT)
        none = self._channel.table(0, 0, np.zeros(0, dtype=np.int64))
        idle = _Part(self._channel.new_state(1), none, none, 0)
        self.first = History(self, [idle] * dram.pseudo_channels, [], 0)

    def bursts(self, ask: Ask) -> tuple[Int64s, Int64s]:
        """Of each burst of a block the pseudo-channel, and its address there."""
        device = self._channel.device
        count, grain = self._dram.pseudo_channels, INTERLEAVE_BYTES // device.burst_bytes
        first = ask.address // device.burst_bytes
        bursts = first + np.arange(ask.units * self._of_unit, dtype=np.int64)
        return interleave(bursts % (count * device.bursts), count, grain)

    def under_way(self, block: _Open, parts: Sequence[_Part], now: int) -> bool:
        """Whether a burst of a block is not answered before a cycle."""
        tick = self._tick(now)
        return any(
            (parts[number].ended[requests - parts[number].dropped, Asked.END_RESP] >= tick).any()
            for number, requests in block.requests.items()
        )

    def asked(
        self, part: _Part, number: int, block: _Open, address: Int64s, opened: Sequence[_Open]
    ) -> _Part:
        """A pseudo-channel when it is asked for the bursts of a block that are its own.

        Args:
            part: It.
            number: Its.
            block: The block.
            address: Of the block's bursts, each in its pseudo-channel.
            opened: Other blocks whose times are still looked for.
        """
        ask, own = block.ask, block.bursts[number]
        ticks = self._tick(ask.first + own // self._of_unit)
        more = self._channel.table(ticks, int(ask.writes), address[own])
        m, requests = part.m.copy(), np.concatenate((part.requests, more))
        layout.port_table(m)[0, Port.STOP] += len(more)
        m[Head.LEFT] += len(more)
        advance, now = self._channel.controller.advance, int(self._tick(ask.now))
        advance(m, requests, now - 1)  # of an idle one the refreshes
        m[Head.ACCEPT_AT] = min(m[Head.ACCEPT_AT], more[0, Asked.BEGIN_REQ])
        wanted = (each.requests[number] for each in opened if number in each.requests)
        first = (int(each[0]) - part.dropped for each in wanted)
        unanswered = int((requests[:, Asked.END_RESP] == 0).argmax())
        drop = min(unanswered, min(first, default=unanswered))
        if drop > len(requests) // 2:
            requests = requests[drop:].copy()
            _count_from(m, drop)
        else:
            drop = 0
        ended = requests.copy()
        advance(m.copy(), ended, state.NEVER)
        return _Part(m, requests, ended, part.dropped + drop)

    def times(self, block: _Open, parts: Sequence[_Part]) -> Int64s:
        """See `History`."""
        column = Asked.END_REQ if block.ask.writes else Asked.BEGIN_RESP
        ticks = np.empty(block.ask.units * self._of_unit, dtype=np.int64)
        for number, bursts in block.bursts.items():
            rows = block.requests[number] - parts[number].dropped
            ticks[bursts] = parts[number].ended[rows, column]
        per_cycle, of = self._dram.ticks_per_cycle.as_integer_ratio()
        cycles = -(-ticks * of // per_cycle)
        if not block.ask.writes:
            cycles += self._dram.more_cycles
        in_order: Int64s = np.maximum.accumulate(cycles.reshape(-1, self._of_unit).max(axis=1))
        return in_order

    def _tick(self, cycles: Any) -> Any:
        """The first tick in or after a cycle, or each of an array."""
        ticks, of = self._dram.ticks_per_cycle.as_integer_ratio()
        return -(-cycles * ticks // of)


def _count_from(m: Int64s, drop: int) -> None:
    """Number a pseudo-channel's requests without the first ones."""
    layout.port_table(m)[:, [Port.NEXT, Port.STOP]] -= drop
    behind_ring = m[Head.RING] + (m[Head.RING_MASK] + 1) * state.RESPONSE_COLUMNS
    ring = m[m[Head.RING] : behind_ring].reshape(-1, state.RESPONSE_COLUMNS)
    ring[:, Response.REQUEST] -= drop
    slots = m[behind_ring : m[Head.LOG]].reshape(-1, state.SLOT_COLUMNS)
    slots[:, Slot.REQUEST] -= drop
