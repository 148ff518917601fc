"""Figures of serving at both ends of the prices' error, and of changes at the same end."""

from dataclasses import replace

import pytest

from tlm.calibrated import stale_allowed
from tlm.errors import InputError
from workloads.serving.price.tile_price import TilePrice
from workloads.studies.layered_prefill import other_chips
from workloads.studies.layered_prefill.book import Plan
from workloads.studies.layered_prefill.cases import Case, simulate
from workloads.studies.rows import Row, evaluate

_CASE = Case("qwen3-1.7b", "flat32", "chunked", 2.0, "sharegpt", requests=40)


def test_a_run_on_tiles_lies_between_its_ends() -> None:
    with stale_allowed(True):
        figures = simulate(_CASE, 0)
    for name in ("TTFT_mean", "TBT_mean"):
        low, value, high = (figures[f"{name}{end}"] for end in ("_low", "", "_high"))
        assert low is not None and value is not None and high is not None
        assert 0 < low < value < high
    assert figures["overloaded"] == figures["overloaded_low"] == figures["overloaded_high"] == 0


def test_an_overloaded_end_is_none_and_says_so() -> None:
    with stale_allowed(True):
        figures = simulate(replace(_CASE, rate_rps=1e4, requests=30), 0)
    assert figures["TTFT_mean"] is not None
    assert figures["overloaded"] == figures["overloaded_low"] == 1
    assert figures["TTFT_mean_low"] is None and figures["TTFT_mean_high"] is None


def test_without_comparisons_no_end_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(price: TilePrice, end: str) -> TilePrice:
        raise InputError("the comparison is stale")

    monkeypatch.setattr(TilePrice, "at_end", stale)
    figures = simulate(_CASE, 0)
    assert figures["TTFT_mean"] is not None
    assert figures["TTFT_mean_low"] is None and figures["overloaded_high"] is None


def test_gpus_have_no_ends() -> None:
    assert not [name for name in simulate(replace(_CASE, chip="h100x2"), 0) if "_low" in name]


def _run(value: float, low: float | None, high: float | None) -> dict[str, float | None]:
    late = {"overloaded_low": 0.0, "overloaded": 0.0, "overloaded_high": float(high is None)}
    return {"t": value, "t_low": low, "t_high": high} | late


def test_a_change_is_between_runs_at_the_same_end() -> None:
    row = Row("NEW/M/l/t_change", "l", "t", "% change", against="c")
    results = {"c": [_run(2, 1, 4), _run(4, 2, 8)], "l": [_run(1, 0.4, 2), _run(2, 0.8, 4)]}
    assert evaluate(row, results)["model"] == -50
    assert evaluate(row, results)["interval"] == pytest.approx([-60, -50])
    assert evaluate(row._replace(against=None), results)["interval"] == pytest.approx([0.6, 3])


@pytest.mark.parametrize(
    ("at_low", "at_high", "winner"),
    [(0.4, 2.0, "layered"), (1.2, 2.0, "open"), (0.4, None, "layered")],
)
def test_a_win_holds_at_all_ends_that_are_known(
    at_low: float, at_high: float | None, winner: str
) -> None:
    row = Row("NEW/M/l/t_change", "l", "t", "% change", against="c")
    results = {"c": [_run(2, 1, 4)] * 2, "l": [_run(1, at_low, at_high)] * 2}
    (found,) = other_chips.wins(Plan({}, [row], []), results)
    assert found["winner"] == winner
    assert found["at_low_prices_pct"] == pytest.approx(100 * (at_low - 1))
    assert found["at_high_prices_pct"] == (None if at_high is None else -50)
    assert found["overloaded"] == (["high"] if at_high is None else [])


@pytest.mark.slow
@pytest.mark.parametrize("load", [other_chips.SUSTAINED_RPS[1], other_chips.SUSTAINED_RPS[-1]])
def test_rates_rest_on_what_chunks_sustain(load: tuple[str, str, str, float]) -> None:
    model, chip, workload, sustained_rps = load
    case = Case(model, chip, "chunked", float("inf"), workload)
    with stale_allowed(True):
        served = [simulate(case, seed)["served_rps"] or 0.0 for seed in range(3)]
    assert sum(served) / 3 == pytest.approx(sustained_rps, rel=0.05)
