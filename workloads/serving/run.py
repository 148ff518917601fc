"""One serving run."""

from collections.abc import Callable
from typing import Any

import numpy as np
import simpy

from tlm.errors import InputError
from workloads.serving.cost import ServingModel
from workloads.serving.engine import DEFAULT_MAX_SEQUENCES, Engine
from workloads.serving.kv import BlockPool
from workloads.serving.metrics import Recorder, RowSink, Slo
from workloads.serving.schedulers import Scheduler
from workloads.serving.traces import PS_PER_S, Trace
from workloads.serving.waiting import Waiting

Progress = Callable[[int, int], None]

_EVENTS_BETWEEN = 1000


def run(
    trace: Trace,
    scheduler: Scheduler,
    model: ServingModel,
    *,
    slo: Slo | None = None,
    kv_capacity_tokens: int | None = None,
    max_sequences: int = DEFAULT_MAX_SEQUENCES,
    progress: Progress | None = None,
    row: RowSink | None = None,
    jump: bool = True,
) -> dict[str, Any]:
    """Serve a trace to the end and return its figures (see ``Recorder.summary``).

    Args:
        trace: The requests.
        scheduler: Plans the iterations.
        model: The model on its chip.
        slo: What requests should attain.
        kv_capacity_tokens: Size of the key-value memory, instead of the model's own.
        max_sequences: Most requests admitted at a time.
        progress: Called now and then with the finished and all requests.
        row: Called with the number and the row of each finished request.
        jump: Whether to take alike iterations in one stretch; the figures are the same.

    Raises:
        InputError: if a request can never fit, or a limit is below 1.
    """
    if max_sequences < 1:
        raise InputError(f"max sequences: found {max_sequences}; allowed: 1 or more")
    capacity = model.kv_capacity_tokens if kv_capacity_tokens is None else kv_capacity_tokens
    kv = BlockPool(capacity)
    check_fits(trace, kv.most_tokens())
    recorder = Recorder(slo, int(trace.arrival_ps[-1]), row)
    env = simpy.Environment(initial_time=0)
    engine = Engine(
        env,
        Waiting(trace),
        scheduler,
        model,
        recorder,
        kv=kv,
        max_sequences=max_sequences,
        jump=jump,
    )
    env.process(engine.run())
    serve(env, recorder, len(trace), progress)
    summary = recorder.summary()
    return summary | {
        **_used(engine, summary),
        "kv": {
            "capacity_tokens": kv.capacity_tokens,
            "peak_tokens": kv.peak_tokens,
            "preemptions": recorder.preemptions,
            "spilled_bytes": kv.spilled_tokens * model.kv_bytes_per_token,
        },
        "utilization": model.utilization(engine.usage.work, summary["span_s"]),
    }


def serve(
    env: simpy.Environment, recorder: Recorder, requests: int, progress: Progress | None = None
) -> None:
    """Let the clock run until every request has finished.

    Raises:
        RuntimeError: if nothing happens any more before that: a policy never admits a request.
    """
    told = -1
    while recorder.finished < requests:
        try:
            for _ in range(_EVENTS_BETWEEN):
                env.step()
        except simpy.core.EmptySchedule:
            if recorder.finished < requests:
                waiting = requests - recorder.finished
                raise RuntimeError(f"{waiting} requests are never served") from None
        if progress and recorder.finished > told:
            told = recorder.finished
            progress(told, requests)


def check_fits(trace: Trace, most_tokens: int) -> None:
    """Make sure that every request can be served alone.

    Raises:
        InputError: naming the first that cannot.
    """
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


def _used(engine: Engine, summary: dict[str, Any]) -> dict[str, Any]:
    usage = engine.usage
    return {
        "iterations": usage.iterations,
        "mean_decode_batch": usage.decoded / usage.iterations,
        "busy_fraction": usage.busy_ps / PS_PER_S / summary["span_s"],
        "expert_load_bytes": usage.expert_bytes,
    }
