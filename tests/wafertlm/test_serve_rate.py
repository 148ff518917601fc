"""The highest rate that attains objectives: what it is worth, and objectives that cannot be."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tlm.errors import InputError
from wafertlm.serving import ServeOptions, serve_result

_ON = {"model": "llama3-8b", "chip": "flat32", "scheduler": "chunked"}
_LINE = ("serve", *(part for name, value in _ON.items() for part in (f"--{name}", value)))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Twenty requests in ten seconds."""
    rows = [f"{number / 2},{200 + 10 * number},50" for number in range(20)]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["arrived_at,num_prefill_tokens,num_decode_tokens", *rows]) + "\n")
    return path


def found(**options: Any) -> dict[str, Any]:
    return serve_result(ServeOptions(**_ON | {"find_rate": True} | options))


def test_a_short_trace_in_overload_is_no_capacity(trace: Path, wafertlm: Wafertlm) -> None:
    result = found(trace=trace, slo_ttft_s=0.1)
    capacity, (*_, scale_told, burst_told) = result["capacity"], result["notes"]
    assert capacity["burst"]
    assert capacity["arrivals_s"] == pytest.approx(9.5 / capacity["rate_scale"])
    assert capacity["rate_rps"] == pytest.approx(2.0 * capacity["rate_scale"])
    assert f"--rate-scale {capacity['rate_scale']:.4g}" in scale_told
    assert burst_told.startswith("highest rate: an overload that ends in time, no capacity")
    shown = wafertlm(*_LINE, "--trace", trace, "--slo-ttft", 0.1, "--find-rate").stdout
    assert re.search(r"highest rate, requests/s +│ [\d.,]+ \(overload\)", shown)
    assert re.search(r"highest rate, --rate-scale +│ [\d.,]+ ", shown)
    assert "note: accuracy: not checked: " in shown
    assert "note: error" not in shown


def test_the_scale_that_is_told_runs_the_same(trace: Path) -> None:
    result = found(trace=trace, slo_ttft_s=0.1)
    scale = result["capacity"]["rate_scale"]
    again = serve_result(ServeOptions(**_ON, trace=trace, slo_ttft_s=0.1, rate_scale=scale))
    assert again["ttft_s"]["mean"] == pytest.approx(result["ttft_s"]["mean"])
    # A trace that is hurried already has the same highest rate, and so the same scale.
    hurried = found(trace=trace, slo_ttft_s=0.1, rate_scale=2.0)["capacity"]
    assert hurried["rate_scale"] == pytest.approx(scale, rel=0.02)


def test_a_load_that_lasts_is_a_capacity() -> None:
    result = found(workload="fixed:400:40", rate_rps=8.0, requests=100, slo_tbt_ms=15.0)
    assert result["capacity"]["rate_scale"] is None
    assert not result["capacity"]["burst"]
    assert not any(note.startswith("highest rate") for note in result["notes"])


def test_impossible_objectives_name_the_shortest_iteration(trace: Path) -> None:
    told = r"the shortest iterations, of one request with 200 tokens: "
    told += r"prompt (\S+) s, decoding (\S+) ms"
    with pytest.raises(InputError, match=told) as refused:
        found(trace=trace, slo_tbt_ms=0.5)
    (prompt_s, decode_ms) = map(float, re.findall(told, str(refused.value))[0])
    served = serve_result(ServeOptions(**_ON, trace=trace, slo_tbt_ms=0.5))
    assert any(re.search(f"no request attains --slo-tbt; {told}", n) for n in served["notes"])
    assert decode_ms <= served["tbt_ms"]["p50"]
    assert prompt_s <= served["ttft_s"]["p50"]
    # What is just above them can be attained.
    easy = {"slo_tbt_ms": 3 * decode_ms, "slo_ttft_s": 3 * prompt_s}
    calm = serve_result(ServeOptions(**_ON, trace=trace, rate_scale=0.1, **easy))
    assert calm["slo_attainment"] > 0.9
    assert not any(note.startswith("objectives: ") for note in calm["notes"])


@pytest.mark.parametrize("search", [(), ("--find-rate",)])
def test_the_picture_has_a_title_and_the_objectives(
    trace: Path, tmp_path: Path, wafertlm: Wafertlm, search: tuple[str, ...]
) -> None:
    picture = tmp_path / "serving.svg"
    slos = ("--slo-ttft", 0.1, "--slo-tbt", 40)
    assert wafertlm(*_LINE, "--trace", trace, *slos, *search, "--plot", picture).status == 0
    text = picture.read_text()
    for shown in (
        "llama3-8b on flat32, chunked: 20 requests of trace.csv",
        "SLO 0.1 s",
        "SLO 40 ms",
        *(("90 % asked for",) if search else ("percentile",)),
    ):
        assert shown in text
