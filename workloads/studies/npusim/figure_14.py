"""Figure 14: prompts and decoding on the same cores, or apart, by the ratio of their lengths."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from tlm.compute.base import ceil_div
from workloads.studies.campaign import Figures
from workloads.studies.npusim.judge import row, target
from workloads.studies.npusim.served import Core, ServedCase
from workloads.studies.rows import interval_of

#: Prompt and output by their ratio. The paper has ratios alone; published inputs have prompts of
#: 20, 100 and 1,000 tokens, in six chunks.
LENGTHS = {"1:5": (100, 500), "1:1": (100, 100), "10:1": (1000, 100)}
SIXTHS = LENGTHS | {"1:5": (20, 100)}
_CHUNKS = 6
_CORE, _SPLIT, _NOC_GB_S = Core(64, 60), (42, 21), 160
#: Fused; apart on equal cores; apart with other cores that decode.
SYSTEMS: dict[str, Core | None] = {
    "fusion": None,
    "apart": _CORE,
    "apart-A64H120": Core(64, 120),
    "apart-A32H120": Core(32, 120),
}
#: Plotted tokens a second, by `LENGTHS`.
PLOTTED = {
    "fusion": (3503, 3191, 1067),
    "apart": (1504, 1442, 1126),
    "apart-A64H120": (1992, 1894, 1428),
    "apart-A32H120": (1576, 1542, 1228),
}
_WITHIN_PCT = 15.0


class Reading(NamedTuple):
    """What the figure leaves open.

    Attributes:
        engine: What multiplies.
        shape: What the paper calls Qwen3-4B.
        sixths: Prompts and their chunks are as published inputs have them.
    """

    engine: str
    shape: str
    sixths: bool = False


READINGS = {
    "formula-text": Reading("formula", "text"),
    "formula-inputs": Reading("formula", "inputs"),
    "formula-inputs-sixths": Reading("formula", "inputs", sixths=True),
    "local-memory-inputs-sixths": Reading("local-memory", "inputs", sixths=True),
    "overlapped-inputs": Reading("overlapped", "inputs"),
    "overlapped-inputs-sixths": Reading("overlapped", "inputs", sixths=True),
}


def figure_14_case(reading: str, system: str, ratio: str) -> ServedCase:
    """A run."""
    engine, shape, sixths = READINGS[reading]
    core, own = SYSTEMS[system], _CORE._replace(engine=engine)
    lengths = (SIXTHS if sixths else LENGTHS)[ratio]
    if core is None:
        case = ServedCase(*lengths, own, _NOC_GB_S, shape=shape)
        return case._replace(chunk_tokens=ceil_div(case.inputs, _CHUNKS)) if sixths else case
    other = None if core == _CORE else core._replace(engine=engine)
    return ServedCase(*lengths, own, _NOC_GB_S, *_SPLIT, other, shape)


def figure_14_cases() -> Iterator[ServedCase]:
    """All runs."""
    yield from (figure_14_case(*each) for each in product(READINGS, SYSTEMS, LENGTHS))


def figure_14(found: Mapping[str, Figures]) -> Iterator[dict[str, Any]]:
    """Tokens a second, the time between them, and fusion against each system."""
    for reading, (place, ratio) in product(READINGS, enumerate(LENGTHS)):
        runs = {system: found[repr(figure_14_case(reading, system, ratio))] for system in SYSTEMS}
        fused = runs["fusion"]
        for system, figures in runs.items():
            name = f"F14/{_run(reading, ratio)}/{system}"
            case = figure_14_case(reading, system, ratio)
            lengths = f"{case.inputs} tokens in, {case.outputs} out"
            rate, said = figures["throughput_tok_s"], PLOTTED[system][place]
            note = f"{lengths}: the paper has the ratio alone"
            between = interval_of(figures, "throughput_tok_s")
            yield row(f"{name}/throughput", rate, said, "tok/s", "perf", note, interval=between)
            for figure, which in (("tbt_s", "mean"), ("least_tbt_s", "least, which is plotted")):
                between = interval_of(figures, figure)
                of = f"{name}/{figure}"
                yield row(of, figures[figure], None, "s", "perf", which, interval=between)
            if system == "fusion":
                continue
            over, said_over = (
                _over(fused["throughput_tok_s"], rate),
                PLOTTED["fusion"][place] / said,
            )
            yield row(f"{name}/fusion_over", over, said_over, "x", "perf", "tokens a second")


def figure_14_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Who is ahead at which ratio, and whose tokens are further apart."""
    model = {each["id"]: each["model"] for each in rows}
    for reading in READINGS:
        first, last = (f"F14/{_run(reading, ratio)}" for ratio in ("1:5", "10:1"))
        name = f"F14/{reading}"
        ahead = model[f"{first}/apart/fusion_over"]
        yield target(f"{name}: fusion is ahead of equal cores apart at 1:5", ahead, ahead > 1)
        said = PLOTTED["fusion"][0] / PLOTTED["apart"][0]
        near = abs(ahead / said - 1) <= _WITHIN_PCT / 100
        yield target(f"{name}: at 1:5 by {said:.2f} x, within {_WITHIN_PCT:g} %", ahead, near)
        behind = 1 / model[f"{last}/apart-A64H120/fusion_over"]
        text = f"{name}: apart is ahead of fusion at 10:1 with faster memory for decoding"
        yield target(text, behind, behind > 1)
        said = PLOTTED["apart-A64H120"][2] / PLOTTED["fusion"][2]
        near = abs(behind / said - 1) <= _WITHIN_PCT / 100
        yield target(f"{name}: at 10:1 by {said:.2f} x, within {_WITHIN_PCT:g} %", behind, near)
        for figure, which in (("tbt_s", "mean"), ("least_tbt_s", "least")):
            higher = max(
                model[f"F14/{_run(reading, ratio)}/fusion/{figure}"]
                / model[f"F14/{_run(reading, ratio)}/apart-A64H120/{figure}"]
                for ratio in LENGTHS
            )
            text = f"{name}: the {which} time between tokens of fusion is higher at some ratio"
            yield target(text, higher, higher > 1)


def _run(reading: str, ratio: str) -> str:
    return f"{reading}-{ratio.replace(':', '-')}"


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other
