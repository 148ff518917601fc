"""Streaming products whose tiles share at most one operand and add up sums, against `lt`."""

from typing import NamedTuple

import numpy as np
import pytest

from calibration.levels.chips import Ground
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm.stream_closed_form import candidate_cycles
from workloads.kernels.gemm.stream_plan import GridCut, StreamPlan
from workloads.kernels.gemm.stream_search import plan_stream
from workloads.kernels.gemm.stream_steps import Candidates, CutFigures, figures_on


class _Case(NamedTuple):
    """A plan, and percent between its closed form and `lt`."""

    chip: str
    grid: tuple[int, int]
    cut: tuple[int, int, int, int, int, int]
    sizes: tuple[int, int, int, int]  # groups, then M, N and K
    block: tuple[int, int, int]
    method: str
    most: float
    resident: bool = False


_CASES = [
    # K is not cut: packets of a block are apart, and a tile's own block goes between them.
    _Case("npusim-small", (1, 4), (1, 1, 1, 2, 2, 1), (3, 43, 137, 157), (22, 69, 53), "tree", 0.5),
    _Case("npusim-small", (8, 1), (8, 1, 1, 1, 1, 1), (3, 350, 20, 675), (44, 20, 62), "tree", 0.5),
    # Across the lines, by messages and in the network.
    _Case("rtl", (4, 4), (1, 2, 2, 1, 4, 1), (24, 3, 66, 88), (3, 16, 44), "sequential", 3),
    _Case("npusim-large", (4, 4), (1, 2, 2, 1, 4, 1), (24, 2, 461, 532), (2, 58, 266), "tree", 1),
    _Case("wse2", (8, 8), (1, 1, 8, 1, 8, 1), (24, 5, 75, 64), (5, 10, 8), "sequential", 1),
    _Case("rtl", (4, 4), (1, 1, 4, 1, 4, 1), (3, 20, 141, 155), (20, 40, 39), "network", 2),
    # Packets of blocks go between those of a long sum.
    _Case("rtl", (8, 8), (1, 2, 4, 2, 4, 1), (12, 41, 145, 153), (21, 24, 39), "network", 3),
    # Along the line: trees lie between each other's tiles.
    _Case(
        "flat32-wafer", (1, 8), (1, 1, 1, 1, 4, 2), (3, 41, 254, 292), (41, 64, 146), "network", 0.5
    ),
    _Case("rtl", (1, 8), (1, 1, 1, 1, 4, 2), (12, 67, 136, 174), (23, 40, 87), "sequential", 10),
    # Tiles share nothing.
    _Case("rtl", (4, 4), (1, 4, 1, 1, 1, 4), (24, 4, 85, 66), (4, 24, 17), "network", 0.5),
    _Case("wse2", (4, 4), (1, 4, 1, 1, 1, 4), (24, 3, 48, 55), (3, 12, 14), "tree", 1),
    # B lies in the tiles. Messages of trees that begin at once meet; the form has each by itself.
    _Case(
        "npusim-large", (8, 8), (1, 8, 1, 1, 1, 8), (24, 4, 662, 725), (4, 83, 91), "tree", 9,
        resident=True,
    ),
    _Case(
        "npusim-large", (8, 8), (2, 4, 1, 1, 1, 8), (3, 702, 411, 2830), (351, 103, 354), "tree", 1,
        resident=True,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case.chip} {case.cut}")
def test_a_plan(case: _Case) -> None:
    ground = Ground.of(case.chip, case.grid, memory=False)
    groups, *shape = case.sizes
    plan = StreamPlan(
        ground.place, (shape[0], shape[1], shape[2]), groups, GridCut(*case.cut), case.block,
        case.method, resident=case.resident,
    )  # fmt: skip
    found = ground.both(KERNELS["grouped-gemm"], plan)
    assert found is not None
    lt, perf = found
    assert 100 * abs(perf / lt - 1) < case.most


def test_the_fastest_candidate_is_not_left_out() -> None:
    """A search asks for the cycles of those alone that may be the fastest."""
    ground = Ground.of("rtl", (4, 4), memory=False)
    problem = plan_stream((3, 66, 88), ground.place, ground.place.method(None), 24)
    cuts = [GridCut(*each) for each in _SOME_CUTS]
    figures = np.array([figures_on(ground.place)(cut) for cut in cuts]).T
    which = Candidates(CutFigures(*figures), *np.array([(3, 8, 22)] * len(cuts)).T)
    every = candidate_cycles(problem, which, ground.timing)
    some = candidate_cycles(problem, which, ground.timing, np.zeros(len(cuts), dtype=np.int64))
    assert np.isfinite(every).all()
    assert np.isinf(some).any()
    assert some.argmin() == every.argmin()
    assert some.min() == every.min()


_SOME_CUTS = [
    (1, 2, 2, 1, 4, 1), (1, 4, 1, 1, 1, 4), (1, 4, 1, 1, 4, 1), (1, 1, 4, 1, 4, 1),
    (4, 1, 1, 1, 4, 1), (1, 4, 1, 1, 2, 2), (2, 1, 2, 1, 4, 1),
]  # fmt: skip
