"""Figure 13: stages of a pipeline and the size of SRAM."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from tlm.chips import find_tiles
from workloads.machine.groups import Parallel, groups_on
from workloads.models import find_model
from workloads.serving.price.cost import Batch
from workloads.serving.price.group_price import GroupsPrice
from workloads.studies.campaign import Figures
from workloads.studies.npusim.judge import row, target

_CHIP, _MODEL, _TENSOR, _TOKENS = "npusim-small", "qwen3-8b", 4, 128
_CORES = 256
#: Published inputs; the text says 32 where they have 36.
STAGES = (36, 18, 12)
#: The published inputs have other sizes than the labels: 16, 32 and 48 MB hold no layer of a core.
SRAM_MB = {"inputs": (64, 128, 192), "labels": (16, 32, 48)}
#: Plotted ms, by `STAGES` and the three sizes.
PLOTTED = {36: (1796, 687, 689), 18: (2891, 1946, 464), 12: (2822, 2442, 610)}
#: GB/s a core: the least of table 3, with which SRAM counts most. The paper does not say its own.
_HBM_GB_S = 15
#: The text: at the least SRAM the most stages are ahead by so much; more SRAM, for few stages.
_AHEAD, _FASTER = (1.1, 1.61), (2.6, 3.7)
_SLACK = 1.15


class StagedCase(NamedTuple):
    """A prompt on a pipeline.

    Attributes:
        stages: Of the pipeline.
        sram_mb: Of a core.
    """

    stages: int
    sram_mb: int


def staged_figures(case: StagedCase) -> Figures:
    """Time of the prompt through all stages."""
    changes = (
        f"tile.sram_kib={1024 * case.sram_mb}",
        f"memory.bandwidth_bytes_per_s={_CORES * _HBM_GB_S * 1e9}",
    )
    parallel = Parallel(tensor=_TENSOR, pipeline=case.stages)
    groups = groups_on(find_tiles(_CHIP, changes), parallel)
    price = GroupsPrice(find_model(_MODEL), groups, parallel)
    return {"seconds": price.cost(Batch(((_TOKENS, 0),), 0, 0, 1)).seconds}


def figure_13_cases() -> Iterator[StagedCase]:
    """All prompts."""
    for sizes, stages in product(SRAM_MB.values(), STAGES):
        yield from (StagedCase(stages, size) for size in sizes)


def figure_13(found: Mapping[str, Figures]) -> Iterator[dict[str, Any]]:
    """Milliseconds by stages and SRAM."""
    for (reading, sizes), stages in product(SRAM_MB.items(), STAGES):
        for size, said in zip(sizes, PLOTTED[stages], strict=True):
            seconds = found[repr(StagedCase(stages, size))]["seconds"]
            name = f"F13/{reading}/PP{stages}-S{size}/prompt"
            model = None if seconds is None else 1e3 * seconds
            note = f"SRAM as the {reading} have it; memory of the runs is not published"
            yield row(name, model, said, "ms", "perf", note)


def figure_13_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """That more stages are ahead at small SRAM, and that more SRAM helps fewer stages."""
    model = {each["id"]: each["model"] for each in rows}
    most, *fewer = STAGES
    for reading, sizes in SRAM_MB.items():
        run = f"F13/{reading}"
        times = {
            (stages, size): model[f"{run}/PP{stages}-S{size}/prompt"]
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


def _near(found: float, said: tuple[float, float]) -> bool:
    return said[0] / _SLACK <= found <= said[1] * _SLACK


def _told(said: tuple[float, float]) -> str:
    return f"{said[0]:g} to {said[1]:g} x"
