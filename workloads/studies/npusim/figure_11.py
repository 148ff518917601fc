"""Figure 11: how many cores compute prompts, and how many decode."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from workloads.studies.campaign import Figures
from workloads.studies.npusim.judge import row, target
from workloads.studies.npusim.served import SHAPES, Core, ServedCase
from workloads.studies.rows import interval_of

#: Cores for prompts, and cores that decode.
SPLITS = ((49, 14), (42, 21), (28, 28), (21, 42))
#: Plotted, of 100 tokens in and out, by `SPLITS`: latency and TTFT in s, time between tokens in s.
PLOTTED = {
    "latency_s": (18.5, 13.0, 8.6, 6.2),
    "ttft_s": (0.430, 0.487, 0.625, 0.720),
    "tbt_s": (0.180, 0.125, 0.080, 0.057),
}
#: Prompt and output; of the others values are not at hand.
LENGTHS = ((100, 100), (100, 200), (200, 100), (200, 200), (400, 100), (50, 200))
#: The cores of the runs are not published: those of figure 12, or those of the shipped profile. Nor
#: is what the paper calls Qwen3-4B there.
READINGS = {
    f"{core.name}-{shape}": (core, shape)
    for core, shape in product((Core(64, 60), Core(128, 120)), SHAPES)
}
_NOC_GB_S = 160
_POINTS = 15.0
#: Figure, split, split it is held against, and the change that the text or the plot has, in %.
_CLAIMS = (
    ("ttft_s", (49, 14), (21, 42), -40.0),
    ("latency_s", (21, 42), (49, 14), -68.0),
    ("ttft_s", (42, 21), (49, 14), 13.0),
    ("tbt_s", (42, 21), (49, 14), -30.0),
)


def figure_11_case(reading: str, lengths: tuple[int, int], split: tuple[int, int]) -> ServedCase:
    """A run."""
    core, shape = READINGS[reading]
    return ServedCase(*lengths, core, _NOC_GB_S, *split, shape=shape)


def figure_11_cases(*, quick: bool) -> Iterator[ServedCase]:
    """All runs; ``quick`` has those whose values are at hand."""
    for reading, lengths, split in product(READINGS, _lengths(quick=quick), SPLITS):
        yield figure_11_case(reading, lengths, split)


def figure_11(found: Mapping[str, Figures], *, quick: bool) -> Iterator[dict[str, Any]]:
    """Latency, TTFT and time between tokens of each split."""
    for reading, lengths in product(READINGS, _lengths(quick=quick)):
        for place, split in enumerate(SPLITS):
            figures = found[repr(figure_11_case(reading, lengths, split))]
            for figure, plotted in PLOTTED.items():
                said = plotted[place] if lengths == LENGTHS[0] else None
                name = f"F11/{_run(reading, lengths)}/{_split(split)}/{figure}"
                note = f"reading {reading}; cores, links and model of the runs are not published"
                between = interval_of(figures, figure)
                yield row(name, figures[figure], said, "s", "perf", note, interval=between)


def figure_11_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Changes from one split to another, within 15 points."""
    model = {each["id"]: each["model"] for each in rows}
    for reading, (figure, split, other, said) in product(READINGS, _CLAIMS):
        run = f"F11/{_run(reading, LENGTHS[0])}"
        here, there = (model[f"{run}/{_split(each)}/{figure}"] for each in (split, other))
        change = 100 * (here / there - 1)
        text = f"{run}: {figure} of {_split(split)} against {_split(other)} {said:+.0f} %"
        yield target(f"{text} within {_POINTS:g} points", change, abs(change - said) <= _POINTS)


def _lengths(*, quick: bool) -> Sequence[tuple[int, int]]:
    return LENGTHS[:1] if quick else LENGTHS


def _run(reading: str, lengths: tuple[int, int]) -> str:
    return f"{reading}-{lengths[0]}in-{lengths[1]}out"


def _split(split: tuple[int, int]) -> str:
    return f"P{split[0]}-D{split[1]}"
