"""Rows beyond the paper: none has a published value."""

from collections.abc import Iterator

from workloads.studies.waferllm.beyond import (
    RATE_RPS,
    REQUESTS,
    SCHEDULERS,
    WORKLOAD,
    RouterCase,
    ServeCase,
)
from workloads.studies.waferllm.cases import CHIP, COMBINES, KEPT, LayerCase
from workloads.studies.waferllm.facts import CONTEXT, DECODE_SIDES, MODELS, NOT_SCORED, Fact

_BEYOND = "beyond the paper"
_COMBINING = {
    "decode_combining": (COMBINES, "routers combine operands in a cycle; no software in a sum"),
    "decode_combining_calls": (KEPT, "the same, with the fixed cycles of each all-reduction"),
}
_GATES = {"router_nand2": "NAND2", "router_pct": "%", "chip_nand2": "NAND2"}
_SERVED = {"ttft_s": "s", "tbt_ms": "ms", "throughput_tok_s": "token/s", "j_per_token": "J"}


def beyond_facts() -> list[Fact]:
    """What routers that combine operands are worth and cost, and schedulers side by side."""
    return [*_combining(), *_gates(), *_served()]


def _combining() -> Iterator[Fact]:
    for label, name in MODELS.items():
        for side in DECODE_SIDES:
            for metric, (network, note) in _COMBINING.items():
                case = LayerCase(name, "decode", side, CONTEXT, network=network)
                row, told = f"N1/{label}/{side}x{side}/{metric}", f"{_BEYOND}: {note}"
                yield Fact(row, "token/s", case, "tokens_per_s", None, NOT_SCORED, told)


def _gates() -> Iterator[Fact]:
    note = f"{_BEYOND}: the project's router with multicasts, 4 flits a buffer, by Yosys"
    for figure, unit in _GATES.items():
        row = f"N1/{CHIP}/gates/{figure}"
        yield Fact(row, unit, RouterCase(CHIP), figure, None, NOT_SCORED, note)


def _served() -> Iterator[Fact]:
    note = f"{_BEYOND}: {REQUESTS} requests of {WORKLOAD}, {RATE_RPS:g} a second"
    for scheduler in SCHEDULERS:
        case = ServeCase("llama3-8b", scheduler)
        for figure, unit in _SERVED.items():
            row = f"S1/LLaMA3-8B/{scheduler}/{figure}"
            yield Fact(row, unit, case, figure, None, NOT_SCORED, note)
