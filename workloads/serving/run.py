"""One serving run, and the mean of several with other seeds."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import simpy
from scipy import stats

from tlm.errors import InputError
from workloads.serving.cost import ServingModel
from workloads.serving.engine import DEFAULT_MAX_SEQUENCES, Engine, Progress
from workloads.serving.metrics import Recorder, Slo
from workloads.serving.schedulers import Scheduler
from workloads.serving.traces import Trace


def run(
    trace: Trace,
    scheduler: Scheduler,
    model: ServingModel,
    *,
    slo: Slo | None = None,
    kv_capacity_tokens: int | None = None,
    max_sequences: int = DEFAULT_MAX_SEQUENCES,
    progress: Progress | None = None,
    rows_to: Callable[[Iterator[dict[str, Any]]], None] | None = None,
) -> dict[str, Any]:
    """Serve a trace to the end and return its figures (see ``Recorder.summary``).

    ``rows_to`` is handed a row per request (see ``Recorder.request_rows``).

    ``kv_capacity_tokens`` takes the place of the model's own. ``peak_tokens`` counts whole blocks;
    nothing is ever spilled. ``utilization`` is over the time from first arrival to last completion.

    Raises:
        InputError: if a request can never fit, or a limit is below 1.
    """
    if max_sequences < 1:
        raise InputError(f"max sequences: found {max_sequences}; allowed: 1 or more")
    capacity = model.kv_capacity_tokens if kv_capacity_tokens is None else kv_capacity_tokens
    recorder = Recorder(len(trace), slo, model.layers)
    env = simpy.Environment(initial_time=0)
    engine = Engine(
        env,
        trace,
        scheduler,
        model,
        recorder,
        kv_capacity_tokens=capacity,
        max_sequences=max_sequences,
        progress=progress,
    )
    env.process(engine.run())
    env.run()
    summary = recorder.summary(trace)
    if rows_to is not None:
        rows_to(recorder.request_rows(trace))
    kv = {
        "capacity_tokens": engine.kv.capacity_tokens,
        "peak_tokens": engine.kv.peak_tokens,
        "preemptions": recorder.preemptions,
        "spilled_bytes": 0,
    }
    return summary | {
        "kv": kv,
        "utilization": model.utilization(recorder.work, summary["span_s"]),
    }


def mean_of(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean of every figure over runs, in the shape of one run, and its 95 % interval.

    ``ci95`` maps the dotted name of each figure that varies to [low, high] by Student's t; it is
    None for a single run. A figure that a run does not have (None) has no mean.
    """
    first = results[0]
    if len(results) == 1:
        return first | {"ci95": None}
    intervals: dict[str, list[float]] = {}
    merged: dict[str, Any] = {}
    for name, values in _figures(results):
        table, _, leaf = name.rpartition(".")
        target = merged.setdefault(table, {}) if table else merged
        if all(value == values[0] for value in values):
            target[leaf] = values[0]
        elif None in values:
            target[leaf] = None
        else:
            mean = float(np.mean(values))
            margin = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
            target[leaf] = mean
            intervals[name] = [mean - margin, mean + margin]
    return merged | {"ci95": intervals}


def _figures(results: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    for name, value in results[0].items():
        if isinstance(value, dict):
            for leaf in value:
                yield f"{name}.{leaf}", [result[name][leaf] for result in results]
        else:
            yield name, [result[name] for result in results]
