"""Serving runs that the rows of the study are read from, and how one is simulated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from tlm.chips.gpu import Gpu, load_gpu_box
from workloads.models import load_model
from workloads.models.model import Dtype
from workloads.serving.engine.pools import make_pools
from workloads.serving.engine.run import Pools, run, run_disaggregated
from workloads.serving.load.generator import generate
from workloads.serving.load.traces import Trace
from workloads.serving.price.cost import Batch, ServingModel
from workloads.serving.price.experts import distinct_experts
from workloads.serving.price.gpu_cost import GpuCost
from workloads.serving.price.models import serving_model
from workloads.serving.result.metrics import Slo
from workloads.serving.schedulers import Scheduler, SchedulerOptions, make_scheduler
from workloads.studies.campaign import Figures
from workloads.studies.ends import with_ends

# The paper does not say how many requests a run has, but for table 7.
REQUESTS = 300


@dataclass(frozen=True, slots=True)
class Case:
    """A serving run.

    Attributes:
        model: Name of the model.
        chip: Name of the chip.
        scheduler: Name of the scheduler.
        rate_rps: Arrivals a second; infinite: all at once.
        workload: Name of the workload.
        weights: Width of all weights; None: the model's own.
        units: Units of the chip; None: all.
        token_budget: The scheduler's; None: its default.
        layer_groups: The scheduler's; None: by the number of tokens.
        cv: Coefficient of variation of the gaps between arrivals.
        requests: Requests of the run.
        prompt_tokens: Length of all prompts; None: the workload's.
        slo: Objectives: seconds to the first token, milliseconds between tokens.
        prefill_units: Units of the pool that computes prompts, by ``scheduler``; the others are
            the pool that decodes. None: no pools.
    """

    model: str
    chip: str
    scheduler: str
    rate_rps: float
    workload: str = "arxiv"
    weights: Dtype | None = None
    units: int | None = None
    token_budget: int | None = None
    layer_groups: int | None = None
    cv: float = 1.0
    requests: int = REQUESTS
    prompt_tokens: int | None = None
    slo: tuple[float, float] = (10.0, 125.0)
    prefill_units: int | None = None


@dataclass(frozen=True, slots=True)
class Prefill:
    """Prefill of one prompt of ``tokens`` tokens in chunks, without anything beside it."""

    model: str
    chip: str
    tokens: int
    chunk_tokens: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of a model's experts that ``tokens`` tokens need."""

    model: str
    tokens: int


AnyCase = Case | Prefill | Coverage


def simulate(case: AnyCase, seed: int) -> Figures:
    """The figures of a case with a seed; a function of them alone."""
    if isinstance(case, Coverage):
        return _coverage(case)
    if isinstance(case, Prefill):
        box = load_gpu_box(case.chip)
        return _prefill(case, GpuCost(load_model(case.model), box, box.count))
    if case.prefill_units is not None:
        return _serve_apart(case, seed, case.prefill_units)
    return _serve(case, seed, _cost_model(case.model, case.chip, case.weights, case.units))


def case_figures(case: Case | Prefill, seeds: Sequence[int], gpu: Gpu) -> list[Figures]:
    """The figures of a case on two GPUs of another profile, for each seed."""
    model = GpuCost(load_model(case.model), gpu, 2)
    if isinstance(case, Prefill):
        return [_prefill(case, model)]
    return [_serve(case, seed, model) for seed in seeds]


# Cost models remember what they have computed: a process keeps those it made.
@lru_cache(maxsize=16)
def _cost_model(name: str, chip: str, weights: Dtype | None, units: int | None) -> ServingModel:
    model = load_model(name)
    return serving_model(
        model if weights is None else model.in_one_width(weights), chip, units=units
    )


def _serve(case: Case, seed: int, model: ServingModel) -> Figures:
    trace, slo = trace_of(case, seed), Slo(*case.slo)
    return with_ends(
        [model],
        lambda prices: _figures(case, run(trace, _scheduler(case), prices[0], slo=slo)),
    )


def _serve_apart(case: Case, seed: int, prefill_units: int) -> Figures:
    pools = _pools(case.model, case.chip, prefill_units)
    trace, slo = trace_of(case, seed), Slo(*case.slo)

    def served(prices: Sequence[ServingModel]) -> Figures:
        prefill, decode = prices
        priced = replace(pools, prefill=prefill, decode=decode)
        return _figures(case, run_disaggregated(trace, _scheduler(case), priced, slo=slo))

    return with_ends([pools.prefill, pools.decode], served)


@lru_cache(maxsize=8)
def _pools(model: str, chip: str, prefill_units: int) -> Pools:
    return make_pools(model, chip, prefill_units=prefill_units)


def _scheduler(case: Case) -> Scheduler:
    options = SchedulerOptions(token_budget=case.token_budget, layer_groups=case.layer_groups)
    return make_scheduler(case.scheduler, options)


def _figures(case: Case, result: Mapping[str, Any]) -> Figures:
    figures: Figures = {
        "TTFT_mean": result["ttft_s"]["mean"],
        "TTFT_p95": result["ttft_s"]["p95"],
        "TTFT_p99": result["ttft_s"]["p99"],
        "TBT_mean": result["tbt_ms"]["mean"],
        "TBT_p99": result["tbt_ms"]["p99"],
        "TBT_std": result["tbt_std_ms"],
        "Jain": result["jain_index"],
        "E2E_mean": result["e2e_s"]["mean"],
        "throughput": result["throughput_tok_s"],
        "served_rps": case.requests / result["span_s"],
        "slo_attainment": result["slo_attainment"],
        "expert_load": result["expert_load_bytes"] / case.requests / 1e9,
        "energy": result["energy_mj_per_token"],
        "overloaded": result["overloaded"],
    }
    return {name: None if value is None else float(value) for name, value in figures.items()}


def trace_of(case: Case, seed: int) -> Trace:
    """The requests of a case: the same for all cases that differ in chip and scheduler alone."""
    trace = generate(case.workload, case.requests, case.rate_rps, case.cv, seed)
    if case.prompt_tokens is None:
        return trace
    return replace(trace, prompt_tokens=np.full_like(trace.prompt_tokens, case.prompt_tokens))


def _prefill(case: Prefill, model: GpuCost) -> Figures:
    starts = range(0, case.tokens, case.chunk_tokens)
    costs = [
        model.cost(Batch(((min(case.chunk_tokens, case.tokens - start), start),), 0, 0, 1))
        for start in starts
    ]
    seconds = sum(cost.seconds for cost in costs)
    experts = sum(
        model.expert_seconds(min(case.chunk_tokens, case.tokens - start)) for start in starts
    )
    return {
        "runtime": 1e3 * seconds,
        "expert_share": 100 * experts / seconds,
        "expert_load": sum(cost.expert_bytes for cost in costs) / 1e9,
    }


def _coverage(case: Coverage) -> Figures:
    experts = load_model(case.model).experts
    assert experts is not None
    needed = distinct_experts(experts.count, experts.active, case.tokens)
    return {"coverage": 100 * needed / experts.count}
