"""A DRAM channel as a memory in a SimPy simulation."""

from dataclasses import dataclass

import numpy as np
from simpy import Environment, Event

from tlm.errors import InputError
from tlm.lockstep import CHANNEL_WORKS, call_behind
from tlm.memory.dram import clock, ports
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.layout import port_table
from tlm.memory.dram.state import Asked, Head, Port
from tlm.memory.tables import grown
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.sockets import Answer, BlockingCall, Phase, Sync, TargetSocket


@dataclass(slots=True)
class _Open:
    """A transaction, and how many of its bursts are not taken or not answered."""

    payload: GenericPayload
    untaken: int
    unanswered: int
    ended: Event | None  # of blocking transport


class DramMemory:
    """A memory whose cycles are the channel's ticks.

    Requests of a tick are taken as in ``DramChannel.simulate``: END_REQ is withheld while there is
    no place, and a response that is not taken keeps its place. A transaction longer than a burst is
    so many requests, ended by the last; it begins and ends with whole bursts.
    """

    posts_writes: bool = True

    def __init__(self, env: Environment, channel: DramChannel) -> None:
        self.socket = TargetSocket(self)
        self._env = env
        self._channel = channel
        self._m = channel.new_state(1)
        self._m[Head.BY_HAND] = 1
        self._port = port_table(self._m)[0]
        self._requests = np.zeros((0, len(Asked)), dtype=np.int64)
        self._open: dict[int, _Open] = {}  # by the number of the request
        self._shown_last = -1
        self._look_at: int | None = None
        self._ends = False  # the answer that was refused is taken in this tick

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Carry the transaction out, after the delay; the caller's new delay is 0."""
        yield self._env.timeout(delay_cycles)
        ended = self._env.event()
        self._ask(payload, ended)
        yield ended
        return 0

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Be offered a request, or be told that an answer was taken."""
        assert delay_cycles == 0, "this memory is told of phases when they begin"
        if phase is Phase.END_RESP:
            self._ends = True
            self._look()
            return Sync.COMPLETED, phase, 0
        self._ask(payload)
        return Sync.ACCEPTED, phase, 0

    def _ask(self, payload: GenericPayload, ended: Event | None = None) -> None:
        burst_bytes = self._channel.device.burst_bytes
        count, rest = divmod(payload.length_bytes, burst_bytes)
        if rest or payload.address % burst_bytes or count < 1:
            raise InputError(
                f"transaction of {payload.length_bytes} bytes at {payload.address}: "
                f"must be whole bursts of {burst_bytes} bytes"
            )
        now = int(self._env.now)
        m, first = self._m, int(self._port[Port.STOP])
        stop = first + count
        if stop > len(self._requests):
            self._requests = grown(self._requests, stop)
        bursts = payload.address // burst_bytes + np.arange(count)
        self._requests[first:stop] = self._channel.table(
            now, payload.command is Command.WRITE, bursts
        )
        self._open |= dict.fromkeys(range(first, stop), _Open(payload, count, count, ended))
        # What has gone by while nobody asked: refreshes.
        idle = not m[Head.LEFT]
        self._port[Port.STOP] = stop
        m[Head.LEFT] += count
        if idle:
            self._channel.controller.advance(m, self._requests, now - 1)
        m[Head.ACCEPT_AT] = min(m[Head.ACCEPT_AT], now)
        self._look()

    def _look(self) -> None:
        """Come back in the next tick in which something may happen."""
        if not self._m[Head.LEFT]:
            return
        now = int(self._env.now)
        tick = now if self._ends else max(clock.next_tick(self._m), now)
        if self._look_at is not None and self._look_at <= tick:
            return
        self._look_at = tick
        call_behind(self._env, CHANNEL_WORKS, tick - now, lambda: self._work(tick))

    def _work(self, tick: int) -> None:
        if self._look_at != tick:
            return  # overtaken by an earlier look
        self._look_at = None
        m = self._m
        if clock.next_tick(m) <= tick:
            self._channel.controller.advance(m, self._requests, tick)
            taken = int(m[Head.TAKEN])
            if taken >= 0:
                self._taken(self._open[taken])
        if self._ends:  # its place is free from the next tick on
            self._ends = False
            self._take()
        while (shown := int(m[Head.SHOWN])) >= 0 and shown != self._shown_last:
            self._shown_last = shown
            self._shown(shown)
            ports.show_responses(m, self._requests, tick)
        self._look()

    def _taken(self, one: _Open) -> None:
        one.untaken -= 1
        if not one.untaken and one.ended is None:
            self.socket.nb_transport_bw(one.payload, Phase.END_REQ, 0)

    def _shown(self, number: int) -> None:
        one = self._open.pop(number)
        one.unanswered -= 1
        if one.unanswered:
            self._take()
            return
        one.payload.response_status = ResponseStatus.OK
        if one.ended is not None:
            self._take()
            one.ended.succeed()
        elif self.socket.nb_transport_bw(one.payload, Phase.BEGIN_RESP, 0)[0] is Sync.COMPLETED:
            self._take()

    def _take(self) -> None:
        ports.take_response(self._m, self._requests, int(self._env.now))
