"""The book of a study's cases, rows and orders, and what they are called."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workloads.studies.layered_prefill.cases import (
    REQUESTS,
    AnyCase,
    Coverage,
    Prefill,
)
from workloads.studies.rows import Ordering, Row

_TITLES = {
    "qwen3-30b-a3b": "Qwen3-30B-A3B",
    "gpt-oss-20b": "GPT-OSS-20B",
    "qwen3-8b": "Qwen3-8B",
    "qwen3-235b-a22b": "Qwen3-235B-A22B",
    "gpt-oss-120b": "GPT-OSS-120B",
}
UNITS = {
    "TTFT_mean": "s",
    "TTFT_p95": "s",
    "TTFT_p99": "s",
    "TBT_mean": "ms",
    "TBT_p99": "ms",
    "TBT_std": "ms",
    "Jain": "",
    "E2E_mean": "s",
    "throughput": "token/s",
    "slo_attainment": "",
    "expert_load": "GB/request",
    "energy": "mJ/token",
    "runtime": "ms",
    "expert_share": "percent",
    "coverage": "percent",
}
_NOT_AT_HAND = "value not at hand"


class Plan(NamedTuple):
    """All of a study: its cases by key, their rows, and the orders to be kept.

    ``aims`` are the rows whose values the model was fitted to. Where the paper gives a figure of a
    case again, that row is none of them, but it counts as fitted too.
    """

    cases: dict[str, AnyCase]
    rows: list[Row]
    orderings: list[Ordering]
    aims: tuple[Row, ...] = ()


class Book:
    """Collects rows and orders, and cases under keys that tell what they are."""

    def __init__(self) -> None:
        self._cases: dict[str, AnyCase] = {}
        self._rows: list[Row] = []
        self._orderings: list[Ordering] = []

    @property
    def plan(self) -> Plan:
        """All that was entered."""
        aims = tuple(row for row in self._rows if row.fit)
        fitted = {(row.case, row.figure) for row in aims}
        rows = [
            row._replace(fit=row.against is None and (row.case, row.figure) in fitted)
            for row in self._rows
        ]
        return Plan(self._cases, rows, self._orderings, aims)

    def case(self, case: AnyCase) -> str:
        """Enter a case; returns its key."""
        key = case_name(case)
        self._cases[key] = case
        return key

    def add(
        self,
        table: str,
        case: AnyCase,
        published: Mapping[str, float | None],
        *,
        fit: Sequence[str] = (),
        note: str = "",
    ) -> None:
        """Enter a row for each published figure of a case, None where it is not at hand.

        The model was fitted to the values of the figures in ``fit``.
        """
        key = self.case(case)
        for figure, value in published.items():
            self._rows.append(
                Row(
                    name=_name(table, case, figure),
                    case=key,
                    figure=figure,
                    unit=UNITS[figure],
                    paper=value,
                    fit=figure in fit,
                    note=note if value is not None or note else _NOT_AT_HAND,
                )
            )

    def change(
        self,
        table: str,
        case: AnyCase,
        against: AnyCase,
        published: Mapping[str, float | None],
        note: str = "",
    ) -> None:
        """Rows that are the change of a figure from another case."""
        key, base = self.case(case), self.case(against)
        for figure, value in published.items():
            name = f"{_name(table, case, figure)}_change"
            text = note if value is not None or note else _NOT_AT_HAND
            self._rows.append(Row(name, key, figure, "% change", value, False, text, against=base))

    def order(self, figure: str, lower: AnyCase, higher: AnyCase, doubt: str = "") -> None:
        """Enter a published order: the figure is lower in the first case."""
        low, high = self.case(lower), self.case(higher)
        name = f"{figure}: {low} < {high}"
        self._orderings.append(Ordering(name, figure, low, high, doubt))


def title(model: str) -> str:
    """A model's name in the paper."""
    return _TITLES[model]


def _name(table: str, case: AnyCase, figure: str) -> str:
    """TABLE/MODEL/CASE/METRIC; the case without the model's name."""
    return f"{table}/{title(case.model)}/{case_name(case).removeprefix(case.model + '-')}/{figure}"


def case_name(case: AnyCase) -> str:
    """Key of a case: what it is, in a word."""
    if isinstance(case, Coverage):
        return f"{case.model}-batch-{case.tokens}"
    if isinstance(case, Prefill):
        return f"{case.model}-{case.tokens}-in-chunks-of-{case.chunk_tokens}"
    scheduler = case.scheduler
    if case.scheduler == "chunked":
        scheduler += f"-{case.token_budget or 512}"
    if case.layer_groups is not None:
        scheduler += f"-{case.layer_groups}"
    if case.prefill_units is not None:
        scheduler = f"pd-disaggregation-{case.prefill_units}-{scheduler}"
    parts = [case.model, case.chip, case.workload, f"{case.rate_rps:g}rps", scheduler]
    if case.units is not None:
        parts.insert(2, f"{case.units}-units")
    if case.weights is not None:
        parts.insert(1, case.weights)
    if case.cv != 1.0:
        parts.append(f"cv{case.cv:g}")
    if case.prompt_tokens is not None:
        parts.append(f"{case.prompt_tokens}-prompt")
    if case.requests != REQUESTS:
        parts.append(f"{case.requests}-requests")
    return "-".join(parts)
