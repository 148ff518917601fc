"""Figure 12: other cores for decoding, by array and memory bandwidth, and their area."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tlm.chips.area import core_mm2
from workloads.studies.campaign import Figures
from workloads.studies.npusim.judge import row, target
from workloads.studies.npusim.served import ENGINES, SHAPES, Core, ServedCase, study_chip
from workloads.studies.rows import interval_of

#: Cores for prompts, which have an array of 64 x 64 and 60 GB/s, and cores that decode.
_SPLIT, _SIDE, _HBM_GB_S, _NOC_GB_S = (42, 21), 64, 60, 160
#: Prompt and output: not published.
_LENGTHS = 100, 100
#: Plotted tokens a second by array and bandwidth of a core that decodes.
PLOTTED = {
    (64, 30): 860, (64, 60): 907, (64, 120): 2080, (64, 240): 2080, (64, 480): 2080,
    (32, 30): 859, (32, 60): 1305, (32, 120): 1542, (32, 240): 1567, (32, 480): 1567,
}  # fmt: skip
#: What multiplies, and what the paper calls Qwen3-4B.
READINGS = {
    f"{engine}-{shape}": (engine, shape)
    for engine, shape in product(ENGINES, SHAPES)
    if (engine, shape) != ("local-memory", "text")  # both are of published inputs
}
#: Of equal cores there are two plotted values: that of this figure, and that of figure 14.
BASES = {"907": 907, "1442": 1442}
#: What the figure divides the throughput of equal cores by, in mm2; its other areas have 749.4.
_BASE_MM2 = 726.4
#: More bandwidth helps no more if it adds less, and it does if it adds as much.
_NO_MORE, _MORE = 1.05, 1.2
_WITHIN_PCT = 15.0


def figure_12_case(reading: str, array: int, hbm_gb_s: int) -> ServedCase:
    """A run."""
    engine, shape = READINGS[reading]
    prompts = Core(_SIDE, _HBM_GB_S, engine=engine)
    decode = Core(array, hbm_gb_s, engine=engine)
    return ServedCase(*_LENGTHS, prompts, _NOC_GB_S, *_SPLIT, decode, shape)


def figure_12_cases() -> Iterator[ServedCase]:
    """All runs."""
    for reading, core in product(READINGS, PLOTTED):
        yield figure_12_case(reading, *core)


def area_mm2(array: int, hbm_gb_s: int) -> float:
    """Of the cores of both pools."""
    of_each = (
        core_mm2(study_chip(core, _NOC_GB_S))
        for core in (Core(_SIDE, _HBM_GB_S), Core(array, hbm_gb_s))
    )
    prompts, decode = (area for area in of_each if area is not None)  # all are points of the table
    return _SPLIT[0] * prompts + _SPLIT[1] * decode


def figure_12(found: Mapping[str, Figures]) -> Iterator[dict[str, Any]]:
    """Tokens a second, by area, and the time between tokens."""
    for reading, core in product(READINGS, PLOTTED):
        figures, area = found[repr(figure_12_case(reading, *core))], area_mm2(*core)
        name = f"F12/{reading}/{Core(*core).name}"
        note = "{} tokens in, {} out: not published".format(*_LENGTHS)
        rate = figures["throughput_tok_s"]
        assert rate is not None
        between = interval_of(figures, "throughput_tok_s")
        said = PLOTTED[core]
        yield row(f"{name}/throughput", rate, said, "tok/s", "perf", note, interval=between)
        note = f"of {area:.1f} mm2"
        yield row(f"{name}/by_area", rate / area, said / area, "tok/s/mm2", "perf", note)
        between = interval_of(figures, "tbt_s")
        yield row(f"{name}/tbt", figures["tbt_s"], None, "s", "perf", "mean", interval=between)


def figure_12_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """What bandwidth and the smaller array are worth, under each reading."""
    model = {each["id"]: each["model"] for each in rows}

    def found(reading: str, array: int, hbm_gb_s: int, figure: str) -> float:
        return float(model[f"F12/{reading}/{Core(array, hbm_gb_s).name}/{figure}"])

    for reading in READINGS:
        name = f"F12/{reading}"
        best = found(reading, 64, 480, "throughput") / found(reading, 64, 60, "throughput")
        yield target(f"{name}: more bandwidth than 60 GB/s helps decoding", best, best > _MORE)
        for base, rate in BASES.items():
            said = PLOTTED[64, 480] / rate
            text = f"{name}: by {said:.2f} x (base {base}), within {_WITHIN_PCT:g} %"
            yield target(text, best, abs(best / said - 1) <= _WITHIN_PCT / 100)
        more = found(reading, 64, 480, "throughput") / found(reading, 64, 120, "throughput")
        yield target(f"{name}: past 120 GB/s the array binds", more, more < _NO_MORE)
        more = found(reading, 32, 480, "throughput") / found(reading, 32, 120, "throughput")
        yield target(f"{name}: past 120 GB/s the smaller array binds", more, more < _NO_MORE)
        base_area = found(reading, 64, 60, "by_area")
        small = found(reading, 32, 120, "by_area")
        for base, rate in BASES.items():
            said = PLOTTED[32, 120] / area_mm2(32, 120) / (rate / _BASE_MM2)
            text = (
                f"{name}: A32H120 by area is {said:.2f} x equal cores (base {base}), within "
                f"{_WITHIN_PCT:g} %"
            )
            yield target(text, small / base_area, abs(small / base_area / said - 1) <= 0.15)
        over = small / found(reading, 64, 120, "by_area")
        text = f"{name}: with 120 GB/s the smaller array is ahead by area (text)"
        yield target(text, over, over > 1)
        text = f"{name}: with 120 GB/s the larger array is ahead by area (plot)"
        yield target(text, over, over < 1)
        times = {core: found(reading, *core, "tbt") * area_mm2(*core) for core in PLOTTED}
        quickest = min(times, key=lambda core: times[core])
        told = Core(*quickest).name
        text = f"{name}: A32H60 is the best by time between tokens and area (found: {told})"
        yield target(text, times[32, 60] / times[quickest], quickest == (32, 60))
