"""Routers with traits that levels above `at` do not model: what is said of the error of runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tests.wafertlm.test_compare import calibrated, changes_to, compared
from tlm.chips import chip_names, load_chip
from tlm.chips.parts import chip_router
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.zero_load import NocTiming
from wafertlm.compare import cases
from wafertlm.serving.effect import OwnEffect
from wafertlm.unmodelled import unmodelled, without_unmodelled

SUMMA = ("kernel", "summa", "--chip", "flat32", "--grid", "4x4", "--shape", "256,256,256",
         "--dtype", "fp16")  # fmt: skip
OWN = ("kernel", "summa", "--chip", "rtl-4x4", "--grid", "4x4", "--shape", "64,64,64",
       "--dtype", "int8", "--level", "lt", "--no-gates")  # fmt: skip
ITERATION = ("iteration", "--model", "qwen3-1.7b", "--chip", "flat32", "--decode", "4@200")
SERVE = ("serve", *ITERATION[1:5], "--scheduler", "chunked", "--workload", "fixed:60:4",
         "--rate", "8", "--requests", "3")  # fmt: skip
WHY = (
    "fixed.toml has arbiter fixed, unit_arbiter fixed: level {} does not model that and was "
    "compared on routers without; level at models it"
)


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short cases, in a store of their own."""
    monkeypatch.setenv("WAFERTLM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cases, "MOST_COST", 400)


@pytest.fixture
def routers(tmp_path: Path) -> dict[str, str]:
    """The project's routers, with fixed arbiters, and those as their calibration is 12 % off."""
    fixed = replace(rtl_timing(), arbiter="fixed", unit_arbiter="fixed")
    made = {"base": (rtl_timing(), 0.0), "fixed": (fixed, 0.0), "far": (fixed, 12.0)}
    return {
        name: str(calibrated(tmp_path, name, timing, bound=4, off_pct=pct))
        for name, (timing, pct) in made.items()
    }


def ran(wafertlm: Wafertlm, *options: str) -> dict[str, Any]:
    done = wafertlm(*options, "--json")
    assert done.status == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_levels_were_compared_on_routers_without_such_traits() -> None:
    chips = [load_chip("rtl-4x4" if "RxC" in name else name) for name in chip_names()]
    assert {repr(unmodelled(chip_router(chip).timing)) for chip in chips} == {"[]"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"arbiter": "tree"}, ["arbiter tree"]),
        ({"line": (1, 2, 3, 4, 0, 5)}, ["line 1,2,3,4,0,5"]),
        ({"cut_through": False}, ["cut_through false"]),
        ({"tile_depth": 1, "ejection_cycles": 2}, ["tile_depth 1"]),
        ({"output_depth": 1, "hop_cycles": 2, "ejection_cycles": 2}, ["output_depth 1"]),
        ({"output_depth": 2, "hop_cycles": 2, "ejection_cycles": 2}, []),
        ({"output_depth": 2, "hop_cycles": 2, "tile_depth": 0}, ["tile_depth 0"]),
        ({"fifo_depth": 8, "hop_cycles": 3, "reduce_cycles": 2}, []),
    ],
)  # fmt: skip
def test_traits_that_levels_do_not_model(changes: dict[str, Any], told: list[str]) -> None:
    timing = NocTiming(1, 1, 4, 1, 8)
    found = replace(timing, **changes)
    assert unmodelled(found) == told
    assert unmodelled(without_unmodelled(found)) == []


@pytest.mark.parametrize("level", ["lt", "perf"])
def test_a_kernels_error_is_not_known(
    wafertlm: Wafertlm, routers: dict[str, str], level: str
) -> None:
    """It was 1.9 % by cases with other arbiters, and level `at` takes 3.1 % more cycles."""
    base, fixed = (
        ran(wafertlm, *SUMMA, "--level", level, "--rtl", routers[name])
        for name in ("base", "fixed")
    )
    assert base["cycles"] == fixed["cycles"]
    assert base["error"]["level_pct"] > 0 and "note" not in base["error"]
    assert fixed["error"]["level_pct"] is None
    assert fixed["error"]["note"] == WHY.format(level)
    shown = wafertlm(*SUMMA, "--level", level, "--rtl", routers["fixed"]).stdout
    assert f"error level_pct: not known: {WHY.format(level)}" in " ".join(shown.split())


def test_at_tells_the_routers_own_error_on_any_chip(
    wafertlm: Wafertlm, routers: dict[str, str]
) -> None:
    runs = {
        name: ran(wafertlm, *SUMMA, "--level", "at", "--rtl", spec)
        for name, spec in routers.items()
    }
    found = {name: each["error"]["level_pct"] for name, each in runs.items()}
    assert found == {"base": 0, "fixed": 0, "far": pytest.approx(12)}
    # Of the document.
    assert [runs[name]["cycles"] for name in ("base", "fixed")] == [3143, 3228]
    assert ran(wafertlm, *SUMMA, "--level", "lt", "--rtl", routers["fixed"])["cycles"] == 3128
    assert ran(wafertlm, *SUMMA, "--level", "at")["error"]["level_pct"] is None


def test_bounds_of_a_change_are_not_known_where_nothing_was_measured(
    wafertlm: Wafertlm, routers: dict[str, str]
) -> None:
    """They were -3 % to +3 %, and level `at` takes 6 % more cycles."""
    vary = ("--vary", f"rtl={routers['base']},{routers['fixed']}")
    cycles = changes_to(compared(wafertlm, *OWN, *vary), 1)["cycles"]
    assert cycles["change_pct"] == 0
    assert cycles["low_pct"] is cycles["high_pct"] is cycles["significant"] is None
    shown = wafertlm("compare", *OWN, *vary).stdout
    assert "│ cycles " in shown and "not known" in shown
    assert f"not known: {WHY.format('lt')}" in " ".join(shown.split())
    # Of the same router in both variants all cancels.
    same = compared(wafertlm, *OWN, "--vary", f"rtl={routers['fixed']},{routers['fixed']}")
    assert changes_to(same, 1)["cycles"]["high_pct"] == 0


@pytest.mark.parametrize("order", [("base", "fixed"), ("fixed", "base")])
def test_bounds_that_are_measured_stay(
    wafertlm: Wafertlm, routers: dict[str, str], order: tuple[str, str]
) -> None:
    vary = ("--vary", f"rtl={routers[order[0]]},{routers[order[1]]}", "--no-gates")
    lt = changes_to(compared(wafertlm, *SUMMA, "--level", "lt", *vary), 1)["cycles"]
    at = changes_to(compared(wafertlm, *SUMMA, "--level", "at", *vary), 1)["cycles"]
    assert lt["low_pct"] < 0 < lt["high_pct"]
    assert at["change_pct"] != 0
    assert [at["low_pct"], at["high_pct"]] == pytest.approx([at["change_pct"]] * 2)


def test_an_iterations_error_is_not_known(wafertlm: Wafertlm, routers: dict[str, str]) -> None:
    found = ran(wafertlm, *ITERATION, "--rtl", routers["fixed"])
    assert found["error"]["level_pct"] is found["seconds_low"] is found["seconds_high"] is None
    assert found["error"]["note"] == WHY.format("perf")


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        (OwnEffect(120.0, 3, 1), "it changes small cases by up to 120 %, which bounds no time"),
        (OwnEffect(0.0, 0, 0, ("summa",)), "no case of summa shows what that does"),
    ],
)
def test_why_an_effect_bounds_nothing(effect: OwnEffect, told: str) -> None:
    assert not effect.is_known
    assert effect.told == told


def test_serving_counts_what_the_traits_do_in_small_cases(
    wafertlm: Wafertlm, routers: dict[str, str]
) -> None:
    base, fixed = (ran(wafertlm, *SERVE, "--rtl", routers[name]) for name in ("base", "fixed"))
    assert base["tbt_ms"] == fixed["tbt_ms"]
    assert fixed["error"]["level_pct"] > base["error"]["level_pct"]
    assert fixed["interval"]["tbt_ms"]["low"] < base["interval"]["tbt_ms"]["low"]
    assert fixed["interval"]["tbt_ms"]["high"] > base["interval"]["tbt_ms"]["high"]
    (note,) = (note for note in fixed["notes"] if WHY.format("perf") in note)
    assert "small cases of" in note and "which is in the error" in note
    assert not any("does not model" in note for note in base["notes"])
