"""Rows judged by hand."""

import pytest

from workloads.studies.rows import Ordering, Row, check_order, evaluate, summarise

_RESULTS = {
    "slow": [{"time": 2.0, "none": None}, {"time": 4.0, "none": None}],
    "fast": [{"time": 1.0, "none": None}, {"time": 3.0, "none": None}],
}


def test_a_row_is_the_mean_over_seeds_with_its_interval() -> None:
    row = evaluate(Row("T1/M/slow/time", "slow", "time", "s", 2.5, fit=True), _RESULTS)
    assert (row["model"], row["error_pct"], row["fit"]) == (3.0, pytest.approx(20.0), True)
    assert row["error_points"] is None
    # Student's t of one degree of freedom: 12.706 standard errors of 1.
    assert row["ci95"] == pytest.approx([3 - 12.706, 3 + 12.706], abs=1e-2)


def test_a_change_is_paired_by_seeds_and_off_by_points_and_per_cent_of_its_ratio() -> None:
    change = Row("T1/M/fast/time_change", "fast", "time", "% change", -30.0, against="slow")
    row = evaluate(change, _RESULTS)
    assert row["model"] == pytest.approx(100 * ((1 / 2 + 3 / 4) / 2 - 1))
    assert row["error_points"] == pytest.approx(-37.5 + 30.0)
    assert row["error_pct"] == pytest.approx(100 * (0.625 / 0.7 - 1))  # of the ratio


def test_a_row_without_a_published_value_is_predicted_all_the_same() -> None:
    row = evaluate(Row("T1/M/slow/time", "slow", "time", "s"), _RESULTS)
    assert (row["paper"], row["model"], row["error_pct"]) == (None, 3.0, None)


def test_a_figure_that_runs_do_not_have_is_none() -> None:
    row = evaluate(Row("T1/M/slow/none", "slow", "none", "s", 1.0), _RESULTS)
    assert (row["model"], row["error_pct"], row["ci95"]) == (None, None, None)


def test_summary_keeps_fitted_predicted_and_changes_apart() -> None:
    rows = [
        {"id": "a", "error_pct": 5.0, "fit": True, "unit": "s"},
        {"id": "b", "error_pct": -10.0, "fit": False, "unit": "s"},
        {"id": "c", "error_pct": 30.0, "fit": False, "unit": "s"},
        {"id": "d", "error_pct": -3.0, "fit": False, "unit": "% change"},
        {"id": "e", "error_pct": None, "fit": False, "unit": "s"},
    ]
    summary = summarise(rows)
    assert summary["fitted"]["mean_abs_error_pct"] == 5.0
    assert summary["predicted"] == {
        "rows": 2,
        "mean_abs_error_pct": 20.0,
        "max_abs_error_pct": 30.0,
        "worst_row": "c",
    }
    assert summary["changes"]["max_abs_error_pct"] == 3.0


def test_an_order_is_judged_by_means_and_counted_by_seeds() -> None:
    kept = check_order(Ordering("fast < slow", "time", "fast", "slow"), _RESULTS)
    assert (kept["kept"], kept["seeds_kept"], kept["seeds"]) == (True, 2, 2)
    assert not check_order(Ordering("slow < fast", "time", "slow", "fast"), _RESULTS)["kept"]
