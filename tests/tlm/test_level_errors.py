"""What stored comparisons say of the error of another run."""

import math
from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tlm.level_errors import Checked, LevelError, bracketed, level_error, load_levels

CORNERS = [
    Checked(1.0, 100, 1.0),
    Checked(1.0, 1000, -2.0),
    Checked(10.0, 100, 3.0),
    Checked(10.0, 1000, -4.0),
    Checked(100.0, 10_000, 9.0),
]


def test_the_cases_around_a_run_count_and_the_nearest_and_worst_are_told() -> None:
    assert bracketed(CORNERS, 2.0, 200) == LevelError(4.0, 1.0, 9.0)
    # With another one that is nearer above in both, the far one no longer counts.
    assert bracketed([*CORNERS, Checked(9.0, 900, 0.5)], 2.0, 200) == LevelError(3.0, 1.0, 9.0)


def test_nothing_brackets_what_is_beyond_all_cases() -> None:
    for balance, cycles in ((0.5, 500), (500.0, 500), (2.0, 50), (2.0, 50_000)):
        found = bracketed(CORNERS, balance, cycles)
        assert found is not None
        assert found.pct == found.worst_pct == 9.0
    assert bracketed([], 1.0, 1) is None


_CASES = st.builds(
    Checked, st.floats(0.1, 10), st.integers(10, 10_000), st.floats(-20, 20, allow_nan=False)
)


@given(st.lists(_CASES, min_size=1, max_size=12), st.floats(0.05, 20), st.integers(5, 20_000))
def test_the_nearest_is_around_and_the_worst_is_all(
    cases: list[Checked], balance: float, cycles: int
) -> None:
    found = bracketed(cases, balance, cycles)
    assert found is not None
    assert found.nearest_pct <= found.pct <= found.worst_pct
    assert found.worst_pct == max(abs(case.error_pct) for case in cases)


@given(st.lists(_CASES, min_size=1, max_size=12), st.data())
def test_a_checked_case_is_its_own_error_at_least(
    cases: list[Checked], data: st.DataObject
) -> None:
    own = data.draw(st.sampled_from(cases))
    found = bracketed(cases, own.balance, own.cycles)
    assert found is not None
    assert found.nearest_pct >= abs(own.error_pct)


def test_errors_of_adjacent_levels_add_up() -> None:
    of = ("summa", "int8")
    at, lt, perf = (level_error(*of, noc, "at", 2.0, 1000) for noc in ("at", "lt", "perf"))
    assert at is not None and lt is not None and perf is not None
    assert at.pct <= lt.pct <= perf.pct
    assert level_error(*of, "perf", "perf", 2.0, 1000) is None


def test_a_stored_case_claims_its_own_error_at_every_level() -> None:
    """Its place among the cases is by its cycles at the level that is checked."""
    for point in load_levels().points:
        of = (point.kernel, point.dtype)
        at, lt, perf = (
            level_error(*of, level, "at", point.balance, getattr(point, level))
            for level in ("at", "lt", "perf")
        )
        assert at is not None and lt is not None and perf is not None
        assert lt.pct >= abs(point.lt_error_pct)
        assert perf.pct >= abs(point.perf_error_pct)


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
                assert found is not None
                away = np.array([abs(math.log(case.balance / balance)) for case in others])
                near = [c for c, d in zip(others, away, strict=True) if d <= away.min() + 1e-9]
                claimed = {
                    "around": found.pct,
                    "balance": max(abs(case.error_pct) for case in near),
                }
                count += 1
                for kind, pct in claimed.items():
                    covered[kind] += abs(error) <= pct + 0.05
    assert count > 400
    assert covered["around"] > max(covered["balance"], 0.8 * count)
