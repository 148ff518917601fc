"""Prefill and decoding in pools of their own (DistServe, OSDI 2024; NpuSim, section 4.3.1).

The prefill pool computes prompts by a scheduler of its own and emits the first token. A request
that has more to emit then waits for the decode pool. Between two iterations the decode pool admits
those for whose keys and values it has room, first come first served, and begins their transfer over
the link. When the last byte has arrived the prefill pool's blocks are free, and the request decodes
from the next iteration on. A request that the decode pool preempts goes back to the front of the
prefill pool's queue.

A pool may have replicas, which get requests in turns, by their numbers.

A word from one pool reaches the other a picosecond later. So whatever is due at a time has been
announced before it, and the order in which two pools act at the same time does not matter.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from workloads.machine.kv_levels import blocks_of
from workloads.serving.engine.clock import EngineClock
from workloads.serving.engine.engine import Engine, Iteration, Stretch, until
from workloads.serving.engine.link import Carrier
from workloads.serving.load.request import Request
from workloads.serving.schedulers.base import Plan, Queue


class DecodeOnly:
    """The decode pool's scheduler: no prompts."""

    keeps_prompts = False

    def plan(self, queue: Queue) -> Plan:
        """Nothing beside the decoding requests."""
        return Plan()


class Pool(Engine):
    """An engine that hears from another.

    Args:
        clock: Of both.
        args: Of an ``Engine``.
        options: Of an ``Engine``.
    """

    def __init__(self, clock: EngineClock, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._clock = clock

    def notify(self, time_ps: int) -> None:
        """Something that matters becomes due at a time yet to come."""
        if isinstance(self._under_way, Iteration):
            return  # it plans anew anyhow
        if isinstance(self._under_way, Stretch):
            self._under_way = until(self._under_way, time_ps)
        self._clock.wake(self)


class PrefillPool(Pool):
    """Computes prompts and hands the requests on."""

    decode: Sequence["DecodePool"]

    def __init__(self, clock: EngineClock, *args: Any, **options: Any) -> None:
        super().__init__(clock, *args, **options)
        self._releases: list[tuple[int, int, Request, int]] = []

    def release_at(self, time_ps: int, request: Request, blocks: int) -> None:
        """A request's keys and values will have left."""
        heappush(self._releases, (time_ps, request.index, request, blocks))
        self.notify(time_ps)

    def take_back(self, request: Request, time_ps: int) -> None:
        """A preempted request starts over."""
        self.waiting.put_first(request, time_ps)
        self.notify(time_ps)

    def _begin(self) -> Iteration | Stretch | None:
        while self._releases and self._releases[0][0] <= self._now_ps:
            *_, request, blocks = heappop(self._releases)
            self.kv.release(request, blocks)
        return super()._begin()

    def _arrival_ps(self) -> int | None:
        return _earliest(super()._arrival_ps(), self._releases[0][0] if self._releases else None)

    def _decode_on(self, request: Request) -> None:
        self.decode[request.index % len(self.decode)].offer(request, self._now_ps + 1)


class DecodePool(Pool):
    """Takes requests over with their keys and values.

    Args:
        link: What they come over.
        prefill: Where they come from: replicas, which have requests in turns.
        kv_bytes_per_token: Size of the keys and values of a token.
        clock: Of both pools.
        args: Of an ``Engine``.
        options: Of an ``Engine``.
    """

    def __init__(
        self,
        link: Carrier,
        prefill: Sequence[PrefillPool],
        kv_bytes_per_token: int,
        clock: EngineClock,
        *args: Any,
        **options: Any,
    ) -> None:
        super().__init__(clock, *args, **options)
        self.link = link
        self._prefill = prefill
        self._kv_bytes_per_token = kv_bytes_per_token
        self._coming: list[tuple[int, int, Request]] = []

    def offer(self, request: Request, time_ps: int) -> None:
        """A request is ready to be taken over from a time on."""
        self.waiting.put_last(request, time_ps)
        self.notify(time_ps)

    def _begin(self) -> Iteration | Stretch | None:
        while self._coming and self._coming[0][0] <= self._now_ps:
            *_, request = heappop(self._coming)
            self._decoders.join(request)
            self._recorder.joined(request, self._replica)
        self._secure_blocks()
        self._take_over()
        return super()._begin()

    def _take_over(self) -> None:
        now = self._now_ps
        while (request := self.waiting.first(now)) is not None:
            running = self._decoders.sequences + len(self._coming)
            if running >= self._max_sequences:
                return
            if not self.kv.admit(request, self._decoders, spare=running > 0):
                return
            self.waiting.take(request)
            prefill = request.index % len(self._prefill)
            size_bytes = request.to_prefill * self._kv_bytes_per_token
            arrival = self.link.send(size_bytes, now, (prefill, self._replica))
            heappush(self._coming, (arrival, request.index, request))
            self._prefill[prefill].release_at(arrival, request, blocks_of(request.to_prefill))

    def _arrival_ps(self) -> int | None:
        return _earliest(super()._arrival_ps(), self._coming[0][0] if self._coming else None)

    def _give_back(self, request: Request) -> None:
        prefill = self._prefill[request.index % len(self._prefill)]
        prefill.take_back(request, self._now_ps + 1)


def _earliest(*times_ps: int | None) -> int | None:
    return min((time for time in times_ps if time is not None), default=None)
