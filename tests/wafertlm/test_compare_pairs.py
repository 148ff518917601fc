"""Errors of a change, measured on small cases: what they cover, what they cost, where they hold."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Wafertlm
from tests.wafertlm.test_compare import (
    assert_nothing_changes,
    calibrated,
    changes_to,
    compared,
)
from tlm.chips import find_tiles
from tlm.chips.parts import PacketRouter
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.zero_load import NocTiming
from tlm.level_errors import Between
from wafertlm.compare import cases, pairs
from wafertlm.compare.cases import Case, Ground, Work
from wafertlm.compare.change import Paired, Ran, Source, change
from wafertlm.compare.pairs import SEED, Both, PairedCase, PairError, Pairs
from workloads.machine.network import Network
from workloads.models import find_model
from workloads.serving.price.level_runs import LevelRuns
from workloads.serving.price.models import serving_model
from workloads.serving.price.parts import Decode, Head, Layer, Part, Prompt
from workloads.serving.price.tile_price import TilePrice

#: An iteration with prompts, and one without.
PARTS: Sequence[Part] = (
    Layer(304, False),
    Prompt(280, 0, None),
    Decode(20, 1, 800, None),
    Head(21),
    Layer(20, False),
)
SERVE = ("serve", "--model", "qwen3-1.7b", "--chip", "flat32", "--scheduler", "chunked",
         "--workload", "fixed:200:20", "--rate", "8", "--requests", "20")  # fmt: skip
ITERATION = ("iteration", *SERVE[1:5], "--decode", "4@200")


@pytest.fixture(autouse=True)
def cheap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Shorter cases, in a store of their own."""
    monkeypatch.setenv("WAFERTLM_CACHE", str(tmp_path / "cache"))
    slow = request.node.get_closest_marker("slow") is not None
    monkeypatch.setattr(cases, "MOST_COST", 1_200 if slow else 400)


def routers(**changed: Any) -> NocTiming:
    """The project's routers with a change, with flits as wide as the chip's."""
    return replace(rtl_timing(), flit_bytes=128, **changed)


EDITS = {
    "buffers of 8": routers(fifo_depth=8),
    "fixed order": routers(arbiter="fixed", unit_arbiter="fixed"),
    "one more hop cycle": routers(hop_cycles=2),
    "a second register in the adder": routers(reduce_cycles=2),
}


def pairs_of(
    edit: NocTiming, folder: Path, seed: int, parts: Sequence[Part] = PARTS
) -> tuple[Pairs, list[Both]]:
    """What an edit of the project's routers is measured on, on flat32, and kernels of a model."""
    model, prices = find_model("qwen3-1.7b"), []
    for timing in (routers(), edit):
        price = serving_model(model, find_tiles("flat32"), network=Network(timing, True))
        assert isinstance(price, TilePrice)
        prices.append(price)
    first, other = (
        Ground(price.prices.chip, PacketRouter(timing, timing.fifo_depth))
        for price, timing in zip(prices, (routers(), edit), strict=True)
    )
    both = []
    for part in parts:
        for plans in zip(*(price.prices.plans(part) for price in prices), strict=True):
            one, two = (Work.of(on.place, on.choices, mapped) for on, mapped in plans)
            both.append(Both(one, two, one.cycles))
    return Pairs(first, other, "perf", folder, seed), both


def covered(edit: str, folder: Path, parts: Sequence[Part], fresh: Sequence[int]) -> list[bool]:
    """Whether changes at level `at` of cases that are drawn afresh lie within the bounds."""
    measured, both = pairs_of(EDITS[edit], folder, SEED, parts)
    measured.measure(both)
    found: list[bool] = []
    errors: list[tuple[float, str]] = []
    for seed in fresh:
        others, _ = pairs_of(EDITS[edit], folder, seed, parts)
        others.measure(both)
        for key, error in others.errors.items():
            works = next(each for each in both if each.first[:3] == key[:3])
            for case in error.cases:
                ends = measured.between(works.first, works.other, case.change)
                true = (1 + case.lower_change) / (1 + case.change)
                found.append(ends is not None and ends.low - 1e-9 <= true <= ends.high + 1e-9)
                errors.append((abs(case.error), f"{works.first.kernel} {case.case.label}"))
    assert all(each["why_not"] is None for each in measured.records)
    sizes = [error for error, _ in errors]
    print(
        f"{edit}: {sum(found)} of {len(found)} fresh cases within the bounds; error of a change: "
        f"mean {100 * np.mean(sizes):.3f} %, worst {100 * max(sizes):.3f} % ({max(errors)[1]})"
    )
    return found


@pytest.mark.parametrize("edit", ["buffers of 8", "one more hop cycle"])
def test_changes_of_fresh_cases_lie_within_the_bounds(edit: str, tmp_path: Path) -> None:
    found = covered(edit, tmp_path, (Layer(60, False), Decode(20, 1, 304, None)), [1])
    assert sum(found) >= 0.9 * len(found)


@pytest.mark.slow
def test_changes_of_more_fresh_cases_lie_within_the_bounds(tmp_path: Path) -> None:
    found = [each for edit in EDITS for each in covered(edit, tmp_path, PARTS, [1])]
    assert sum(found) >= 0.9 * len(found)
    assert len(found) > 250


def meshes(folder: Path, **changed: Any) -> str:
    """The project's routers twice, and with a change, as specifications."""
    folder.mkdir()
    timings = {"first": rtl_timing(), "second": rtl_timing()}
    timings["other"] = replace(rtl_timing(), **changed)
    return ",".join(str(calibrated(folder, *each, bound=4)) for each in timings.items())


@pytest.mark.parametrize(
    ("command", "metric"),
    [(SERVE, "tbt_ms.mean"), (ITERATION, "cycles")],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_one_more_hop_cycle_is_significant_and_none_is_nothing(
    wafertlm: Wafertlm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    metric: str,
) -> None:
    monkeypatch.setattr(cases, "MOST_COST", 800)  # of each kernel there are cases
    vary = f"rtl={meshes(tmp_path / 'routers', hop_cycles=2)}"
    found = compared(wafertlm, *command, "--vary", vary, "--no-gates")
    slower = changes_to(found, 2)[metric]
    assert_nothing_changes(changes_to(found, 1))
    assert found["gates"] is None
    assert 0 < slower["low_pct"] <= slower["change_pct"] <= slower["high_pct"]
    assert slower["significant"]
    assert {each["variant"] for each in found["pairs"]} == {2}
    assert all(each["why_not"] is None for each in found["pairs"])
    # What has been measured is not measured again.
    monkeypatch.setattr(LevelRuns, "_measured", None)
    monkeypatch.setattr(pairs, "drawn_cases", None)
    assert compared(wafertlm, *command, "--vary", vary, "--no-gates")["changes"] == found["changes"]


def test_a_chips_own_figure_is_paired_too(wafertlm: Wafertlm) -> None:
    command = ("kernel", "summa", "--chip", "flat32", "--grid", "8x8", "--shape", "512,512,512",
               "--level", "perf")  # fmt: skip
    found = compared(wafertlm, *command, "--vary", "set:noc.hop_cycles=1,3")
    cycles = changes_to(found, 1)["cycles"]
    assert cycles["low_pct"] <= cycles["change_pct"] <= cycles["high_pct"]
    (pair,) = found["pairs"]
    assert (pair["kernel"], pair["level"], pair["cases"]) == ("summa", "perf", 9)
    shown = wafertlm("compare", *command, "--vary", "set:noc.hop_cycles=1,3").stdout
    assert "errors of the change: of 9 small cases of 1 kernels at levels perf and at" in shown


def test_where_nothing_is_measured_errors_add_up_and_the_result_says_so(wafertlm: Wafertlm) -> None:
    command = ("kernel", "summa", "--chip", "flat32", "--shape", "512,512,512", "--level", "perf")
    found = compared(wafertlm, *command, "--vary", "grid=8x8,4x4")
    (pair,) = found["pairs"]
    assert (pair["cases"], pair["worst_pct"]) == (None, None)
    assert pair["why_not"] == "the other variant has other tiles"
    first, other = (each["result"]["error"]["level_pct"] for each in found["variants"])
    cycles = changes_to(found, 1)["cycles"]
    ratio = cycles["to"] / cycles["from"]
    assert cycles["high_pct"] - cycles["low_pct"] > first + other * ratio


CASE = Case((4, 4), Fraction(1), (1, 1))
parts = st.floats(-0.2, 0.2)
changes_of_cases = st.lists(st.tuples(parts, parts), min_size=9, max_size=9)


@given(changes_of_cases)
def test_cases_lie_within_the_error_that_they_give(changes: list[tuple[float, float]]) -> None:
    error = PairError([PairedCase(CASE, *each) for each in changes])
    for case in error.cases:
        found = error.of(case.change)
        assert found is not None
        assert abs(case.error) <= found * (1 + 1e-9) + 1e-15


@given(changes_of_cases, parts)
def test_a_larger_change_may_be_off_by_more(
    changes: list[tuple[float, float]], change: float
) -> None:
    error = PairError([PairedCase(CASE, *each) for each in changes])
    small, large = error.of(change), error.of(2 * change)
    assert small is not None and large is not None
    assert 0 <= small <= large


def test_errors_that_are_alike_cancel() -> None:
    error = PairError([PairedCase(CASE, 0.1, 0.1)] * 9)
    assert error.of(0.3) == 0
    assert PairError([PairedCase(CASE, 0.0, 0.0)] * 9).of(0.1) is None


def test_the_measured_error_of_a_ratio_bounds_a_change() -> None:
    """The example of the document."""
    mine, its = (Ran({"cycles": 1}, [Source(1.0, Between(0.9, 1.1), each)]) for each in "ab")
    mine, its = mine._replace(result={"cycles": 100}), its._replace(result={"cycles": 98})
    added = change("cycles", mine, its)
    assert (added["low_pct"], added["high_pct"]) == pytest.approx((-21.8, 17.8))
    paired = Paired(Between(1 / 1.006, 1 / 0.994), {}, [])
    found = change("cycles", mine, its, paired)
    assert (found["low_pct"], found["high_pct"]) == pytest.approx((-2.58, -1.41), abs=0.01)
    assert found["significant"]
    mine, its = mine._replace(result={"utilization": 0.98}), its._replace(result={"utilization": 1})
    faster = change("utilization", mine, its, paired)
    assert faster["low_pct"] == pytest.approx(100 * (0.994 / 0.98 - 1))
