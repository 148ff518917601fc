"""``wafertlm study``: what it prints and stores, on a small part of the study."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tlm.errors import InputError
from wafertlm.commands.study import command
from workloads.studies import profiles
from workloads.studies.layered_prefill import other_chips, paper, study
from workloads.studies.layered_prefill.book import Plan
from workloads.studies.layered_prefill.cases import Case, Coverage
from workloads.studies.rows import Ordering, Row


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    chunked, layered = (
        Case("qwen3-30b-a3b", "h100x2", name, 1.3, requests=8) for name in ("chunked", "layered")
    )
    cases = {"chunked": chunked, "layered": layered, "one": Coverage("qwen3-30b-a3b", 1)}
    change = Row("T7/Q/l/expert_load_change", "layered", "expert_load", "% change", -39.0)
    rows = [
        Row("T1/Q/one/coverage", "one", "coverage", "percent", 6.25, fit=True),
        Row("T6/Q/c/TTFT_mean", "chunked", "TTFT_mean", "s", 2.8),
        change._replace(against="chunked"),
    ]
    orders = [Ordering("order", "TTFT_mean", "layered", "chunked")]
    new = [row._replace(name=f"NEW/{row.name}", paper=None) for row in rows[2:]]
    monkeypatch.setattr(paper, "plan", lambda: Plan(dict(cases), rows, orders))
    monkeypatch.setattr(other_chips, "plan", lambda: Plan(dict(cases), new, []))


def _json(*arguments: str) -> dict[str, Any]:
    outcome = CliRunner().invoke(command, ["layered-prefill", *arguments, "--json"])
    assert outcome.exception is None, outcome.exception
    result: dict[str, Any] = json.loads(outcome.stdout)
    return result


@pytest.mark.usefixtures("small")
def test_rows_summary_targets_and_wins(tmp_path: Path) -> None:
    result = _json("--quick", "--workers", "1", "--out", str(tmp_path / "a.json"))
    rows = {row["id"]: row for row in result["rows"]}
    assert rows["T1/Q/one/coverage"]["error_pct"] == pytest.approx(0, abs=0.01)
    assert rows["T6/Q/c/TTFT_mean"]["paper"] == 2.8
    assert rows["NEW/T7/Q/l/expert_load_change"]["paper"] is None
    assert set(result["summary"]) == {"fitted", "predicted", "changes", "orderings"}
    assert [each["target"] for each in result["targets"]] == [
        "order of order",
        "T7/Q/l/expert_load_change within 10 points",
    ]
    assert result["other_chips"][0]["winner"] in ("layered", "open")
    assert result["provenance"]["seed"] == 0
    assert result["seeds"] == [0, 1]
    _json(
        "--quick", "--workers", "2", "--resume", str(tmp_path / "r"), "--out", str(tmp_path / "b")
    )
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.usefixtures("small")
def test_the_table_and_the_plots(tmp_path: Path) -> None:
    arguments = ["layered-prefill", "--quick", "--workers", "1", "--plots", str(tmp_path)]
    outcome = CliRunner().invoke(command, arguments)
    assert outcome.exception is None, outcome.exception
    assert "orderings kept: 1 of 1; of doubtful ones 0 of 0" in outcome.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "attainment.pdf", "attainment.svg", "frontier.pdf", "frontier.svg",
    ]  # fmt: skip


@pytest.mark.usefixtures("small")
def test_errors_of_chips_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "PROFILES_FILE", tmp_path / "profiles.json")
    monkeypatch.setattr(study, "FULL_SEEDS", 2)
    profiles._stored.cache_clear()
    assert profiles.profile_error("h100x2", "qwen3-30b-a3b").pct is None
    result = _json("--workers", "1", "--record")
    error = profiles.profile_error("h100x2", "qwen3-30b-a3b").pct
    assert error == result["errors_by_chip"]["h100x2"]["mean_abs_error_pct"]
    assert result["errors_by_chip"]["h100x2"]["models"] == ["qwen3-30b-a3b"]
    ttft = next(row for row in result["rows"] if row["id"] == "T6/Q/c/TTFT_mean")
    assert error == pytest.approx(abs(ttft["error_pct"]))
    assert profiles.profile_error("h100x2", "qwen3-8b").pct is None
    assert profiles.profile_error("flat32", "qwen3-30b-a3b").pct is None
    profiles._stored.cache_clear()


def test_names_are_listed() -> None:
    outcome = CliRunner().invoke(command, ["--list", "--json"])
    assert json.loads(outcome.stdout) == {
        "studies": ["flatattention", "layered-prefill", "npusim", "waferllm"]
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "study: not given; known: flatattention, layered-prefill, npusim, waferllm"),
        (
            ["waferllm-2"],
            "unknown study 'waferllm-2'; known: flatattention, layered-prefill, npusim, waferllm",
        ),
        (
            ["layered-prefill", "--quick", "--record"],
            "--record: allowed with layered-prefill and waferllm, without --quick",
        ),
        (
            ["flatattention", "--record"],
            "--record: allowed with layered-prefill and waferllm, without --quick",
        ),
        (
            ["flatattention", "--seed", "1"],
            "--seed: found 1; nothing in study 'flatattention' is random: leave it out",
        ),
        (["layered-prefill", "--workers", "0"], "--workers: found 0; allowed: 1 or more"),
        (["layered-prefill", "--seed", "-1"], "--seed: found -1; allowed: 0 or more"),
    ],
)
def test_bad_input(arguments: list[str], message: str) -> None:
    outcome = CliRunner().invoke(command, arguments)
    assert isinstance(outcome.exception, InputError)
    assert str(outcome.exception) == message
