"""Figure 9: what partitions cost by the length of a prompt."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from workloads.studies.campaign import Figures
from workloads.studies.npusim.cases import PromptCase
from workloads.studies.npusim.facts import (
    LENGTHS,
    MODELS,
    PARTITIONS,
    SECONDS,
    figure_9_readings,
    partition_case,
)
from workloads.studies.npusim.judge import row, target, within_factor

#: A ratio, and the length at which two curves cross, hold within this factor.
FACTOR = 1.5


def figure_9_cases(*, quick: bool) -> Iterator[PromptCase]:
    """All prompts."""
    for reading in figure_9_readings(quick=quick):
        for model, tokens, partition in product(MODELS, LENGTHS, PARTITIONS):
            yield partition_case(model, tokens, partition, reading)


def figure_9(found: Mapping[str, Figures], *, quick: bool) -> Iterator[dict[str, Any]]:
    """Seconds, MN over K, and the length at which MN overtakes K."""
    for reading, model in product(figure_9_readings(quick=quick), MODELS):
        name = f"F9/{model}/{reading}"
        times: dict[str, list[float | None]] = {}
        for partition in PARTITIONS:
            cases = [partition_case(model, tokens, partition, reading) for tokens in LENGTHS]
            times[partition] = [found[repr(case)]["seconds"] for case in cases]
            for tokens, model_s, said in zip(
                LENGTHS, times[partition], SECONDS[model, partition], strict=True
            ):
                note = f"reading {reading}; links and array of the runs are not published"
                yield row(f"{name}/{partition}-T{tokens}", model_s, said, "s", "at", note)
        said_k, said_mn = (np.array(SECONDS[model, each]) for each in ("K", "MN"))
        ratio = _over(times["MN"][0], times["K"][0])
        note = f"at {LENGTHS[0]} tokens, reading {reading}"
        yield row(f"{name}/MN_over_K", ratio, float(said_mn[0] / said_k[0]), "x", "at", note)
        note = "of the plotted values; the text says the hidden size"
        yield row(
            f"{name}/crossing",
            crossing(times["K"], times["MN"]),
            crossing(said_k.tolist(), said_mn.tolist()),
            "tokens",
            "at",
            note,
        )


def crossing(rising: Sequence[float | None], flat: Sequence[float | None]) -> float | None:
    """Length at which one curve passes another: between two points, or past the last two.

    None if that is more than twice the last length.
    """
    if None in rising or None in flat:
        return None
    gaps = np.array(flat, dtype=float) - np.array(rising, dtype=float)
    below = np.flatnonzero(gaps <= 0)
    last = int(below[0]) if len(below) else len(gaps) - 1
    last = max(last, 1)
    slope = (gaps[last] - gaps[last - 1]) / (LENGTHS[last] - LENGTHS[last - 1])
    length = float(LENGTHS[last] - gaps[last] / slope) if slope < 0 else math.inf
    return length if length <= 2 * LENGTHS[-1] else None


def figure_9_targets(rows: Sequence[Mapping[str, Any]], *, quick: bool) -> Iterator[dict[str, Any]]:
    """What the text claims, under each reading."""
    model_of = {each["id"]: each["model"] for each in rows}
    paper_of = {each["id"]: each["paper"] for each in rows}
    for reading, model in product(figure_9_readings(quick=quick), MODELS):
        name = f"F9/{model}/{reading}"
        times = {
            (partition, tokens): model_of[f"{name}/{partition}-T{tokens}"] or float("nan")
            for partition, tokens in product(PARTITIONS, LENGTHS)
        }
        fastest = [min(PARTITIONS, key=lambda each: times[each, tokens]) for tokens in LENGTHS]
        first, last = LENGTHS[0], LENGTHS[-1]
        over = times["MN", first] / times["K", first]
        yield target(f"{name}: K is the fastest at {first} tokens", over, fastest[0] == "K")
        for figure in ("MN_over_K", "crossing"):
            value = model_of[f"{name}/{figure}"]
            said = paper_of[f"{name}/{figure}"]
            text = f"{name}: {figure} within a factor of {FACTOR:g} of {said:.3g}"
            yield target(text, value, within_factor(value, said, FACTOR))
        between = [
            times["K", tokens] <= times["MNK", tokens] <= times["MN", tokens]
            for tokens in LENGTHS[:-1]
        ]
        text = f"{name}: MNK between K and MN up to {LENGTHS[-2]} tokens"
        yield target(text, float(sum(between)), all(between))
        faster = times["MN", last] / times["MNK", last]
        yield target(f"{name}: MNK is the fastest at {last} tokens", faster, fastest[-1] == "MNK")


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other
