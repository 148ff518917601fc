"""Figure 8: a single request, by local memory, array and memory bandwidth of a core."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from workloads.machine.groups import Parallel, groups_on
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.models import find_model
from workloads.serving.engine.run import run
from workloads.serving.load.generator import generate
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.schedulers import SchedulerOptions, make_scheduler
from workloads.studies.campaign import Figures
from workloads.studies.ends import with_ends
from workloads.studies.npusim.judge import row, target
from workloads.studies.npusim.served import NO_HEAD, Core, study_chip
from workloads.studies.rows import interval_of

#: Tokens of the prompt and of the output: as published inputs have them, and 5 to 1, as the text.
LENGTHS = {"inputs": (1024, 20), "5-to-1": (100, 20)}
#: Layers that published inputs run, without an output head, and layers that plotted seconds are of:
#: by seconds of a token's work those of 32B are of all of its layers.
_LAYERS = {"qwen3-4b": (32, 32), "qwen3-32b": (16, 64)}
#: Groups of four cores, all 64 of them in one pipeline.
_TENSOR, _STAGES, _NOC_GB_S = 4, 16, 160
MODELS = ("qwen3-4b", "qwen3-32b")
#: Local memory in MB and side of the array, as plotted from left to right; bandwidths in GB/s.
CORES = ((128, 32), (128, 64), (128, 128), (64, 128), (32, 128))
BANDWIDTHS = (30, 60, 120)
#: Plotted seconds by model and core, at `BANDWIDTHS`.
SECONDS = {
    "qwen3-4b": (
        (6.40, 6.37, 6.37), (3.93, 3.92, 3.92), (2.73, 2.71, 2.71), (3.06, 2.82, 2.72),
        (3.70, 3.10, 2.81),
    ),
    "qwen3-32b": (
        (61.9, 57.9, 57.9), (42.5, 36.1, 34.1), (31.3, 25.4, 22.7), (31.6, 25.6, 22.8),
        (33.0, 26.4, 23.2),
    ),
}  # fmt: skip
_ENGINES = ("formula", "overlapped", "load-stream-drain")
#: Bandwidth that changes less changes nothing; memory whose size hardly matters changes no more.
_NOTHING, _HARDLY = 1.02, 1.10
#: The text's factor of bandwidth for the larger model, and how near it is to be.
_FACTOR, _WITHIN_PCT = 1.4, 25.0


class SingleCase(NamedTuple):
    """A request alone on the chip.

    Attributes:
        model: Its model.
        lengths: One of `LENGTHS`.
        core: Of the chip.
    """

    model: str
    lengths: str
    core: Core


def single_figures(case: SingleCase) -> Figures:
    """Serve the request, with ends by the error of the prices."""
    inputs, outputs = LENGTHS[case.lengths]
    load = generate(f"fixed:{inputs}:{outputs}", 1, math.inf, 1.0, 0)
    model, told = find_model(case.model), 1.0
    if case.lengths == "inputs":
        layers, of_layers = _LAYERS[case.model]
        model = model.model_copy(update={"layers": layers, "vocabulary": NO_HEAD})
        told = of_layers / layers
    parallel = Parallel(tensor=_TENSOR, pipeline=_STAGES)
    groups = groups_on(study_chip(case.core, _NOC_GB_S), parallel)
    price = GroupsPrice(model, groups, parallel, kv_wanted_tokens=load.most_tokens(1, BLOCK_TOKENS))
    kept = price.kernels.residencies

    def served(prices: Sequence[GroupsPrice]) -> Figures:
        result = run(load, make_scheduler("continuous", SchedulerOptions()), prices[0])
        return {
            "seconds": told * result["e2e_s"]["mean"],
            "ttft_s": told * result["ttft_s"]["mean"],
            "kept_layers": float(sum(each.layers for each in kept)),
            "overloaded": result["overloaded"],
        }

    return with_ends([price], served)


class Reading(NamedTuple):
    """What the figure leaves open.

    Attributes:
        engine: One of `_ENGINES`.
        lengths: One of `LENGTHS`.
    """

    engine: str
    lengths: str

    @property
    def name(self) -> str:
        """Of a row."""
        return f"{self.engine}-{self.lengths}"


def figure_8_case(reading: Reading, model: str, core: tuple[int, int], hbm_gb_s: int) -> SingleCase:
    """A run."""
    sram_mib, array = core
    return SingleCase(model, reading.lengths, Core(array, hbm_gb_s, sram_mib, reading.engine))


READINGS = [Reading(*each) for each in product(_ENGINES, LENGTHS)]


def figure_8_cases() -> Iterator[SingleCase]:
    """All runs."""
    for each in product(READINGS, MODELS, CORES, BANDWIDTHS):
        yield figure_8_case(*each)


def figure_8(found: Mapping[str, Figures]) -> Iterator[dict[str, Any]]:
    """Seconds, those over the fastest, which lengths matter less to, and layers that are kept."""
    for reading, model in product(READINGS, MODELS):
        note = "{} tokens in, {} out".format(*LENGTHS[reading.lengths])
        fastest = found[repr(figure_8_case(reading, model, CORES[2], BANDWIDTHS[-1]))]["seconds"]
        assert fastest is not None
        for (place, core), (at, hbm) in product(enumerate(CORES), enumerate(BANDWIDTHS)):
            figures = found[repr(figure_8_case(reading, model, core, hbm))]
            name = f"F8/{reading.name}-{model}/{Core(core[1], hbm, core[0]).name}"
            seconds, said = figures["seconds"], SECONDS[model][place][at]
            assert seconds is not None
            between = interval_of(figures, "seconds")
            yield row(f"{name}/seconds", seconds, said, "s", "perf", note, interval=between)
            over = said / SECONDS[model][2][-1]
            fastest_told = f"S128A128H{BANDWIDTHS[-1]}"
            yield row(f"{name}/over", seconds / fastest, over, "x", "perf", f"of {fastest_told}")
            yield row(
                f"{name}/kept", figures["kept_layers"], None, "layers", "perf", "in the tiles"
            )


def figure_8_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the text claims, under each reading."""
    model_of = {each["id"]: each["model"] for each in rows}

    def seconds(reading: Reading, model: str, core: tuple[int, int], hbm_gb_s: int) -> float:
        name = Core(core[1], hbm_gb_s, core[0]).name
        return float(model_of[f"F8/{reading.name}-{model}/{name}/seconds"])

    low, high = BANDWIDTHS[0], BANDWIDTHS[-1]
    for reading in READINGS:
        small, large = ((reading, model) for model in MODELS)
        name = f"F8/{reading.name}"
        for core in CORES[:3]:
            gain = seconds(*small, core, low) / seconds(*small, core, high)
            text = f"{name}: 4B, S{core[0]}A{core[1]}: bandwidth changes nothing"
            yield target(text, gain, gain < _NOTHING)
        for of in (small, large):
            told = of[1].rpartition("-")[2].upper()
            arrays = [seconds(*of, core, high) for core in CORES[:3]]
            text = f"{name}: {told}: a larger array is faster"
            yield target(text, arrays[0] / arrays[2], arrays == sorted(arrays, reverse=True))
            sizes = [seconds(*of, core, low) for core in CORES[2:]]
            text = f"{name}: {told}: more local memory is not slower"
            yield target(text, sizes[2] / sizes[0], sizes == sorted(sizes))
            gains = [
                seconds(*of, core, one) >= seconds(*of, core, other)
                for core in CORES
                for one, other in pairwise(BANDWIDTHS)
            ]
            yield target(f"{name}: {told}: more bandwidth is not slower", sum(gains), all(gains))
        gain = max(seconds(*large, core, low) / seconds(*large, core, high) for core in CORES)
        text = f"{name}: 32B: bandwidth alone is worth {_FACTOR:g} x, within {_WITHIN_PCT:g} %"
        yield target(text, gain, abs(gain / _FACTOR - 1) <= _WITHIN_PCT / 100)
        gain = seconds(*large, CORES[4], low) / seconds(*large, CORES[2], low)
        text = f"{name}: 32B: four times the local memory hardly matters"
        yield target(text, gain, gain < _HARDLY)
