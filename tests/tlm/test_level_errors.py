"""What stored comparisons say of the error of another run."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.chips import find_tiles
from tlm.comparisons import ChipComparison, ChipPoint, load_chips, load_levels, load_tiles
from tlm.level_errors import (
    Checked,
    Kin,
    LevelError,
    LevelStep,
    between,
    chip_steps,
    compared_as,
    level_error,
    rtl_steps,
)

CORNERS = [
    Checked(1.0, 100, 1.0),
    Checked(1.0, 1000, -2.0),
    Checked(10.0, 100, 3.0),
    Checked(10.0, 1000, -4.0),
    Checked(100.0, 10_000, 9.0),
]


def bracketed(cases: list[Checked], balance: float, cycles: float) -> LevelError:
    """The error of a run by one step of cases."""
    step = LevelStep.of(cases)
    assert step is not None
    return level_error([step], balance, cycles)


def claimed(kernel: str, dtype: str, level: str, balance: float, cycles: int) -> LevelError:
    """What a kernel's stored cases say."""
    steps = rtl_steps(kernel, dtype, level, "at")
    assert steps is not None
    return level_error(steps, balance, cycles)


def test_the_cases_around_a_run_count_and_the_nearest_and_worst_are_told() -> None:
    assert bracketed(CORNERS, 2.0, 200) == pytest.approx(LevelError(4.0, 1.0, 9.0))
    # With another one that is nearer above in both, the far one no longer counts.
    nearer = bracketed([*CORNERS, Checked(9.0, 900, 0.5)], 2.0, 200)
    assert nearer == pytest.approx(LevelError(3.0, 1.0, 9.0))


def test_nothing_brackets_what_is_beyond_all_cases() -> None:
    for balance, cycles in ((0.5, 500), (500.0, 500), (2.0, 50), (2.0, 50_000)):
        found = bracketed(CORNERS, balance, cycles)
        assert found.pct == found.worst_pct == pytest.approx(9.0)
    assert LevelStep.of([]) is None


_CASES = st.builds(
    Checked, st.floats(0.1, 10), st.integers(10, 10_000), st.floats(-20, 20, allow_nan=False)
)


@given(st.lists(_CASES, min_size=1, max_size=12), st.floats(0.05, 20), st.integers(5, 20_000))
def test_the_nearest_is_around_and_the_worst_is_all(
    cases: list[Checked], balance: float, cycles: int
) -> None:
    found = bracketed(cases, balance, cycles)
    assert found.nearest_pct <= found.pct <= found.worst_pct
    assert found.worst_pct == pytest.approx(max(abs(case.error_pct) for case in cases))


@given(st.lists(_CASES, min_size=1, max_size=12), st.data())
def test_a_checked_case_is_its_own_error_at_least(
    cases: list[Checked], data: st.DataObject
) -> None:
    own = data.draw(st.sampled_from(cases))
    found = bracketed(cases, own.balance, own.cycles)
    assert found.nearest_pct >= abs(own.error_pct) - 1e-9


def test_errors_of_adjacent_levels_multiply_up_with_their_signs() -> None:
    at, lt, perf = (claimed("summa", "int8", level, 2.0, 1000) for level in ("at", "lt", "perf"))
    assert at.pct <= lt.pct <= perf.pct
    assert rtl_steps("summa", "int8", "perf", "perf") is None
    above, below = (LevelStep.of([Checked(1.0, 100, pct)]) for pct in (10.0, -10.0))
    assert above is not None and below is not None
    assert level_error([above, above], 1.0, 100).pct == pytest.approx(21.0)
    assert level_error([above, below], 1.0, 100).pct == pytest.approx(10.0)
    # What is 10 % above the level below is that by 10/11.
    assert between([above], 1.0, 100) == pytest.approx((1 / 1.1, 1.0))
    assert between([LevelStep.anywhere(5.0)], 3.0, 7) == pytest.approx((1 / 1.05, 1 / 0.95))
    assert between([], 1.0, 100) == (1.0, 1.0)


def test_what_may_be_off_by_all_of_a_time_bounds_nothing_above() -> None:
    for pct in (100.0, 250.0):
        step = LevelStep.anywhere(pct)
        assert between([step, LevelStep.anywhere(5.0)], 3.0, 7).high == math.inf
        assert level_error([step], 3.0, 7).pct == pytest.approx(pct)


def test_a_stored_case_claims_its_own_error_at_every_level() -> None:
    """Its place among the cases is by its cycles at the level that is checked.

    Those of a variant that was not compared with Verilog claim nothing.
    """
    in_verilog = {point.kernel for point in load_tiles().points}
    for point in load_levels().points:
        of = (point.kernel, point.dtype)
        if point.kernel not in in_verilog:
            assert rtl_steps(*of, "perf", "at") is None
            continue
        lt, perf = (
            claimed(*of, level, point.balance, getattr(point, level)) for level in ("lt", "perf")
        )
        assert lt.pct >= abs(point.lt_error_pct) - 1e-9
        assert perf.pct >= abs(point.perf_error_pct) - 1e-9


def test_claims_cover_cases_that_they_do_not_know() -> None:
    """Of each stored case without itself: `perf` against `lt`, and `lt` against `at`.

    The bracket covers more than the nearest case in balance alone, which it once was.
    """
    kernels = defaultdict(list)
    for point in load_levels().points:
        kernels[point.kernel, point.dtype].append(point)
    covered = {"around": 0, "balance": 0}
    count = 0
    for points in kernels.values():
        for step in ("lt", "perf"):
            cases = [
                Checked(p.balance, getattr(p, step), getattr(p, f"{step}_error_pct"))
                for p in points
            ]
            for number, (balance, cycles, error) in enumerate(cases):
                others = [*cases[:number], *cases[number + 1 :]]
                if not others:
                    continue
                found = bracketed(others, balance, cycles)
                away = np.array([abs(math.log(case.balance / balance)) for case in others])
                near = [c for c, d in zip(others, away, strict=True) if d <= away.min() + 1e-9]
                claims = {
                    "around": found.pct,
                    "balance": max(abs(case.error_pct) for case in near),
                }
                count += 1
                for kind, pct in claims.items():
                    covered[kind] += abs(error) <= pct + 0.05
    assert count > 400
    assert covered["around"] > max(covered["balance"], 0.8 * count)


def zeros_beside(kin: Kin, balance: float, cycles: float) -> LevelError:
    """The error of a run whose own cases all say none."""
    step = LevelStep.of([Checked(1.0, 100, 0.0), Checked(1.0, 1000, 0.0)], kin)
    assert step is not None
    return level_error([step], balance, cycles)


def test_a_few_that_agree_do_not_show_that_the_next_one_does() -> None:
    kin = Kin.of([Checked(2.0, 500, -3.0), Checked(2.0, 500, 1.0)], ["a", "b"])
    assert zeros_beside(kin, 1.0, 500) == pytest.approx(LevelError(3.0, 0.0, 3.0))


def test_the_nearest_problems_count_each_once_with_its_variants() -> None:
    near = [Checked(1.0, 500 + number, 0.5) for number in range(38)]
    variants = [Checked(1.0, 540, 2.0)] * 30
    far = Checked(9.0, 500, 7.0)
    of_38 = [*range(38), *[38] * 30]
    kin = Kin.of([*near, *variants, far], [*of_38, 39])
    assert zeros_beside(kin, 1.0, 500).pct == pytest.approx(2.0, rel=1e-3)
    fewer = Kin.of([*near[1:], *variants, far], [*of_38[1:], 39])
    assert zeros_beside(fewer, 1.0, 500).pct == pytest.approx(7.0)


def test_a_longer_run_is_off_by_the_root_of_its_length() -> None:
    kin = Kin.of([Checked(1.0, 100, 8.0)], ["a"])
    for cycles, pct in ((25, 8.0), (100, 8.0), (400, 4.0), (6400, 1.0)):
        assert zeros_beside(kin, 1.0, cycles).pct == pytest.approx(pct)


def test_what_cost_much_at_a_chip_has_the_cases_of_others() -> None:
    """Attention of prompts on ``npusim-large``, with off-chip memory, had no error at all."""
    comparison = load_chips()
    for (kernel, variant, memory), points in comparison.by_kernel.items():
        known = any(point.at is not None for point in points)
        for chip in {point.chip for point in points}:
            steps = chip_steps(chip, kernel, "lt", memory=memory, variant=variant)
            assert (steps is not None) == known, (chip, kernel, variant)


@pytest.mark.parametrize(
    ("asked", "change", "name"),
    [
        ("flat32", "memory.capacity_bytes=68719476736", "flat32"),
        ("flat32", "noc.hop_cycles=2", None),
        ("flat32-wafer", "dies.rows=16", "flat32-wafer"),
        ("flat32-wafer", "dies.link_bytes_per_s=5e11", "flat32-wafer"),
        ("flat32-wafer", "noc.hop_cycles=2", None),
        ("rtl-4x4", "clock_hz=2e9", "rtl"),
    ],
)
def test_levels_were_compared_on_tiles_with_these_figures(
    asked: str, change: str, name: str | None
) -> None:
    chip = find_tiles(asked, [change])
    assert compared_as(chip) == name
    assert compared_as(chip, rerouted=True) == (name if name == "rtl" else None)


def test_chips_that_were_not_compared_have_the_cases_of_those_alike() -> None:
    of = {"memory": True, "variant": ""}
    own, other = (chip_steps(name, "stream-gemm", "lt", **of) for name in ("rtl", None))
    errors = {p.lt_error_pct for p in load_chips().by_kernel["stream-gemm", "", True]
              if p.at and p.chip != "rtl"}  # fmt: skip
    assert own is not None
    assert other is not None
    assert set(other[0].cases.errors) == errors
    assert not set(own[0].cases.errors) <= errors


@pytest.mark.parametrize(("level", "brackets"), [("lt", 0.85), ("perf", 0.78)])
def test_claims_cover_problems_that_they_do_not_know(level: str, brackets: float) -> None:
    """Of each sixth problem without itself, in any variant."""
    kernels: dict[tuple[str, bool], list[ChipPoint]] = defaultdict(list)
    for point in load_chips().points:
        if level == "perf" or point.at is not None:
            kernels[point.kernel, point.memory].append(point)
    covered = {"bracket": 0, "kin": 0}
    count = 0
    for points in kernels.values():
        for left in points[::6]:
            rest = [p for p in points if (p.chip, p.case) != (left.chip, left.case)]
            own = [p for p in rest if (p.chip, p.variant) == (left.chip, left.variant)]
            if not own:
                continue
            alike = [p for p in rest if (p.chip == "rtl") == (left.chip == "rtl")]
            kin = Kin.of([checked(p, level) for p in alike], [(p.chip, p.case) for p in alike])
            found, below = (left.lt, left.at) if level == "lt" else (left.perf, left.lt)
            assert below is not None
            count += 1
            for kind, known in (("bracket", None), ("kin", kin)):
                step = LevelStep.of([checked(p, level) for p in own], known)
                assert step is not None
                low, high = (part * found for part in between([step], left.balance, found))
                covered[kind] += low * (1 - 1e-9) <= below <= high * (1 + 1e-9)
    print(f"{level}: of {count} problems without themselves {covered} lie within what others say")
    assert count > 800
    assert covered["bracket"] > brackets * count
    assert covered["kin"] > max(covered["bracket"], 0.95 * count)


def checked(point: ChipPoint, level: str) -> Checked:
    """A stored case of a level against the one below it."""
    error = point.lt_error_pct if level == "lt" else point.error_pct
    assert error is not None
    return Checked(point.balance, point.lt if level == "lt" else point.perf, error)


def test_steps_are_of_what_is_stored_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration in this process stores another comparison, whose errors count from then on."""
    stored = load_chips()
    asked = dict(chip="flat32", kernel="rms-norm", level="perf", memory=True)
    before = chip_steps(**asked)
    doubled = [point.model_copy(update={"perf": 2 * point.lt}) for point in stored.points]
    other = ChipComparison(sources=stored.sources, points=doubled)
    monkeypatch.setattr("tlm.level_errors.load_chips", lambda: other)
    after = chip_steps(**asked)
    assert before is not None and after is not None
    assert (after[0].cases.errors == 100.0).all()
    assert not (before[0].cases.errors == 100.0).any()
    monkeypatch.undo()
    again = chip_steps(**asked)
    assert again is not None and (again[0].cases.errors == before[0].cases.errors).all()
