"""One serving run."""

import gc
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from tlm.errors import InputError
from workloads.serving.engine.budgeted.engine import BudgetedEngine, budgeted_engine
from workloads.serving.engine.checkpoint import Checkpoint
from workloads.serving.engine.clock import EngineClock
from workloads.serving.engine.disaggregation import DecodeOnly, DecodePool, PrefillPool
from workloads.serving.engine.engine import DEFAULT_MAX_SEQUENCES, Engine
from workloads.serving.engine.kv import BlockPool, KvCache
from workloads.serving.engine.kv_routes import KvRoutes, RoutedLinks
from workloads.serving.engine.link import Carrier, Link
from workloads.serving.engine.speculation import Speculation
from workloads.serving.engine.spill import SpillingPool
from workloads.serving.engine.summary import AnyEngine, Between, summary
from workloads.serving.engine.waiting import Waiting
from workloads.serving.load.traces import Trace
from workloads.serving.price.cost import ServingModel
from workloads.serving.result.metrics import Recorder, Slo
from workloads.serving.result.rows import RowWriter
from workloads.serving.schedulers import Scheduler

Progress = Callable[[int, int], None]

#: Steps of the clock between two looks at progress and checkpoint.
_STEPS_BETWEEN = 1000
_OBJECTS_BETWEEN = 100_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a run.

    Attributes:
        kv_capacity_tokens: Key-value memory (of each pool), instead of the model's own.
        max_sequences: Most requests admitted at a time (in each pool, to each of its ranks).
        kv_sram_tokens: Key-value memory in SRAM before it, which then is a ring for what spills;
            None: what the model has set aside, and without any all is one level.
        jump: Whether to take alike iterations in one stretch; the figures are the same.
    """

    kv_capacity_tokens: int | None = None
    max_sequences: int = DEFAULT_MAX_SEQUENCES
    kv_sram_tokens: int | None = None
    jump: bool = True

    def __post_init__(self) -> None:
        """Refuse limits that cannot be.

        Raises:
            InputError: if one is below 1.
        """
        if self.max_sequences < 1:
            raise InputError(f"max sequences: found {self.max_sequences}; allowed: 1 or more")

    def kv_cache(self, model: ServingModel) -> KvCache:
        """The key-value memory of a model.

        Raises:
            InputError: if the model has not set aside as much SRAM.
        """
        own, sram, most = self.kv_capacity_tokens, self.kv_sram_tokens, model.kv_sram_tokens
        if sram is not None and (most is None or sram > most):
            raise InputError(
                f"keys and values in SRAM: found {sram} tokens; allowed: the {most or 0} that the "
                "model on its chip has set aside"
            )
        sram = most or None if sram is None else sram
        capacity = model.kv_capacity_tokens if own is None else own
        return BlockPool(capacity) if sram is None else SpillingPool(sram, capacity)


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told of a run.

    Attributes:
        progress: Called now and then with the finished and all requests.
        rows: Writes the row of each finished request.
        checkpoint: Keeps the state of the run now and then, and what a killed run goes on from.
        made_of: What the iterations were made of, and how often, is added to it by pool.
    """

    progress: Progress | None = None
    rows: RowWriter | None = None
    checkpoint: Checkpoint | None = None
    made_of: dict[str, Counter[Hashable]] = field(default_factory=dict)


class Serving:
    """Engines that serve a trace together, and their clock.

    Args:
        trace: The requests.
        slo: What they should attain.
        watch: Who is told of the run.
        link: Between the pools, if there are two.
        pools: Those pools.
        idle_w: Power of the units of the chip that serve nothing.

    Raises:
        InputError: if there is a checkpoint that cannot be used.
    """

    def __init__(
        self,
        trace: Trace,
        slo: Slo | None,
        watch: Watch,
        link: Carrier | None = None,
        pools: "Pools | None" = None,
        idle_w: float = 0.0,
    ) -> None:
        self.recorder = Recorder(slo, int(trace.arrival_ps[-1]))
        self._trace = trace
        self._watch = watch
        self._link = link
        self._pools, self._idle_w = pools, idle_w
        self._engines: dict[str, list[tuple[AnyEngine, ServingModel, float]]] = {}
        self._steps_between = _STEPS_BETWEEN
        self._state = None if watch.checkpoint is None else watch.checkpoint.load()
        with self._resuming():
            now_ps = 0 if self._state is None else int(self._state["now_ps"])
        self.clock = EngineClock(now_ps)

    def add(self, name: str, engine: AnyEngine, model: ServingModel, share: float = 1.0) -> None:
        """Add an engine, which has its share of the chip; those of a name are replicas.

        Raises:
            InputError: if a request can never fit its memory.
        """
        _check_fits(self._trace, engine.kv.most_tokens())
        self._engines.setdefault(name, []).append((engine, model, share))
        if isinstance(engine, BudgetedEngine):
            self._steps_between = 1

    def run(self) -> dict[str, Any]:
        """Let the clock run until every request has finished, and return the figures.

        Raises:
            InputError: if the checkpoint's state is not that of such a run, or if nothing happens
                any more before the end: the scheduler forgets requests.
        """
        checkpoint, rows = self._watch.checkpoint, self._watch.rows
        with self._resuming():
            if self._state is not None:
                self._resume(self._state)
            self.recorder.row = None if rows is None else rows.add
        for _, engine in self._numbered():
            self.clock.wake(engine)
        requests, told = len(self._trace), -1
        with seldom_collected():
            while self.recorder.finished < requests:
                self._advance()
                if checkpoint and checkpoint.is_due and self.recorder.finished < requests:
                    checkpoint.save(self._copy())
                if self._watch.progress and self.recorder.finished > told:
                    told = self.recorder.finished
                    self._watch.progress(told, requests)
        if checkpoint:
            checkpoint.remove()
        for name, replicas in self._engines.items():
            for engine, *_ in replicas:
                made_of = engine.usage.counted().made_of
                self._watch.made_of.setdefault(name, Counter()).update(made_of)
        if self._link is None or self._pools is None:
            return summary(self.recorder, self._engines, None, self._idle_w)
        between = Between(self._link, self._pools.carried_byte_j)
        return summary(self.recorder, self._engines, between, self._pools.idle_w)

    def _numbered(self) -> Iterator[tuple[str, AnyEngine]]:
        """All engines, by names of their own."""
        for name, replicas in self._engines.items():
            for number, (engine, *_) in enumerate(replicas):
                yield (f"{name} {number}" if number else name), engine

    def _stepped(self) -> Iterator[tuple[str, Engine]]:
        """Those of which a checkpoint keeps the state: with one there are no others."""
        for name, engine in self._numbered():
            if isinstance(engine, Engine):
                yield name, engine

    def _advance(self) -> None:
        if self.clock.run(self._steps_between):
            return
        if left := len(self._trace) - self.recorder.finished:
            raise InputError(_forgotten(left, chain(*self._engines.values())))

    def _copy(self) -> dict[str, Any]:
        """The state, in one piece: what the parts share stays shared."""
        rows = self._watch.rows
        return {
            "now_ps": self.clock.now_ps,
            "recorder": self.recorder,
            "engines": {name: engine.state() for name, engine in self._stepped()},
            "link": self._link,
            "rows": None if rows is None else rows.state(),
        }

    def _resuming(self) -> AbstractContextManager[None]:
        checkpoint = self._watch.checkpoint
        return nullcontext() if checkpoint is None else checkpoint.resuming()

    def _resume(self, state: dict[str, Any]) -> None:
        self.recorder, self._link = state["recorder"], state["link"]
        for name, engine in self._stepped():
            engine.resume(state["engines"][name], self._trace)
        if self._watch.rows is not None:
            self._watch.rows.resume(state["rows"])


def run(
    trace: Trace,
    scheduler: Scheduler,
    model: ServingModel,
    *,
    slo: Slo | None = None,
    limits: Limits | None = None,
    speculation: Speculation | None = None,
    watch: Watch | None = None,
    beside: Sequence[Scheduler] = (),
    share: float = 1.0,
    idle_w: float = 0.0,
) -> dict[str, Any]:
    """Serve a trace to the end and return its figures (see ``summary``).

    Args:
        trace: The requests, which replicas get in turns.
        scheduler: Plans the iterations.
        model: The model on its chip, or on a part of it for each replica.
        slo: What requests should attain.
        limits: What bounds the run.
        speculation: Drafts for the decoding requests; None: a token a step.
        watch: Who is told of the run.
        beside: Schedulers of further replicas.
        share: Part of the chip that a replica is.
        idle_w: Power of what is in no replica.

    Raises:
        InputError: if a request can never fit.
    """
    limits, watch = limits or Limits(), watch or Watch()
    serving = Serving(trace, slo, watch, idle_w=idle_w)
    schedulers = scheduler, *beside
    plain = not beside and speculation is None and watch.checkpoint is None and limits.jump
    parts = model, serving.recorder, limits.kv_cache(model), limits.max_sequences
    if plain and (many := budgeted_engine(trace, scheduler, *parts)) is not None:
        serving.add("all", many, model, share)
        return serving.run()
    for number, own in enumerate(schedulers):
        engine = Engine(
            Waiting(trace, number, len(schedulers)),
            own,
            model,
            serving.recorder,
            kv=limits.kv_cache(model),
            max_sequences=limits.max_sequences,
            speculation=speculation,
            jump=limits.jump,
            replica=number,
        )
        serving.add("all", engine, model, share)
    return serving.run()


@dataclass(frozen=True, slots=True)
class Pools:
    """A chip in two: who computes prompts, who decodes, and what lies between.

    Attributes:
        prefill: The model on the prefill pool.
        decode: The model on the decode pool.
        prefill_share: Share of the chip that the prefill pool is.
        decode_share: Share that the decode pool is.
        kv_bytes_per_token: Keys and values of a token that cross the link: copies on several units
            of a pool are made there.
        link_bytes_per_s: Bandwidth of the link.
        link_latency_s: Its latency.
        carried_byte_j: Energy of a byte that crosses it, read and written; None: no figures.
        idle_w: Power of the units in neither pool.
        replicas: Of each pool, that its share is of.
        routes: What keys and values cross instead of a link: links of the chip.
    """

    prefill: ServingModel
    decode: ServingModel
    prefill_share: float
    decode_share: float
    kv_bytes_per_token: int
    link_bytes_per_s: float
    link_latency_s: float = 0.0
    carried_byte_j: float | None = 0.0
    idle_w: float = 0.0
    replicas: tuple[int, int] = (1, 1)
    routes: KvRoutes | None = None


def run_disaggregated(
    trace: Trace,
    scheduler: Scheduler,
    pools: Pools,
    *,
    slo: Slo | None = None,
    limits: Limits | None = None,
    speculation: Speculation | None = None,
    watch: Watch | None = None,
    beside: Sequence[Scheduler] = (),
) -> dict[str, Any]:
    """Serve a trace with prefill and decoding in pools of their own, otherwise as ``run`` does.

    Args:
        trace: The requests.
        scheduler: Plans the prefill pool's iterations.
        pools: The two pools and the link.
        slo: What requests should attain.
        limits: What bounds each pool.
        speculation: Drafts for the decoding requests; None: a token a step.
        watch: Who is told of the run.
        beside: Schedulers of further replicas of the prefill pool.

    Raises:
        InputError: if a request can never fit, or the link cannot be.
    """
    limits = limits or Limits()
    link: Carrier = Link(pools.link_bytes_per_s, pools.link_latency_s)
    if pools.routes is not None:
        link = RoutedLinks(pools.routes)
    serving = Serving(trace, slo, watch or Watch(), link, pools)
    schedulers = scheduler, *beside
    prefill = [
        PrefillPool(
            serving.clock,
            Waiting(trace, number, len(schedulers)),
            own,
            pools.prefill,
            serving.recorder,
            kv=limits.kv_cache(pools.prefill),
            max_sequences=limits.max_sequences,
            replica=number,
        )
        for number, own in enumerate(schedulers)
    ]
    decode = [
        DecodePool(
            link,
            prefill,
            pools.kv_bytes_per_token,
            serving.clock,
            Waiting(),
            DecodeOnly(),
            pools.decode,
            serving.recorder,
            kv=limits.kv_cache(pools.decode),
            max_sequences=limits.max_sequences,
            speculation=speculation,
            jump=limits.jump,
            replica=number,
        )
        for number in range(pools.replicas[1])
    ]
    for each in prefill:
        each.decode = decode
        serving.add("prefill", each, pools.prefill, pools.prefill_share / len(prefill))
    for other in decode:
        serving.add("decode", other, pools.decode, pools.decode_share / len(decode))
    return serving.run()


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Look for circles of objects seldom: runs and prices make many objects, none in circles."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _forgotten(left: int, engines: Iterable[tuple[AnyEngine, ServingModel, float]]) -> str:
    """Which requests a scheduler has forgotten, and what its plan lacks."""
    never = "1 request is never served" if left == 1 else f"{left} requests are never served"
    under_way = [request for engine, _, _ in engines for request in engine.prefilling]
    if not under_way:
        why = "the scheduler admits none, though nothing runs; a plan calls queue.admit()"
        return f"{never}: {why}"
    first = under_way[0]
    return (
        f"{never}: the scheduler forgets cut prompts, such as that of request {first.index + 1}, "
        f"of which {first.left_to_prefill:,} of {first.to_prefill:,} tokens are left to compute; "
        "a plan goes on with those of queue.prefilling"
    )


def _check_fits(trace: Trace, most_tokens: int) -> None:
    # The last token is emitted, never stored.
    stored = trace.prompt_tokens + trace.output_tokens - 1
    too_long = np.flatnonzero(stored > most_tokens)
    if len(too_long):
        index = int(too_long[0])
        raise InputError(
            f"request {index + 1} in order of arrival: found {trace.prompt_tokens[index]} prompt "
            f"and {trace.output_tokens[index]} output tokens; allowed: {most_tokens + 1} "
            "together, what the key-value memory holds and the last token, which is not kept"
        )
