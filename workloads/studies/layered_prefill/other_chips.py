"""Beyond the paper: layered prefill on tile chips, alone and inside disaggregated serving.

Rates are 60 and 90 % of what chunked prefill (512 tokens) sustains. In disaggregated serving half
of the tiles compute prompts, by chunks of 512 tokens, by chunks of 8192, or in layers. Each run is
done with the chip's prices and with those at both ends of their error.
"""

from typing import Any

import numpy as np

from workloads.studies.ends import ENDS
from workloads.studies.layered_prefill.book import UNITS, Plan, case_name, title
from workloads.studies.layered_prefill.cases import AnyCase, Case
from workloads.studies.rows import Results, Row, evaluate, mean_of, values_of

#: Model, chip, workload, and the requests a second that chunks of 512 tokens serve when all come at
#: once: means over the first three seeds, which a slow test measures anew.
SUSTAINED_RPS = (
    ("qwen3-30b-a3b", "flat32", "arxiv", 0.82),
    ("qwen3-30b-a3b", "flat32", "sharegpt", 1.77),
    ("gpt-oss-20b", "flat32", "arxiv", 3.72),
    ("gpt-oss-20b", "flat32", "sharegpt", 10.0),
    ("qwen3-30b-a3b", "npusim-large", "arxiv", 2.28),
    ("qwen3-30b-a3b", "npusim-large", "sharegpt", 7.84),
    ("qwen3-30b-a3b", "npusim-small", "arxiv", 2.18),
    ("qwen3-30b-a3b", "npusim-small", "sharegpt", 7.28),
    ("qwen3-8b", "flat32", "arxiv", 1.91),
)
_SHARES = (0.6, 0.9)
#: Model, chip, tiles of the pool for prompts, and the lower of both rates of such pools.
_POOLS = (
    ("qwen3-30b-a3b", "flat32", 512, 0.35),
    ("gpt-oss-20b", "flat32", 512, 1.4),
    ("qwen3-30b-a3b", "npusim-large", 32, 0.85),
    ("qwen3-30b-a3b", "npusim-small", 128, 0.84),
)
_TIE_PCT = 0.1
_FIGURES = ("TTFT_mean", "TBT_mean", "TBT_p99", "E2E_mean", "expert_load")


def plan() -> Plan:
    """Cases and rows of the study's own part; no published values."""
    cases: dict[str, AnyCase] = {}
    rows: dict[str, Row] = {}
    for layered, against in _pairs():
        for case in (against, layered):
            cases[case_name(case)] = case
        for figure in _FIGURES:
            if figure == "expert_load" and layered.model == "qwen3-8b":
                continue
            added = (
                _row(layered, figure),
                _row(against, figure),
                _change(layered, against, figure),
            )
            rows |= {row.name: row for row in added}
    return Plan(cases, list(rows.values()), [])


def wins(plan_: Plan, results: Results) -> list[dict[str, Any]]:
    """Of each pair and figure the change by layered prefill, paired by seeds, and who wins.

    ``at_low_prices_pct`` and ``at_high_prices_pct`` are the change with both at that end of the
    prices' error: None where one of them is overloaded there, which ``overloaded`` says, or where
    levels were not compared. A win is a 95 % interval beyond a tenth of a per cent, and changes
    beyond it at the ends that are known; with a single seed nobody wins.
    """
    return [_win(row, row.against, results) for row in plan_.rows if row.against is not None]


def _win(row: Row, against: str, results: Results) -> dict[str, Any]:
    told = evaluate(row, results)
    ends = [mean_of(values_of(row, results, end)) for end in ENDS]
    known = [change for change in ends if change is not None]
    low, high = (-np.inf, np.inf) if told["ci95"] is None else told["ci95"]
    low, high = min([low, *known]), max([high, *known])
    return {
        "case": row.case,
        "against": against,
        "figure": row.figure,
        "change_pct": told["model"],
        "ci95_pct": told["ci95"],
        "at_low_prices_pct": ends[0],
        "at_high_prices_pct": ends[1],
        "overloaded": _overloaded((row.case, against), results),
        "winner": "layered" if high < -_TIE_PCT else "chunked" if low > _TIE_PCT else "open",
    }


def _overloaded(pair: tuple[str, str], results: Results) -> list[str]:
    """At which prices a run of a pair is overloaded."""
    runs = [run for case in pair for run in results[case]]
    flags = {"low": "overloaded_low", "centre": "overloaded", "high": "overloaded_high"}
    return [prices for prices, flag in flags.items() if any(run.get(flag) for run in runs)]


def _pairs() -> list[tuple[Case, Case]]:
    """(Layered, what it is compared with)."""
    pairs = []
    for model, chip, workload, sustained_rps in SUSTAINED_RPS:
        for share in _SHARES:
            rate = float(f"{share * sustained_rps:.2g}")
            chunked, layered = (
                Case(model, chip, scheduler, rate, workload) for scheduler in ("chunked", "layered")
            )
            pairs.append((layered, chunked))
    for model, chip, tiles, rate in _POOLS:
        layered = Case(model, chip, "layered", rate, prefill_units=tiles)
        for budget in (512, 8192):
            apart = Case(model, chip, "chunked", rate, token_budget=budget, prefill_units=tiles)
            pairs.append((layered, apart))
    return pairs


def _row(case: Case, figure: str) -> Row:
    key = case_name(case)
    return Row(_name(case, figure), key, figure, UNITS[figure], note="beyond the paper")


def _change(layered: Case, against: Case, figure: str) -> Row:
    name = f"{_name(layered, figure)}_change"
    if against.prefill_units is not None:
        name += f"_from_chunks_of_{against.token_budget}"
    return Row(
        name,
        case_name(layered),
        figure,
        "% change",
        note="beyond the paper",
        against=case_name(against),
    )


def _name(case: Case, figure: str) -> str:
    return f"NEW/{title(case.model)}/{case_name(case).removeprefix(case.model + '-')}/{figure}"
