"""What ``wafertlm serve`` returns and refuses."""

import csv
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.workloads.serving.served import streamed_share
from tlm.errors import InputError
from wafertlm.asked.serve import known_names
from wafertlm.commands.serve import command
from wafertlm.serving import Execution, ServeOptions, complete_serve, serve_result
from wafertlm.serving.service import Service, mean_of_runs
from workloads.models import load_model
from workloads.studies.profiles import ProfileError

_GENERATED: dict[str, Any] = {
    "model": "llama3-8b",
    "chip": "flat32",
    "scheduler": "chunked",
    "workload": "sharegpt",
    "rate_rps": 8.0,
    "requests": 30,
}
#: The load and the engine are the same on all chips; prices of GPUs take no planning.
_ON_GPUS = _GENERATED | {"chip": "h100x2"}


def test_every_promised_figure_is_there() -> None:
    seen: list[tuple[int, int]] = []
    options = ServeOptions(**_GENERATED, slo_ttft_s=5.0, slo_tbt_ms=125.0)
    told = Execution(progress=lambda done, total: seen.append((done, total)))
    result = serve_result(options, told)
    for table in ("ttft_s", "tbt_ms", "e2e_s", "queue_s"):
        assert list(result[table]) == ["mean", "p50", "p90", "p95", "p99", "p99_9"]
    assert set(result["kv"]) == {"capacity_tokens", "peak_tokens", "preemptions", "spilled_bytes"}
    assert result["requests"] == result["completed"] == 30
    assert result["slo_attainment"] == 1.0
    for name in ("throughput_tok_s", "goodput_rps", "tbt_std_ms", "jain_index", "utilization"):
        assert result[name] > 0
    for name in ("energy_mj_per_output_token", "energy_mj_per_token"):
        assert result[name] > 0
    assert result["expert_load_bytes"] == 0  # no experts in a dense model
    error = result["error"]
    assert 0 < error["level_pct"] < 11
    assert error["profile_pct"] is None
    levels = {name: part["level"] for name, part in error["rests_on"].items()}
    assert levels == {"noc": "perf", "memory": "perf", "compute": "at"}
    assert {part["rtl_hash"] for part in error["rests_on"].values()} == {"profile only"}
    assert seen[-1] == (30, 30)


@pytest.mark.parametrize("scheduler", ["static", "continuous", "layered", "pd-fusion"])
def test_every_scheduler_serves_all(scheduler: str) -> None:
    result = serve_result(ServeOptions(**_ON_GPUS | {"scheduler": scheduler}))
    assert result["completed"] == 30
    assert result["pools"] is None
    assert result["output_tokens"] / result["span_s"] == pytest.approx(result["throughput_tok_s"])


@pytest.mark.parametrize("scheduler", ["continuous", "layered"])
def test_a_wafer_without_off_chip_memory_serves_with_an_interval(scheduler: str) -> None:
    seldom = {"chip": "wse2", "scheduler": scheduler, "rate_rps": 1.0, "requests": 20}
    result = serve_result(ServeOptions(**_GENERATED | seldom))
    assert result["completed"] == 20
    assert 0 < result["error"]["level_pct"] < 5
    mean, ends = result["ttft_s"]["mean"], result["interval"]["ttft_s"]
    assert ends["low"] <= mean <= ends["high"]


@pytest.mark.parametrize(
    ("chip", "bytes_per_s"), [("flat32", 32 * 128 * 965e6), ("h100x2", 450e9 * 0.75)]
)
def test_pools_are_halves_of_the_chip_and_joined_by_its_links(
    chip: str, bytes_per_s: float
) -> None:
    options = _GENERATED | {"scheduler": "pd-disaggregation", "chip": chip}
    result = serve_result(ServeOptions(**options))
    pools = result["pools"]
    assert [pools[name]["share"] for name in ("prefill", "decode")] == [0.5, 0.5]
    carried_s = pools["link"]["busy_fraction"] * result["span_s"]
    assert pools["link"]["carried_bytes"] / carried_s == pytest.approx(bytes_per_s, rel=1e-6)
    assert pools["prefill"]["iterations"] + pools["decode"]["iterations"] == result["iterations"]


def test_energy_by_both_conventions_where_the_chip_has_figures() -> None:
    result = serve_result(ServeOptions(**_GENERATED | {"chip": "h100x2"}))
    output, prompt = result["output_tokens"], result["prompt_tokens"]
    assert result["energy_mj_per_output_token"] == pytest.approx(1e3 * result["energy_j"] / output)
    per_token = 1e3 * result["energy_j"] / (output + prompt)
    assert result["energy_mj_per_token"] == pytest.approx(per_token)
    assert result["energy_j"] > 2 * 70 * result["span_s"]  # what two idle GPUs draw


def test_drafts_shorten_the_time_between_tokens_where_memory_bounds_decoding() -> None:
    alone = _GENERATED | {"rate_rps": 0.05}  # no prompts beside decoding
    plain = serve_result(ServeOptions(**alone))
    drafted = serve_result(ServeOptions(**alone, draft_tokens=1, acceptance=0.7))
    # 1.7 tokens a step, and a step is a little longer.
    gain = plain["tbt_ms"]["mean"] / drafted["tbt_ms"]["mean"]
    assert 1.6 < gain < 1.7
    assert drafted["output_tokens"] == plain["output_tokens"]


def test_what_does_not_fit_in_sram_spills() -> None:
    result = serve_result(ServeOptions(**_GENERATED, kv_sram_tokens=2048))
    assert result["kv"]["spilled_bytes"] > 0
    assert serve_result(ServeOptions(**_GENERATED))["kv"]["spilled_bytes"] == 0


@pytest.mark.parametrize(
    ("weights", "bytes_each"),
    [
        ("fp8", 1.0),
        *[
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (("bf16", 2.0), ("fp4", 0.53125))
        ],
    ],
)
def test_narrow_weights_leave_room_and_are_read_sooner(weights: str, bytes_each: float) -> None:
    alone = _GENERATED | {"rate_rps": 0.05}
    found, plain = (serve_result(ServeOptions(**alone, weights=w)) for w in (weights, None))
    assert found["options"]["weights"] == weights
    more = found["kv"]["capacity_tokens"] - plain["kv"]["capacity_tokens"]
    parameters = load_model("llama3-8b").parameters
    assert more * 131_072 == pytest.approx((2 - bytes_each) * parameters, abs=2 * 16 * 131_072)
    faster = plain["tbt_ms"]["mean"] - found["tbt_ms"]["mean"]
    read_ms = 1e3 * (2 - bytes_each) * parameters / (2.0e12 * streamed_share("hbm4", 32))
    assert 0.8 * read_ms <= faster <= read_ms


def test_whole_experts_on_each_gpu() -> None:
    options = _GENERATED | {"model": "qwen3-30b-a3b", "chip": "h100x8", "rate_rps": 0.5}
    split, dealt = (serve_result(ServeOptions(**options, expert_parallel=n)) for n in (1, 8))
    # Prompt chunks wait for the group whose experts are the most popular.
    assert dealt["ttft_s"]["mean"] > split["ttft_s"]["mean"]
    pools = options | {"scheduler": "pd-disaggregation", "expert_parallel": 8}
    with pytest.raises(InputError, match="found 8; allowed for 'qwen3-30b-a3b' on 4 GPUs: 1, 2, 4"):
        serve_result(ServeOptions(**pools))


@pytest.mark.parametrize(
    ("given", "is_published"),
    [
        ({}, True),
        ({"weights": "bf16"}, True),  # the model's own
        ({"weights": "fp8"}, False),
        ({"expert_parallel": 2}, False),
        ({"draft_tokens": 3}, False),
    ],
)
def test_the_profiles_error_is_that_of_runs_like_the_published(
    given: dict[str, Any], is_published: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ProfileError(20.0, "known")
    monkeypatch.setattr("wafertlm.serving.run.profile_error", lambda chip, model: known)
    options = _GENERATED | {"model": "qwen3-30b-a3b", "chip": "h100x2", "requests": 2}
    result = serve_result(ServeOptions(**options | given))
    assert result["error"]["profile_pct"] == (20.0 if is_published else None)
    note = (
        "known" if is_published else "not checked: profile_pct is null: published rows are of the"
    )
    assert result["notes"][0].startswith(f"accuracy: {note}")


def test_overload_is_told() -> None:
    calm, hurried = (
        serve_result(ServeOptions(**_ON_GPUS | {"rate_rps": rate, "max_sequences": 8}))
        for rate in (0.5, 50.0)
    )
    assert (calm["overloaded"], hurried["overloaded"]) == (False, True)
    assert not any(note.startswith("overloaded: ") for note in calm["notes"])
    assert any(note.startswith("overloaded: ") for note in hurried["notes"])
    assert serve_result(ServeOptions(**_ON_GPUS | {"rate_rps": float("inf")}))["overloaded"] is None


def test_the_highest_rate_attains_the_objectives_and_more_does_not() -> None:
    options = _ON_GPUS | {"slo_ttft_s": 2.0, "requests": 60}
    result = serve_result(ServeOptions(**options, find_rate=True))
    rate = result["capacity"]["rate_rps"]
    assert result["slo_attainment"] >= 0.9
    again = serve_result(ServeOptions(**options | {"rate_rps": rate}))
    assert again["ttft_s"] == result["ttft_s"]
    over = serve_result(ServeOptions(**options | {"rate_rps": rate * 1.02}))
    assert over["slo_attainment"] < 0.9
    trials = {trial["rate"]: trial for trial in result["capacity"]["trials"]}
    assert next(iter(trials)) == 8.0
    assert trials[rate]["ttft_s"] == result["ttft_s"]["mean"]
    assert trials[rate]["tbt_ms"] == result["tbt_ms"]["mean"]


def test_the_seed_decides() -> None:
    first, again, other = (serve_result(ServeOptions(**_ON_GPUS, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first["ttft_s"] != other["ttft_s"]


def test_tiles_keep_what_the_requests_of_any_seed_need() -> None:
    """As many keys and values have room as the first seed's needed: means hung on which it was."""
    asked = {"model": "qwen3-4b", "chip": "npusim-small", "workload": "sharegpt"}

    def kept(**seeds: int) -> int:
        options = ServeOptions(**asked, rate_rps=5.0, requests=4, **seeds)
        return int(Service(options).residency["residency"]["kv_tokens"])

    first, second, third = (kept(seed=seed) for seed in (3, 4, 5))
    assert first < max(second, third)
    assert kept(seed=3, seeds=3) == max(second, third)


@pytest.mark.parametrize(
    ("runs", "merged"),
    [
        ((False, False), False),
        ((False, True), True),
        ((True, True), True),
        ((None, None), None),  # all come at once
    ],
)
def test_a_mean_is_overloaded_if_a_run_is(runs: tuple[bool | None, ...], merged: object) -> None:
    """With one of several overloaded it was null, and nothing was said."""
    found = mean_of_runs([{"overloaded": run, "figure": 1.0} for run in runs])
    assert (found["overloaded"], found["figure"]) == (merged, 1.0)


def test_several_seeds_give_means_and_intervals() -> None:
    merged = serve_result(ServeOptions(**_ON_GPUS, seed=1, seeds=2))
    single = [serve_result(ServeOptions(**_ON_GPUS, seed=seed)) for seed in (1, 2)]
    mean = sum(result["throughput_tok_s"] for result in single) / 2
    assert merged["throughput_tok_s"] == pytest.approx(mean)
    low, high = merged["ci95"]["throughput_tok_s"]
    assert low < mean < high
    assert merged["requests"] == 30


def test_every_seed_draws_drafts_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,200\n")
    names = {"model": "llama3-8b", "chip": "h100x2", "scheduler": "chunked", "trace": path}
    drafted = names | {"draft_tokens": 2}
    spans = [serve_result(ServeOptions(**drafted, seed=seed))["span_s"] for seed in (5, 6)]
    assert spans[0] != spans[1]
    options = ServeOptions(**drafted, seed=5, seeds=2)
    merged = serve_result(options)
    assert merged["span_s"] == pytest.approx(sum(spans) / 2)
    assert complete_serve(options, merged, {})["provenance"]["seed"] == 5
    # Without drafts a trace leaves nothing to draw.
    options = ServeOptions(**names, seed=5)
    assert complete_serve(options, serve_result(options), {})["provenance"]["seed"] is None
    with pytest.raises(InputError, match="--seeds: a trace is the same for every seed"):
        serve_result(ServeOptions(**names, seeds=2))


def test_a_trace_can_be_cut_and_sped_up(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = "".join(f"{second},100,10\n" for second in range(20))
    path.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n" + rows)
    names = {"model": "llama3-8b", "chip": "flat32", "scheduler": "continuous", "trace": path}
    result = serve_result(ServeOptions(**names, requests=10, rate_scale=2.0))
    assert result["requests"] == 10
    assert result["span_s"] == pytest.approx(4.5, abs=0.2)


def test_a_trace_from_a_pipe_is_read_once_and_recorded_by_what_was_read(tmp_path: Path) -> None:
    file, pipe = tmp_path / "a" / "trace.csv", tmp_path / "trace.csv"
    file.parent.mkdir()
    file.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,10\n1,50,5\n")
    os.mkfifo(pipe)
    names = {"model": "llama3-8b", "chip": "h100x2", "scheduler": "chunked"}
    expected = serve_result(ServeOptions(**names, trace=file))
    with ThreadPoolExecutor() as threads:
        threads.submit(pipe.write_bytes, file.read_bytes())
        found = serve_result(ServeOptions(**names, trace=pipe))
    assert found == expected
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    assert found["options"]["trace"] == {"name": "trace.csv", "hash": digest}


def _killed(checkpoint: Path, rows: Path | None) -> None:
    """A run that is stopped once it has kept its state."""

    def stop(done: int, total: int) -> None:
        if checkpoint.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execution = _kept(checkpoint, rows, progress=stop, checkpoint_every_s=0.0)
        serve_result(ServeOptions(**_ON_GPUS), execution)


def _kept(checkpoint: Path, rows: Path | None = None, **how: Any) -> Execution:
    return Execution(checkpoint=checkpoint, requests_csv=rows, **how)


@pytest.mark.parametrize("has_rows", [False, True])
def test_a_checkpoint_is_of_one_code_and_of_rows_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_rows: bool
) -> None:
    monkeypatch.setattr("workloads.serving.engine.run._STEPS_BETWEEN", 5)
    options, state, rows = ServeOptions(**_ON_GPUS), tmp_path / "state", tmp_path / "rows.csv"
    first, other = (rows, None) if has_rows else (None, rows)
    _killed(state, first)
    with pytest.raises(InputError, match="state: is the checkpoint of another run; allowed: one"):
        serve_result(options, _kept(state, other))
    with monkeypatch.context() as patch, pytest.raises(InputError, match="same version of the cod"):
        patch.setattr("wafertlm.serving.run.sources_hash", lambda: "newer")
        serve_result(options, _kept(state, first))
    assert serve_result(options, _kept(state, first)) == serve_result(options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv"] * has_rows


def test_a_trace_that_is_missing_is_refused_with_a_checkpoint_too(tmp_path: Path) -> None:
    names = {"model": "llama3-8b", "chip": "h100x2", "scheduler": "chunked"}
    options = ServeOptions(**names, trace=tmp_path / "missing.csv")
    with pytest.raises(InputError, match="missing.csv: cannot be read"):
        serve_result(options, _kept(tmp_path / "state"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "gpt"}, "unknown model 'gpt'; known: codellama-34b"),
        ({"chip": "cpu"}, "unknown chip 'cpu'; known: a100x1, a100x2"),
        (
            {"chip": "flat32-wafer", "expert_parallel": 3},
            "--expert-parallel, --pp: found 3 and 21; allowed on 'flat32-wafer': groups that cut i",
        ),
        ({"chip": "h100x2", "pp": 2}, "--pp: found with 'h100x2'; allowed: with chips of tiles"),
        ({"chip": "flat32-wafer", "routing": "odd"}, "unknown routing 'odd'; known: balanced, pop"),
        ({"chip": "wse2", "level": "lt"}, "--level: found 'lt' with 'wse2'; allowed: perf"),
        ({"scheduler": "lifo"}, "unknown scheduler 'lifo'; known: chunked"),
        ({"workload": "web"}, "unknown workload 'web'; known: arxiv"),
        ({"workload": None}, "either --trace or --workload"),
        ({"trace": Path("a.csv")}, "either --trace or --workload"),
        ({"trace": Path("a.csv"), "workload": None}, "--rate: a trace has arrival times"),
        ({"rate_rps": None}, "--workload: needs --rate and --requests"),
        ({"requests": 0}, "--requests: found 0; allowed: 1 or more"),
        ({"rate_scale": 0.0}, "--rate-scale: found 0.0"),
        ({"rate_scale": 1e-300}, "rate scale: found 1e-300; allowed: positive, arrivals within"),
        ({"rate_rps": 1e-306, "arrival_cv": 100.0}, "rate: found 1e-306; allowed: all arrivals"),
        ({"seeds": 0}, "--seeds"),
        ({"seed": -1}, "--seed"),
        ({"slo_ttft_s": -1.0}, "--slo-ttft: found -1.0; allowed: positive"),
        ({"token_budget": 0}, "token budget: found 0"),
        ({"max_sequences": 0}, "max sequences: found 0"),
        ({"kv_tokens": 100}, "request 1 in order of arrival: found"),
        ({"kv_tokens": -5}, "--kv-tokens: found -5; allowed: 1 or more"),
        ({"layer_groups": 4}, "layer groups: found 4; scheduler 'chunked' has none"),
        ({"draft_tokens": 0}, "draft tokens: found 0; allowed: 1 to 64"),
        ({"kv_sram_tokens": -1}, "--kv-sram-tokens: found -1; allowed: 0 or more"),
        ({"decode_units": 4}, "--decode-units: found 4; only pd-disaggregation has pools"),
        ({"find_rate": True}, "--find-rate: needs objectives"),
        (
            {"find_rate": True, "slo_ttft_s": 1.0, "rate_rps": float("inf")},
            "--rate: found inf; allowed with --find-rate: finite",
        ),
        (
            {"find_rate": True, "slo_ttft_s": 1e-9, "chip": "h100x2"},
            "--find-rate: found no rate at which 90% of the requests attain the objectives",
        ),
        (  # rates at which arrivals would take over 100 days are below all that can be tried
            {"find_rate": True, "slo_ttft_s": 1e-9, "requests": 200, "chip": "h100x2"},
            "--find-rate: found no rate at which .* the lowest tried: 3.05e-05 a second",
        ),
        ({"acceptance": 7.0}, "--acceptance: found 7.0; needs --draft-tokens"),
        ({"attainment": float("nan")}, "--attainment: found nan; needs --find-rate"),
        (
            {"workload": None, "rate_rps": None, "trace": Path("a.csv"), "arrival_cv": 2.0},
            "--arrival-cv: found 2.0; needs --workload",
        ),
        (
            {"scheduler": "pd-disaggregation", "prefill_units": 900, "decode_units": 600},
            "pools of 'flat32': found 900 prefill and 600 decode units; allowed: 1 or more each, "
            "1024 together",
        ),
        (
            {"scheduler": "pd-disaggregation", "link_latency_s": 1e300},
            "link latency: found 1e\\+300 s; allowed: 0 to 8,640,000 .100 days.",
        ),
        (
            {"scheduler": "pd-disaggregation", "prefill_scheduler": "lifo"},
            "unknown scheduler 'lifo'; known: chunked",
        ),
    ],
)
def test_unusable_options_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        serve_result(ServeOptions(**(_GENERATED | change)))


def test_names_are_listed() -> None:
    names = known_names()
    assert "llama3-8b" in names["models"]
    assert "flat32" in names["chips"]
    assert {"chunked", "continuous"} <= set(names["schedulers"])
    assert {"arxiv", "sharegpt"} <= set(names["workloads"])


def test_the_command_prints_one_object_and_nothing_else() -> None:
    line = "--model llama3-8b --chip flat32 --scheduler chunked --workload sharegpt --rate inf"
    arguments = [*line.split(), "--requests", "5", "--seed", "3", "--json"]
    first, again = (CliRunner().invoke(command, arguments) for _ in range(2))
    result = json.loads(first.stdout)
    assert result["options"]["rate_rps"] == "inf"
    assert result["provenance"]["seed"] == 3
    assert result["completed"] == 5
    times = {"cpu_s", "wall_s", "compile_s"}
    assert {name: value for name, value in result.items() if name not in times} == {
        name: value for name, value in json.loads(again.stdout).items() if name not in times
    }
    assert "tbt_ms" in CliRunner().invoke(command, arguments[:-1]).stdout
    assert "llama3-8b" in CliRunner().invoke(command, ["--list"]).stdout


def test_the_rows_are_the_requests_that_the_figures_summarise(tmp_path: Path) -> None:
    table = tmp_path / "requests.csv"
    result = serve_result(ServeOptions(**_ON_GPUS), Execution(requests_csv=table))
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 30
    for name in ("ttft_s", "e2e_s"):
        values = [float(row[name]) for row in rows]
        assert np.percentile(values, 90) == pytest.approx(result[name]["p90"])
    for row in rows:
        intervals = int(row["output_tokens"]) - 1
        assert (row["mean_tbt_ms"] == "") == (intervals == 0)
        decode_s = 1e-3 * float(row["mean_tbt_ms"] or 0) * intervals
        assert float(row["e2e_s"]) == pytest.approx(float(row["ttft_s"]) + decode_s)


def test_rows_of_several_seeds_are_not_mixed_in_one_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--requests-csv: holds the requests of one run"):
        execution = Execution(requests_csv=tmp_path / "rows.csv")
        serve_result(ServeOptions(**_GENERATED, seeds=2), execution)


def test_a_missing_name_is_asked_for_with_those_that_exist() -> None:
    outcome = CliRunner().invoke(command, ["--chip", "flat32"])
    assert isinstance(outcome.exception, InputError)
    assert str(outcome.exception).startswith(
        "--model: not given; known: codellama-34b, deepseek-v3-671b"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--plot", "serving.gif"],
            "--plot: found 'serving.gif'; allowed: an ending of .png, .svg",
        ),
        (["--plot", "a.png", "--seeds", "2"], "--plot: shows a single run; leave out --seeds"),
        (["--checkpoint", "a", "--seeds", "2"], "--checkpoint: holds one run; leave out --seeds"),
        (["--checkpoint-every", "nan", "--checkpoint", "a"], "checkpoint every: found nan s"),
        (["--checkpoint-every", "nan"], "--checkpoint-every: found nan; needs --checkpoint"),
    ],
)
def test_files_that_do_not_fit_the_run_are_refused(arguments: list[str], message: str) -> None:
    line = "--model llama3-8b --chip flat32 --scheduler chunked --workload sharegpt --rate 1"
    outcome = CliRunner().invoke(command, [*line.split(), "--requests", "5", *arguments])
    assert isinstance(outcome.exception, InputError)
    assert str(outcome.exception).startswith(message)


def test_equal_results_give_equal_pictures(tmp_path: Path) -> None:
    line = "--model llama3-8b --chip h100x2 --scheduler chunked --workload sharegpt --rate 1"
    pictures = [tmp_path / name for name in ("a.svg", "b.svg", "a.png", "a.pdf")]
    for picture in pictures:
        arguments = [*line.split(), "--requests", "5", "--plot", str(picture)]
        assert CliRunner().invoke(command, arguments).exit_code == 0
    assert all(picture.stat().st_size > 1000 for picture in pictures)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
