"""Closed forms against `lt` at the constants of every shipped chip."""

from itertools import groupby
from operator import attrgetter

import pytest

from calibration.levels import chips
from calibration.levels.chips import CHIPS, chip_points
from tlm.comparisons import ChipPoint, load_chips
from tlm.spread import Spread, by_kernel, spread
from workloads.kernels.catalogue import KERNELS, Choices

MEAN_PCT, WORST_PCT = 3.0, 10.0
AT_MEAN_PCT, AT_WORST_PCT = 3.0, 12.0
#: Kernels whose closed form misses a bound, on the project's own tiles alone.
MISSES = {"stream-gemm": "from memory, blocks of a column wait for multicasts along its rows"}


def own(points: list[ChipPoint]) -> list[ChipPoint]:
    """Of kernels as they are by themselves."""
    return [point for point in points if not point.variant]


def spreads(points: list[ChipPoint]) -> dict[tuple[str, str], Spread[ChipPoint]]:
    """Errors of each kernel on each chip."""
    return {
        (kernel, chip): spread(list(of_chip), attrgetter("error_pct"))
        for kernel, of_kernel in by_kernel(own(points)).items()
        for chip, of_chip in groupby(of_kernel, attrgetter("chip"))
    }


def test_every_kernel_was_compared_on_every_chip_that_runs_it() -> None:
    stored = spreads(load_chips().points)
    # It sums in the network or by streams, and two of the chips have neither.
    missing = {("mesh-gemm-t", chip) for chip in ("npusim-large", "npusim-small")}
    assert stored.keys() == {(name, chip) for name in KERNELS for chip in CHIPS} - missing
    assert min(each.cases for each in stored.values()) >= 4


def test_errors_are_within_their_bounds_but_for_those_named() -> None:
    beyond = {
        which
        for which, each in spreads(load_chips().points).items()
        if each.mean_abs_pct > MEAN_PCT or each.max_abs_pct > WORST_PCT
    }
    assert beyond == {(kernel, "rtl") for kernel in MISSES}


_FLAT = pytest.mark.xfail(reason="one case of flat-attention is 16.3 % off", strict=True)


@pytest.mark.parametrize(
    ("chip", "grids"),
    [
        ("rtl", [(4, 4)]),
        pytest.param("rtl", [(4, 4), (8, 8)], marks=[pytest.mark.slow, _FLAT]),
        pytest.param("flat32", [(4, 4), (8, 8)], marks=pytest.mark.slow),
    ],
)
def test_cases_that_were_drawn_later_are_as_near(
    chip: str, grids: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seed that nothing was looked at with, on small grids, of kernels by themselves.

    The worst is `flat-attention` of 2,4,4,107,168,16,16 on 8x8 of the project's tiles, from memory:
    -16.3 %. Then comes `grouped-gemm` of 24,4,64,45 on 4x4, +13.7 %.
    """
    alone = [(name, Choices()) for name in KERNELS]
    monkeypatch.setattr(chips, "_runs", lambda grid: alone)
    for (kernel, _), each in spreads(list(chip_points(2026, [chip], grids))).items():
        assert each.mean_abs_pct <= 1.2 * MEAN_PCT, (kernel, each)
        assert each.max_abs_pct <= 1.6 * WORST_PCT, (kernel, each.worst)


def test_lt_is_near_at_on_every_chip() -> None:
    points = [point for point in load_chips().points if point.at is not None]
    assert {point.chip for point in points} == set(CHIPS)
    assert {point.case.split(":")[0] for point in points} == {"2x2", "4x4", "8x8", "16x16"}
    # Of every kernel, and of those that have it with off-chip memory.
    whole = {(point.kernel, point.memory) for point in load_chips().points}
    assert {(point.kernel, point.memory) for point in points} == whole
    beyond = {
        kernel
        for kernel, of_kernel in by_kernel(own(points)).items()
        if (each := spread(of_kernel, attrgetter("lt_error_pct"))).mean_abs_pct > AT_MEAN_PCT
        or each.max_abs_pct > AT_WORST_PCT
    }
    assert not beyond


@pytest.mark.parametrize("grid", ["8x8", "16x16"])
def test_lt_is_near_at_in_every_variant_of_flat_attention(grid: str) -> None:
    """With all tiles in a group, and as the plan says."""
    points = [
        point
        for point in load_chips().points
        if point.kernel == "flat-attention" and point.at and point.case.startswith(grid)
    ]
    by_variant = {
        variant: spread(
            [point for point in points if point.variant == variant], attrgetter("lt_error_pct")
        )
        for variant in {point.variant for point in points}
    }
    assert by_variant.keys() >= {
        "", "naive", "naive, tree", "naive, sequential", "naive, causal",
    }  # fmt: skip
    assert min(each.cases for each in by_variant.values()) >= 4
    assert {name for name, each in by_variant.items() if each.mean_abs_pct > 5} == set()


@pytest.mark.parametrize(
    "kernels",
    [("summa", "rms-norm"), pytest.param(tuple(KERNELS), marks=pytest.mark.slow)],
    ids=["two", "all"],
)
def test_equal_seeds_give_equal_cases(
    kernels: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [(name, choices) for name, choices in chips._runs((4, 4)) if name in kernels]
    monkeypatch.setattr(chips, "_runs", lambda grid: runs)
    stored = [
        point
        for point in load_chips().points
        if point.chip == "flat32" and point.case.startswith("4x4") and point.kernel in kernels
    ]
    assert {point.kernel for point in stored} == {*kernels}
    assert list(chip_points(7, ["flat32"], [(4, 4)])) == stored
