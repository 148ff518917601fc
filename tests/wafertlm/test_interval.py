"""Between what prices and figures of serving on tiles may lie."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Wafertlm
from tlm.level_errors import at_between, load_chips, lt_between, perf_between
from wafertlm.iteration import IterationOptions, run_iteration
from wafertlm.serving import ServeOptions, serve_result
from wafertlm.serving.interval import FIGURES
from workloads.serving.price.cost import Batch
from workloads.serving.price.models import serving_model

SERVED = {"model": "qwen3-1.7b", "chip": "flat32", "scheduler": "chunked", "workload": "sharegpt",
          "rate_rps": 8.0, "requests": 20}  # fmt: skip


def test_stored_cases_lie_within_their_own_bounds() -> None:
    for point in load_chips().points:
        between = lt_between(
            point.chip, point.kernel, point.balance, point.perf, memory=point.memory
        )
        assert between is not None
        low, high = (part * point.perf for part in between)
        assert low <= point.lt * (1 + 1e-12) and point.lt <= high * (1 + 1e-12), point


def test_stored_cases_at_lt_lie_within_their_bounds_of_at() -> None:
    for point in load_chips().points:
        of = point.chip, point.kernel, point.balance
        at = at_between(*of, point.lt, memory=point.memory)
        if point.at is not None:
            assert at is not None
            low, high = (part * point.lt for part in at)
            assert low <= point.at * (1 + 1e-12) and point.at <= high * (1 + 1e-12), point
        perf = perf_between(*of, point.perf, memory=point.memory)
        lt, at = (
            between(*of, point.perf, memory=point.memory) for between in (lt_between, at_between)
        )
        assert perf is not None and lt is not None
        assert perf == (lt if at is None else (lt.low * at.low, lt.high * at.high))
        assert (at is None) == (point.chip == "rtl")


@given(st.floats(-12, 12), st.integers(1, 10**12))
def test_a_time_lies_between_its_bounds(balance: float, cycles: int) -> None:
    for chip in ("flat32", "rtl-4x4", None):
        between = lt_between(chip, "stream-gemm", 2.0**balance, cycles, memory=True)
        assert between is not None
        assert 0 < between.low <= 1 <= between.high < 2


def test_of_an_unknown_kernel_nothing_is_known() -> None:
    assert lt_between("flat32", "fft", 1.0, 100, memory=True) is None


def drawn(seed: int) -> IterationOptions:
    """An iteration that no comparison was drawn for."""
    of = random.Random(seed)
    chip, grid = of.choice([("flat32", "8x8"), ("npusim-large", "4x4"), ("npusim-small", "8x8")])
    prefill = [f"{of.randint(1, 700)}@{of.choice([0, of.randint(1, 2000)])}"] * of.randint(0, 1)
    decode = None if prefill and of.random() < 0.3 else f"{of.randint(1, 48)}@{of.randint(1, 1500)}"
    return IterationOptions(
        model=of.choice(["llama3-8b", "qwen3-1.7b", "qwen3-14b"]), chip=chip, grid=grid,
        prefill=tuple(prefill), decode=decode,
    )  # fmt: skip


def test_most_iterations_at_lt_lie_between_the_bounds_of_perf() -> None:
    covered, widths = 0, []
    for seed in range(10):
        options = drawn(1000 + seed)
        perf = run_iteration(options)
        known = {name: getattr(options, name) for name in ("model", "chip", "grid", "prefill")}
        lt = run_iteration(IterationOptions(**known, decode=options.decode, level="lt"))
        assert perf.seconds_between is not None
        low, high = perf.seconds_between
        covered += low <= lt.seconds <= high
        widths.append((high - low) / 2 / perf.seconds)
    assert covered >= 9
    assert max(widths) < 0.06


def test_an_iterations_bounds_are_those_of_its_price() -> None:
    price = serving_model("llama3-8b", "flat32")
    ran = run_iteration(IterationOptions(model="llama3-8b", chip="flat32", decode="16@1024"))
    batch = Batch((), 16, 16 * 1024, 16)
    ends = [price.at_end(end).cost(batch).seconds for end in ("low", "high")]  # type: ignore[attr-defined]  # of tiles
    assert ran.seconds_between == pytest.approx(ends, rel=1e-12)
    assert ends[0] < price.cost(batch).seconds < ends[1]
    assert price.not_compared == []  # type: ignore[attr-defined]  # of tiles


@pytest.mark.parametrize("scheduler", ["chunked", "pd-disaggregation"])
def test_figures_of_serving_lie_within_their_interval(scheduler: str) -> None:
    found = serve_result(ServeOptions(**SERVED | {"scheduler": scheduler}))
    for name in FIGURES:
        ends, figure = found["interval"][name], found[name]
        mean = figure["mean"] if isinstance(figure, dict) else figure
        assert ends["low"] <= mean <= ends["high"], name
    assert found["interval"]["tbt_ms"]["low"] < found["interval"]["tbt_ms"]["high"]
    assert any(note.startswith("interval: by how far") for note in found["notes"])


def test_an_overloaded_end_is_null() -> None:
    found = serve_result(ServeOptions(**SERVED | {"rate_rps": 300.0, "requests": 400}))
    assert found["overloaded"]
    assert found["interval"]["note"].startswith("null where an end is overloaded")
    assert found["interval"]["ttft_s"]["high"] is None


def test_gpus_have_no_interval() -> None:
    found = serve_result(ServeOptions(**SERVED | {"chip": "h100x1"}))
    assert found["interval"] is found["error"]["rests_on"] is None
    assert not any("interval" in note for note in found["notes"])


def test_several_seeds_have_the_interval_of_their_means(wafertlm: Wafertlm) -> None:
    options = [f"--{name.removesuffix('_rps')}={value}" for name, value in SERVED.items()]
    ran = wafertlm("serve", *options, "--seeds", "2", "--json")
    found: dict[str, Any] = json.loads(ran.stdout)
    between = found["interval"]["e2e_s"]
    assert between["low"] <= found["e2e_s"]["mean"] <= between["high"]
