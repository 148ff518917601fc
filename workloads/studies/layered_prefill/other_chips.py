"""Beyond the paper: layered prefill on tile chips, alone and inside disaggregated serving.

Rates are about 60 and 90 % of what chunked prefill (512 tokens) sustains offline. In disaggregated
serving half of the tiles compute prompts, by chunks of 512 tokens, by chunks of 8192, or in layers.
"""

from typing import Any

import numpy as np

from workloads.studies.layered_prefill.book import UNITS, Plan, case_name, title
from workloads.studies.layered_prefill.cases import AnyCase, Case
from workloads.studies.rows import Results, Row, figures, interval

_LOADS = (
    ("qwen3-30b-a3b", "flat32", "arxiv", (0.6, 0.85)),
    ("qwen3-30b-a3b", "flat32", "sharegpt", (1.6, 2.3)),
    ("gpt-oss-20b", "flat32", "arxiv", (2.8, 4.1)),
    ("gpt-oss-20b", "flat32", "sharegpt", (7.0, 10.5)),
    ("qwen3-30b-a3b", "npusim-large", "arxiv", (1.0, 1.5)),
    ("qwen3-30b-a3b", "npusim-large", "sharegpt", (3.1, 4.7)),
    ("qwen3-30b-a3b", "npusim-small", "arxiv", (1.8, 2.6)),
    ("qwen3-30b-a3b", "npusim-small", "sharegpt", (5.7, 8.5)),
    ("qwen3-8b", "flat32", "arxiv", (1.3, 2.0)),
)
_POOLS = (
    ("qwen3-30b-a3b", "flat32", 512, 0.35),
    ("gpt-oss-20b", "flat32", 512, 1.5),
    ("qwen3-30b-a3b", "npusim-large", 32, 0.6),
    ("qwen3-30b-a3b", "npusim-small", 128, 1.0),
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

    A win is a 95 % interval beyond a tenth of a per cent; with a single seed nobody wins.
    """
    found = []
    for row in plan_.rows:
        if row.against is None:
            continue
        layered = figures(results, row.case, row.figure)
        change = 100 * (layered / figures(results, row.against, row.figure) - 1)
        ends = interval(change)
        low, high = (-np.inf, np.inf) if ends is None else ends
        winner = "layered" if high < -_TIE_PCT else "chunked" if low > _TIE_PCT else "open"
        found.append(
            {
                "case": row.case,
                "against": row.against,
                "figure": row.figure,
                "change_pct": float(np.mean(change)),
                "ci95_pct": ends,
                "winner": winner,
            }
        )
    return found


def _pairs() -> list[tuple[Case, Case]]:
    """(Layered, what it is compared with)."""
    pairs = []
    for model, chip, workload, rates in _LOADS:
        for rate in rates:
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
