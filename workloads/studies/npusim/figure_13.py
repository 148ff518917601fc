"""Figure 13: stages of a pipeline and the size of SRAM."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from tlm.chips import find_tiles
from workloads.machine.groups import Parallel, groups_on
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.models import find_model
from workloads.serving.engine.run import run
from workloads.serving.load.generator import generate
from workloads.serving.price.group_price import GroupsPrice
from workloads.studies.campaign import Figures
from workloads.studies.ends import with_ends
from workloads.studies.npusim.figure_9 import FACTOR
from workloads.studies.npusim.judge import row, target, within_factor
from workloads.studies.npusim.served import fused
from workloads.studies.rows import interval_of

_CHIP, _MODEL, _TENSOR, _TOKENS = "npusim-small", "qwen3-8b", 4, 128
_CORES = 256
#: Published inputs; the text says 32 where they have 36.
STAGES = (36, 18, 12)
#: The published inputs have other sizes than the labels: 16, 32 and 48 MB hold no layer of a core.
SRAM_MB = {"inputs": (64, 128, 192), "labels": (16, 32, 48)}
#: Plotted ms, by `STAGES` and the three sizes.
PLOTTED = {36: (1796, 687, 689), 18: (2891, 1946, 464), 12: (2822, 2442, 610)}


class Reading(NamedTuple):
    """What the figure leaves open beside the sizes of SRAM.

    Attributes:
        outputs: Tokens that come out.
        hbm_gb_s: Bandwidth of a core's memory.
    """

    outputs: int
    hbm_gb_s: int


#: The plotted latency is from end to end: of the prompt alone, or of ten tokens, too, as published
#: inputs end an output with a chance of 0.1 at each; with the least bandwidth of table 3, or the
#: most.
READINGS = {
    "prompt-H15": Reading(1, 15),
    "10-out-H15": Reading(10, 15),
    "10-out-H60": Reading(10, 60),
}
#: Published inputs have a prompt in four chunks.
_CHUNKS = 4
#: The text: at the least SRAM the most stages are ahead by so much; more SRAM, for few stages.
_AHEAD, _FASTER = (1.1, 1.61), (2.6, 3.7)
_SLACK = 1.15


class StagedCase(NamedTuple):
    """A request alone on a pipeline.

    Attributes:
        stages: Of the pipeline.
        sram_mb: Of a core.
        reading: What comes out, and how fast memory is.
    """

    stages: int
    sram_mb: int
    reading: Reading


def staged_figures(case: StagedCase) -> Figures:
    """Latency of the request from its prompt to its last token, and its ends."""
    changes = (
        f"tile.sram_kib={1024 * case.sram_mb}",
        f"memory.bandwidth_bytes_per_s={_CORES * case.reading.hbm_gb_s * 1e9}",
    )
    load = generate(f"fixed:{_TOKENS}:{case.reading.outputs}", 1, math.inf, 1.0, 0)
    parallel = Parallel(tensor=_TENSOR, pipeline=case.stages)
    groups = groups_on(find_tiles(_CHIP, changes), parallel)
    wanted = load.most_tokens(1, BLOCK_TOKENS)
    price = GroupsPrice(find_model(_MODEL), groups, parallel, kv_wanted_tokens=wanted)

    def served(prices: Sequence[GroupsPrice]) -> Figures:
        result = run(load, fused(case.stages, _TOKENS // _CHUNKS), prices[0])
        return {"ms": 1e3 * result["e2e_s"]["mean"], "overloaded": result["overloaded"]}

    return with_ends([price], served)


def figure_13_cases() -> Iterator[StagedCase]:
    """All requests."""
    for reading, sizes, stages in product(READINGS.values(), SRAM_MB.values(), STAGES):
        yield from (StagedCase(stages, size, reading) for size in sizes)


def figure_13(found: Mapping[str, Figures]) -> Iterator[dict[str, Any]]:
    """Milliseconds by stages and SRAM."""
    for name, source, stages in product(READINGS, SRAM_MB, STAGES):
        reading = READINGS[name]
        for size, said in zip(SRAM_MB[source], PLOTTED[stages], strict=True):
            figures = found[repr(StagedCase(stages, size, reading))]
            between = interval_of(figures, "ms")
            note = (
                f"SRAM as the {source} have it; {reading.outputs} tokens out, {reading.hbm_gb_s} "
                "GB/s: not published"
            )
            told = f"F13/{source}-{name}/PP{stages}-S{size}/latency"
            yield row(told, figures["ms"], said, "ms", "perf", note, interval=between)


def figure_13_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """That more stages are ahead at small SRAM, and that more SRAM helps fewer stages."""
    model = {each["id"]: each["model"] for each in rows}
    most, *fewer = STAGES
    for name, (source, sizes) in product(READINGS, SRAM_MB.items()):
        run = f"F13/{source}-{name}"
        times = {
            (stages, size): model[f"{run}/PP{stages}-S{size}/latency"]
            for stages, size in product(STAGES, sizes)
        }
        for stages in fewer:
            ahead = times[stages, sizes[0]] / times[most, sizes[0]]
            text = f"{run}: {most} stages are ahead of {stages} at {sizes[0]} MB"
            yield target(text, ahead, ahead > 1.0)
            yield target(f"{text} by {_told(_AHEAD)}", ahead, ahead > 1 and _near(ahead, _AHEAD))
            faster = times[stages, sizes[0]] / times[stages, sizes[-1]]
            text = f"{run}: {stages} stages faster with {sizes[-1]} MB by {_told(_FASTER)}"
            yield target(text, faster, _near(faster, _FASTER))
        for stages in STAGES:
            said = PLOTTED[stages][0] / PLOTTED[stages][-1]
            faster = times[stages, sizes[0]] / times[stages, sizes[-1]]
            text = f"{run}: {stages} stages faster with {sizes[-1]} MB by {said:.2f} x, as plotted"
            met = within_factor(faster, said, FACTOR)
            yield target(f"{text}, within a factor of {FACTOR:g}", faster, met)


def _near(found: float, said: tuple[float, float]) -> bool:
    return said[0] / _SLACK <= found <= said[1] * _SLACK


def _told(said: tuple[float, float]) -> str:
    return f"{said[0]:g} to {said[1]:g} x"
