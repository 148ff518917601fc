"""One serving run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from tlm.errors import InputError
from workloads.serving.cost import ServingModel
from workloads.serving.disaggregation import DecodeOnly, DecodePool, PrefillPool
from workloads.serving.engine import DEFAULT_MAX_SEQUENCES, Engine
from workloads.serving.kv import BlockPool, KvCache
from workloads.serving.link import Link
from workloads.serving.metrics import Recorder, RowSink, Slo
from workloads.serving.schedulers import Scheduler
from workloads.serving.spill import SpillingPool
from workloads.serving.summary import summary
from workloads.serving.traces import Trace
from workloads.serving.waiting import Waiting

Progress = Callable[[int, int], None]

_EVENTS_BETWEEN = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a run.

    Attributes:
        kv_capacity_tokens: Key-value memory (of each pool), instead of the model's own.
        max_sequences: Most requests admitted at a time (in each pool).
        kv_sram_tokens: Key-value memory in SRAM before it, which then is a ring for what spills;
            None: all is one level.
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
        """The key-value memory of a model."""
        own, sram = self.kv_capacity_tokens, self.kv_sram_tokens
        capacity = model.kv_capacity_tokens if own is None else own
        return BlockPool(capacity) if sram is None else SpillingPool(sram, capacity)


@dataclass(slots=True)
class Serving:
    """Engines that serve a trace together, and their clock.

    Attributes:
        trace: The requests.
        recorder: What it told of all.
        engines: Each with its model and its share of the chip.
        link: Between the pools, if there are two.
        env: The clock in picoseconds.
    """

    trace: Trace
    recorder: Recorder
    engines: dict[str, tuple[Engine, ServingModel, float]] = field(default_factory=dict)
    link: Link | None = None
    env: simpy.Environment = field(default_factory=lambda: simpy.Environment(initial_time=0))

    def add(self, name: str, engine: Engine, model: ServingModel, share: float = 1.0) -> None:
        """Add an engine.

        Raises:
            InputError: if a request can never fit its memory.
        """
        _check_fits(self.trace, engine.kv.most_tokens())
        self.engines[name] = engine, model, share

    def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Let the clock run until every request has finished, and return the figures.

        Raises:
            RuntimeError: if nothing happens any more before: a policy never admits a request.
        """
        for engine, _, _ in self.engines.values():
            self.env.process(engine.run())
        requests, told = len(self.trace), -1
        while self.recorder.finished < requests:
            try:
                for _ in range(_EVENTS_BETWEEN):
                    self.env.step()
            except simpy.core.EmptySchedule:
                if left := requests - self.recorder.finished:
                    raise RuntimeError(f"{left} requests are never served") from None
            if progress and self.recorder.finished > told:
                told = self.recorder.finished
                progress(told, requests)
        return summary(self.recorder, self.engines, self.link)


def run(
    trace: Trace,
    scheduler: Scheduler,
    model: ServingModel,
    *,
    slo: Slo | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    row: RowSink | None = None,
) -> dict[str, Any]:
    """Serve a trace to the end and return its figures (see ``summary``).

    Args:
        trace: The requests.
        scheduler: Plans the iterations.
        model: The model on its chip.
        slo: What requests should attain.
        limits: What bounds the run.
        progress: Called now and then with the finished and all requests.
        row: Called with the number and the row of each finished request.

    Raises:
        InputError: if a request can never fit.
    """
    limits = limits or Limits()
    serving = Serving(trace, Recorder(slo, int(trace.arrival_ps[-1]), row))
    engine = Engine(
        serving.env,
        Waiting(trace),
        scheduler,
        model,
        serving.recorder,
        kv=limits.kv_cache(model),
        max_sequences=limits.max_sequences,
        jump=limits.jump,
    )
    serving.add("all", engine, model)
    return serving.run(progress)


@dataclass(frozen=True, slots=True)
class Pools:
    """A chip in two: who computes prompts, who decodes, and what lies between.

    Attributes:
        prefill: The model on the prefill pool.
        decode: The model on the decode pool.
        prefill_share: Share of the chip that the prefill pool is.
        decode_share: Share that the decode pool is.
        link_bytes_per_s: Bandwidth of the link.
        link_latency_s: Its latency.
    """

    prefill: ServingModel
    decode: ServingModel
    prefill_share: float
    decode_share: float
    link_bytes_per_s: float
    link_latency_s: float = 0.0


def run_disaggregated(
    trace: Trace,
    scheduler: Scheduler,
    pools: Pools,
    *,
    slo: Slo | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    row: RowSink | None = None,
) -> dict[str, Any]:
    """Serve a trace with prefill and decoding in pools of their own, otherwise as ``run`` does.

    Args:
        trace: The requests.
        scheduler: Plans the prefill pool's iterations.
        pools: The two pools and the link.
        slo: What requests should attain.
        limits: What bounds each pool.
        progress: Called now and then with the finished and all requests.
        row: Called with the number and the row of each finished request.

    Raises:
        InputError: if a request can never fit, or the link cannot be.
    """
    limits = limits or Limits()
    link = Link(pools.link_bytes_per_s, pools.link_latency_s)
    serving = Serving(trace, Recorder(slo, int(trace.arrival_ps[-1]), row), link=link)
    prefill = PrefillPool(
        serving.env,
        Waiting(trace),
        scheduler,
        pools.prefill,
        serving.recorder,
        kv=limits.kv_cache(pools.prefill),
        max_sequences=limits.max_sequences,
    )
    decode = DecodePool(
        link,
        prefill,
        pools.prefill.kv_bytes_per_token,
        serving.env,
        Waiting(),
        DecodeOnly(),
        pools.decode,
        serving.recorder,
        kv=limits.kv_cache(pools.decode),
        max_sequences=limits.max_sequences,
        jump=limits.jump,
    )
    serving.add("prefill", prefill, pools.prefill, pools.prefill_share)
    serving.add("decode", decode, pools.decode, pools.decode_share)
    return serving.run(progress)


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
