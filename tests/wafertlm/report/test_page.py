"""The page: complete, self-contained, the same bytes from the same results, its story in order."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calibration.campaign import EXPERIMENTS
from tests.wafertlm.report.pages import (
    Page,
    comparison_run,
    exploration_run,
    iteration_run,
    kernel_run,
    leaves,
    page_of,
    parsed,
    serve_run,
    shown_by,
    study_run,
)
from tlm.calibrated import stored_result
from wafertlm.report.page import CALIBRATION_FOLDER


def test_the_page_loads_nothing(results: Path) -> None:
    page = page_of(results)
    found = Page(page)
    assert found.loads
    assert all(address.startswith(("#", "data:image/")) for address in found.loads)
    assert not {"link", "iframe", "object", "base"} & found.tags
    assert not re.search(r"@import|url\((?![\"']?(#|data:))|fetch\(|XMLHttp|import\(", page)


def test_equal_results_give_equal_bytes(results: Path) -> None:
    assert page_of(results) == page_of(results)


def test_the_page_shows_each_part_and_where_it_comes_from(results: Path) -> None:
    text = shown_by(page_of(results))
    for shown in (
        "How long does summa of 64,64,64 in fp16 on 4x6 tiles of wse2 take?",
        "2 000 cycles",
        "43.2 % utilised",
        "The levels used are within 1.5 % in the checked cases around it.",
        "How does flat32 serve llama3-8b under a load?",
        "1 234 tokens a second, chunked",
        "3 of 3 requests completed",
        "not compared with anything below them: trust orderings before figures",
        "chat time to first token s 1.25 1 2 3",
        "c0ffee",
    ):
        assert shown in text


def test_the_users_results_come_first_and_calibrations_last(results: Path) -> None:
    for name, run in (
        ("compared", comparison_run()),
        ("explored", exploration_run()),
        ("layer", iteration_run()),
        ("paper", study_run()),
        ("rules", {**kernel_run(), "command": "check"}),
    ):
        (results / f"{name}.json").write_text(json.dumps(run))
    page = page_of(results)
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "In short",
        "Comparisons",
        "Explorations",
        "Serving",
        "Iterations, kernel by kernel",
        "Kernels",
        "Networks, memories and checks",
        "Studies",
        "Models against RTL",
        "Every figure",
    ]
    # Details are folded, but for nothing that answers a question.
    assert page.index('id="calibration"') > page.rindex("<article>")
    short = page[: page.index("</nav>")]
    for section in ("comparisons", "explorations", "serving", "iterations", "kernels", "studies"):
        assert f'href="#{section}"' in short
        assert f'id="{section}"' in page


def test_missing_parts_name_commands_that_exist(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    texts = Page(page_of(tmp_path, tmp_path / "none")).texts
    missing = texts[texts.index("What this page could show, too") + 1 :][:4]
    commands = [line.removeprefix("wafertlm ").split()[0] for line in missing]
    assert commands == ["kernel", "serve", "compare", "calibrate"]
    for line in missing:
        parsed(line)


def test_a_part_that_is_there_is_not_asked_for(results: Path) -> None:
    text = shown_by(page_of(results))
    assert "wafertlm kernel mesh-gemm" not in text
    assert "--map" not in text[text.index("What this page could show, too") :]


_OTHERS = (
    "check summa --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8",
    "dies --chip flat32-wafer --collective all-to-all --bytes 4096",
    "memory --device hbm3 --requests 100",
    "noc --mesh 4x4 --traffic uniform --rate 0.1 --cycles 500 --level perf",
)


@pytest.mark.parametrize("line", _OTHERS)
def test_every_figure_of_any_commands_result_is_shown(
    tmp_path: Path, wafertlm: Any, line: str
) -> None:
    (tmp_path / "results").mkdir()
    stored = json.loads(wafertlm(*line.split(), "--json").stdout)
    (tmp_path / "results" / "any.json").write_text(json.dumps(stored))
    text = shown_by(page_of(tmp_path / "results"))
    asked = text.index("any", text.index("In short"))
    assert asked < text.index("What this page could show, too")
    missing = {
        leaf
        for leaf in leaves({**stored, "provenance": None})
        if leaf not in (None, True, False) and str(leaf) not in text
    }
    assert not missing


def test_the_figures_of_all_kinds_are_all_shown(results: Path) -> None:
    runs = (kernel_run(), serve_run(), comparison_run(), exploration_run(), study_run())
    for number, run in enumerate(runs):
        (results / f"run{number}.json").write_text(json.dumps(run))
    text = shown_by(page_of(results))
    for run in runs:
        told = [leaf for leaf in leaves(run) if leaf not in (None, True, False)]
        assert all(str(leaf) in text for leaf in told)


def test_saturated_traffic_is_told(tmp_path: Path, wafertlm: Any) -> None:
    line = "noc --mesh 4x4 --traffic uniform --cycles 500 --level at --rate"
    for rate, saturated in (("0.05", False), ("1", True)):
        folder = tmp_path / rate
        assert wafertlm(*line.split(), rate, "--out", folder / "noc.json").status == 0
        assert ("Saturated: less than 98 % is accepted" in page_of(folder)) is saturated


def test_a_name_cannot_break_the_page(results: Path) -> None:
    evil = "<script>alert(1)</script>"
    run = kernel_run()
    run["options"] = run["options"] | {"kernel": evil}
    (results / "bad.json").write_text(json.dumps(run))
    compared = comparison_run()
    compared["changes"][0]["metric"] = evil
    (results / "worse.json").write_text(json.dumps(compared))
    page = page_of(results)
    assert "<script>alert" not in page
    assert page.count("<script") == 1
    assert "&lt;script&gt;" in page


def test_many_results_stay_within_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    for number in range(300):
        run = kernel_run()
        run["options"] = run["options"] | {"shape": f"{number + 1},64,64"}
        run["plan"] = {"slice": {"m": 1}, "of": list(range(30)), "text": "x" * 4000}
        (folder / f"run{number}.json").write_text(json.dumps(run))
    page = page_of(folder)
    assert len(page.encode()) < 5_000_000
    assert '260 more are under "Every figure"' in page
    assert "There is no room for these: they are in the file." in page


def test_the_command_reads_what_the_commands_store(wafertlm: Any, tmp_path: Path) -> None:
    kernel = "kernel summa --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8"
    serve = "serve --model llama3-8b --chip flat32 --scheduler chunked --workload sharegpt"
    made = tmp_path / "made"
    beside = ("--out", made / "k.json", "--map", made / "k.npz", "--timeline", made / "k.json.gz")
    assert wafertlm(*kernel.split(), *beside).status == 0
    beside = ("--out", made / "s.json", "--requests-csv", made / "s.csv")
    assert wafertlm(*serve.split(), "--rate", 4, "--requests", 10, *beside).status == 0
    line = "iteration --model qwen3-8b --chip flat32 --prefill 512"
    assert wafertlm(*line.split(), "--out", made / "i.json").status == 0
    line = "compare noc --mesh 4x4 --traffic uniform --rate 0.1 --cycles 500 --vary fifo-depth=4,8"
    assert wafertlm(*line.split(), "--out", made / "c.json").status == 0
    ran = wafertlm("report", "--results", made, "--json")
    assert ran.status == 0
    result = json.loads(ran.stdout)
    kinds = ("kernels", "servings", "iterations", "comparisons", "others")
    assert [result[kind] for kind in kinds] == [1, 1, 1, 1, 0]
    assert Path(result["report"]) == made / "report.html"
    page = (made / "report.html").read_text()
    assert page.count('class="map"') == 4
    assert page.count('class="timeline"') == 1
    off = [one.name for one in EXPERIMENTS if stored_result(one.name).max_abs_error_pct]
    assert all(f"<summary>{name}: model against RTL" in page for name in off)
    assert CALIBRATION_FOLDER.is_dir()
    listed = json.loads(wafertlm("report", "--results", made, "--list", "--json").stdout)
    assert (listed["kernels"], listed["iterations"], listed["comparisons"]) == (["k"], ["i"], ["c"])
