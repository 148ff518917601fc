"""Beyond the paper: requests on the wafer, by scheduler and by how tiles share attention.

Layered prefill, dies apart for prompts, and FlatAttention together. Nothing of it is published. A
run is that of ``wafertlm serve`` at level `perf`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, cast

from workloads.kernels.catalogue import Choices
from workloads.models import load_model
from workloads.serving.engine.pools import make_pools
from workloads.serving.engine.run import Pools, run, run_disaggregated
from workloads.serving.engine.speculation import Speculation
from workloads.serving.load.capacity import ATTAINMENT, find_rate
from workloads.serving.load.generator import generate
from workloads.serving.price.die_price import DiesPrice
from workloads.serving.price.models import serving_model
from workloads.serving.result.metrics import Slo
from workloads.serving.schedulers import SchedulerOptions, make_scheduler
from workloads.studies.campaign import Figures
from workloads.studies.ends import with_ends
from workloads.studies.flatattention.wafer import CHIP, MODEL, TOKENS

WORKLOAD, REQUESTS, SEED, ACCEPTANCE = "sharegpt", 2000, 0, 0.7
#: First token: a choice, seven times an iteration with a mean prompt. Time between tokens: an
#: iteration gives 1.7 of them, 50 ms each at most (FlatAttention paper, section V-C).
SLO = Slo(2.0, 85.0)
APART = "pd-disaggregation"
SCHEDULERS = ("continuous", "chunked", "layered", APART)
RATES_RPS = (100.0, 200.0, 300.0)
#: Groups of tiles on a head: by FlatAttention's rule, or tiles that do not exchange keys.
GROUPS: dict[str, tuple[int, int] | None] = {"FlatAttention": None, "no-groups": (1, 1)}
#: Dies of the pool for prompts, and tokens of a chunk there, as `serve` has them. Experts are dealt
#: out to all dies of a pool: of a pipeline a wavefront would keep one group busy at a time.
_PROMPT_DIES, _CHUNK_TOKENS = 32, 2048
#: Figures by unit.
SERVED = {"goodput_rps": "request/s", "ttft_s": "s", "tbt_ms": "ms"}
#: Where the search for the highest rate begins, and below which it ends.
_START_RPS, _LEAST_RPS = 200.0, 50.0


class WaferServeCase(NamedTuple):
    """Requests on the wafer.

    Attributes:
        scheduler: Who plans iterations, or `APART`: half of the dies computes prompts.
        attention: A name of `GROUPS`.
        rate_rps: Arrivals a second; None: as many as attain the objectives.
    """

    scheduler: str
    attention: str
    rate_rps: float | None


class ServedFact(NamedTuple):
    """A row: its name, case, figure, unit and note; nothing is published, or set against it."""

    name: str
    case: WaferServeCase
    figure: str
    unit: str
    note: str
    paper: None = None
    over: None = None


def served_facts() -> Iterator[ServedFact]:
    """Rows of all schedulers, with and without groups of tiles, at all rates."""
    note = (
        f"beyond the paper: {REQUESTS} requests of {WORKLOAD}; objectives: first token within "
        f"{SLO.ttft_s:g} s, each interval within {SLO.tbt_ms:g} ms"
    )
    highest = (
        f"{note}; found to 1 %: {ATTAINMENT:.0%} of the requests attain both, without an overload"
    )
    for scheduler in SCHEDULERS:
        for attention in GROUPS:
            at, case = f"S1/{scheduler}-{attention}", WaferServeCase(scheduler, attention, None)
            yield ServedFact(f"{at}/highest/rate", case, "rate_rps", "request/s", highest)
            for rate in RATES_RPS:
                case = WaferServeCase(scheduler, attention, rate)
                for figure, unit in SERVED.items():
                    yield ServedFact(f"{at}/{rate:g}rps/{figure}", case, figure, unit, note)


def served_figures(case: WaferServeCase) -> Figures:
    """Requests a second that attain both objectives, of those that come, and means of the times.

    Without a rate the highest one instead, at which nearly all attain; None if it is a low one.
    ``FIGURE_low`` and ``FIGURE_high`` are those at both ends of the prices' error (`with_ends`).
    ``overloaded`` is 1 or 0.
    """
    prices = _prices(case.scheduler == APART, GROUPS[case.attention])
    return with_ends(prices, partial(_served if case.rate_rps else _highest, case))


@cache
def _prices(apart: bool, group: tuple[int, int] | None) -> tuple[DiesPrice, ...]:
    """Of the pools, or of the whole wafer; they remember what they have priced."""
    model, choices = load_model(MODEL), Choices(group=group)
    if apart:
        pools = make_pools(model, CHIP, prefill_units=_PROMPT_DIES, choices=choices)
        return cast(DiesPrice, pools.prefill), cast(DiesPrice, pools.decode)
    return (cast(DiesPrice, serving_model(model, CHIP, choices=choices)),)


def _highest(case: WaferServeCase, prices: Sequence[DiesPrice]) -> Figures:
    """The highest rate; an overload does not count, as it would end with the load."""

    def attainment_at(rate_rps: float) -> float:
        found = _served(case._replace(rate_rps=rate_rps), prices)
        goodput = found["goodput_rps"]
        assert goodput is not None
        return 0.0 if found["overloaded"] else goodput / rate_rps

    found = find_rate(attainment_at, _START_RPS, ATTAINMENT, _LEAST_RPS)
    return {"rate_rps": found.rate, "overloaded": 0.0}


def _served(case: WaferServeCase, prices: Sequence[DiesPrice]) -> Figures:
    assert case.rate_rps is not None
    trace = generate(WORKLOAD, REQUESTS, case.rate_rps, 1.0, SEED)
    how: dict[str, Any] = {"slo": SLO, "speculation": Speculation(TOKENS - 1, ACCEPTANCE, SEED)}
    if case.scheduler == APART:
        chunks = make_scheduler("chunked", SchedulerOptions(token_budget=_CHUNK_TOKENS))
        result = run_disaggregated(trace, chunks, _pools(prices), **how)
    else:
        result = run(trace, make_scheduler(case.scheduler), prices[0], **how)
    return {
        "goodput_rps": case.rate_rps * result["slo_attainment"],
        "ttft_s": result["ttft_s"]["mean"],
        "tbt_ms": result["tbt_ms"]["mean"],
        "overloaded": float(bool(result["overloaded"])),
    }


def _pools(prices: Sequence[DiesPrice]) -> Pools:
    """Pools with given prices."""
    made = make_pools(MODEL, CHIP, prefill_units=_PROMPT_DIES)
    prefill, decode = prices
    return replace(made, prefill=prefill, decode=decode)
