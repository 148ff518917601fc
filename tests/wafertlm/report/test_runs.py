"""What sections say: kernels at levels, serving under loads, changes, the best of trials."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.wafertlm.report.pages import (
    comparison_run,
    exploration_run,
    iteration_run,
    kernel_run,
    serve_run,
    study_run,
)
from wafertlm.report.page import CALIBRATION_FOLDER, sections
from wafertlm.report.stored import load_results
from wafertlm.report.story import Answer, Cell, Column, Grid


def answers(folder: Path, **runs: dict[str, Any]) -> list[Answer]:
    """The answers of a page with some runs."""
    folder.mkdir(exist_ok=True)
    for stem, run in runs.items():
        (folder / f"{stem}.json").write_text(json.dumps(run))
    found = sections(load_results(folder, CALIBRATION_FOLDER / "none"))
    return [answer for section in found for answer in section.answers]


def cells(grid: Grid) -> list[list[str]]:
    """The texts of a table."""
    return [
        [cell.text if isinstance(cell, Cell) else str(cell) for cell in row] for row in grid.rows
    ]


def kernel(level: str, cycles: int, name: str = "summa", **changes: Any) -> dict[str, Any]:
    run = kernel_run(cycles=cycles, breakdown_cycles={"overhead": cycles}, **changes)
    run["options"] = run["options"] | {"level": level, "kernel": name}
    return run


def serve(scheduler: str, options: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    run = serve_run(**changes)
    run["options"] = run["options"] | {"scheduler": scheduler} | (options or {})
    return run


@pytest.mark.parametrize(
    ("off_pct", "told"),
    [
        (0.0, "exact in the checked cases"),
        (20.0, "1\u202f667 to 2\u202f500 by the levels' error"),  # 20 % below 2,500
        (150.0, "800 or more by the levels' error"),
        (None, ""),
    ],
)
def test_an_interval_covers_what_the_level_below_may_say(
    tmp_path: Path, off_pct: float | None, told: str
) -> None:
    run = kernel("lt", 2000) | {"error": {"level_pct": off_pct, "profile_pct": None}}
    (answer,) = answers(tmp_path / "results", run=run)
    assert answer.interval == told


def test_levels_of_one_case_are_compared(tmp_path: Path) -> None:
    (answer,) = answers(
        tmp_path / "results",
        closed=kernel("perf", 2100),
        approximate=kernel("at", 2000),
        loose=kernel("lt", 1900),
    )
    assert answer.question.startswith("How long does summa of 64,64,64 in fp16")
    assert answer.figures[:2] == [("2\u202f000", "cycles"), ("2\xa0µs", "at level at")]
    assert answer.interval == "1\u202f970 to 2\u202f030 by the levels' error"
    rows = cells(answer.grids[0])
    assert [(row[1], row[5]) for row in rows] == [
        ("at", "–"),
        ("lt", "\u22125\xa0%"),
        ("perf", "+10.5\xa0%"),
    ]
    assert answer.binds.startswith("bound by engine below peak, 100 % of the cycles. ")
    assert "Next: larger slices" in answer.binds


def test_runs_of_one_level_are_not_held_against_each_other(tmp_path: Path) -> None:
    """The level below a run's is one of more detail, whatever else was stored of its own."""
    (answer,) = answers(
        tmp_path / "results",
        approximate=kernel("at", 2000),
        first=kernel("lt", 1900),
        second=kernel("lt", 2200),
        closed=kernel("perf", 2090),
    )
    rows = cells(answer.grids[0])
    assert [(row[1], row[2], row[5]) for row in rows] == [
        ("at", "2\u202f000", "–"),
        ("lt", "1\u202f900", "\u22125\xa0%"),
        ("lt", "2\u202f200", "+10\xa0%"),
        ("perf", "2\u202f090", "+10\xa0%"),
    ]


def test_kernels_of_one_problem_are_held_against_the_fastest_of_their_level(tmp_path: Path) -> None:
    (answer, other) = answers(
        tmp_path / "results",
        summa=kernel("lt", 3000),
        exact=kernel("at", 2900),
        mesh=kernel("lt", 1500, "mesh-gemm"),
        large=kernel_run(
            options={**kernel_run()["options"], "shape": "99,64,64"},
        ),
    )
    assert answer.question.startswith("Which kernel is the fastest for 64,64,64")
    assert answer.figures[0] == ("mesh-gemm", "1\u202f500 cycles")
    assert ("2.00", "times as long, summa") in answer.figures
    ratios = {(row[0], row[1]): row[6] for row in cells(answer.grids[0])}
    assert ratios[("summa", "lt")] == "2.00 times"
    assert ratios[("mesh-gemm", "lt")] == "1.00 times"
    assert ratios[("summa", "at")] == "–"
    assert "99,64,64" in other.question


def test_an_overloaded_run_does_not_take_the_headline(tmp_path: Path) -> None:
    calm = serve("chunked", throughput_tok_s=500.0, overloaded=False)
    hurried = serve("layered", throughput_tok_s=9000.0, overloaded=True)
    (answer,) = answers(tmp_path / "results", a=hurried, b=calm)
    assert answer.figures[0] == ("500", "tokens a second, chunked")
    assert not answer.warning
    states = {row[0]: row[9] for row in cells(answer.grids[0])}
    assert states == {"a": "overloaded", "b": "keeps up"}
    (alone,) = answers(tmp_path / "alone", a=hurried)
    assert alone.warning.startswith("Overloaded: requests came faster than they were served")


def test_the_highest_rate_the_objectives_and_who_attains_them_are_shown(tmp_path: Path) -> None:
    trials = [{"rate": 2.0, "attainment": 1.0}, {"rate": 3.0, "attainment": 0.9}]
    searched = serve(
        "layered",
        {"slo_ttft_s": 2.0, "slo_tbt_ms": 50.0, "attainment": 0.9},
        slo_attainment=0.912,
        goodput_rps=2.7,
        capacity={"rate_rps": 3.0, "trials": trials},
        interval={"ttft_s": {"low": 1.1, "high": 1.6}, "note": None},
        error={"level_pct": 9.0, "profile_pct": 20.0},
    )
    (answer,) = answers(tmp_path / "results", found=searched)
    what = "requests a second at most, 90 % of them within the SLOs, layered"
    assert answer.figures[0] == ("3", what)
    assert ("91.2 %", "of requests attain first token in 2 s, 50 ms between tokens") in (
        answer.figures
    )
    assert ("1.25 s", "to the first token, mean (1.1 to 1.6)") in answer.figures
    assert "within 9 %" in answer.trust and "20 % off" in answer.trust
    assert cells(answer.grids[0])[0][2:6] == ["–", "3", "91.2", "2.7"]
    labels = "".join(answer.panels)
    assert ">within the SLOs, requests a second</text>" in labels


def test_a_burst_is_no_capacity(tmp_path: Path) -> None:
    burst = {"rate_rps": 900.0, "burst": True, "trials": [{"rate": 900.0, "attainment": 1.0}]}
    (answer,) = answers(
        tmp_path / "results",
        short=serve("layered", capacity=burst, throughput_tok_s=800.0),
        calm=serve("chunked", throughput_tok_s=100.0),
    )
    assert answer.figures[0] == ("100", "tokens a second, chunked")
    assert ["short", "overload that ends in time"] in [
        [row[0], row[9]] for row in cells(answer.grids[0])
    ]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kv": {"preemptions": 4}}, "memory of keys and values: 4 requests were put back"),
        ({"kv": {"peak_tokens": 99, "capacity_tokens": 100}}, "memory of keys and values: it is"),
        ({}, "waiting: 100 % of the time to the first token passes in the queue"),
        (
            {"queue_s": dict.fromkeys(("mean", "p50", "p90", "p99"), 0.1)},
            "the iterations themselves, not by queues",
        ),
    ],
)
def test_what_binds_serving_is_told(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    (answer,) = answers(tmp_path / "results", run=serve("chunked", **changes))
    assert answer.binds.startswith(f"bound by {told}")


def test_loads_chips_and_models_are_questions_of_their_own(tmp_path: Path) -> None:
    runs = {
        "a": serve("chunked", {"workload": "sharegpt"}),
        "b": serve("layered", {"workload": "sharegpt"}),
        "c": serve("chunked", {"workload": "arxiv"}),
        "d": serve("chunked", {"workload": "arxiv", "chip": "wse2"}),
    }
    found = answers(tmp_path / "results", **runs)
    assert [list(answer.stems) for answer in found] == [["a", "b"], ["c"], ["d"]]


def test_distributions_have_their_lines_labelled_and_the_objective(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "chat.csv").write_text("ttft_s,e2e_s,mean_tbt_ms\n1,1,\n2,4,1000\n1,2,900\n")
    (answer,) = answers(folder, chat=serve("chunked", {"slo_ttft_s": 1.5}))
    first, *_ = answer.panels
    assert ">chat</text>" in first
    assert ">SLO 1.5 s</text>" in first
    assert ">time to first token (s)</text>" in first


def test_an_iteration_is_broken_down_by_kernel(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path / "results", layer=iteration_run())
    assert answer.figures[:2] == [("1\xa0ms", "an iteration"), ("80 %", "of it up")]
    assert answer.interval == "900\xa0µs to 1.2\xa0ms"
    assert [(bar.label, bar.value) for bar in answer.bars] == [
        ("up (stream-gemm)", "80.0 %"),
        ("qkv (stream-gemm)", "20.0 %"),
    ]
    assert answer.bars[0].shares == {"compute": 80.0}
    assert answer.binds.startswith("most time goes to up (stream-gemm), which is bound by compute.")


def test_serving_shows_what_an_iteration_of_it_spends_its_time_on(tmp_path: Path) -> None:
    quick = dict.fromkeys(("mean", "p50", "p90", "p99"), 0.1)
    served = serve("chunked", {"model": "m", "chip": "c"}, queue_s=quick)
    answer, _ = answers(tmp_path / "results", layer=iteration_run(), chat=served)
    assert answer.binds.endswith("The one of layer spends 80 % on up: its kernels are the bars.")
    assert [bar.label for bar in answer.bars] == ["up (stream-gemm)", "qkv (stream-gemm)"]
    answer, _ = answers(tmp_path / "results", chat=serve("chunked", queue_s=quick))
    assert "Next: wafertlm iteration" in answer.binds
    assert not answer.bars


def test_an_iteration_of_a_changed_chip_is_none_of_the_plain_one(tmp_path: Path) -> None:
    layer, quick = iteration_run(), dict.fromkeys(("mean", "p50", "p90", "p99"), 0.1)
    layer["options"] |= {"set": ["noc.hop_cycles=2"]}
    asked = {"model": "m", "chip": "c"}
    plain = serve("chunked", asked, queue_s=quick)
    changed = serve("chunked", asked | {"set": ["noc.hop_cycles=2"]}, queue_s=quick)
    found = answers(tmp_path / "results", layer=layer, chat=plain, other=changed)
    bars = {answer.question: bool(answer.bars) for answer in found}
    where, load = "c with noc.hop_cycles=2", "a load"
    assert bars == {
        f"How does c serve m under {load}?": False,
        f"How does {where} serve m under {load}?": True,
        f"What does an iteration of m on {where} (prefill 512) spend its time on?": True,
    }


def test_shares_of_an_iteration_whose_kernels_wait_are_of_all_of_it(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path / "results", layer=iteration_run() | {"cycles": 4000})
    assert answer.figures[1] == ("20 %", "of it up")


def test_changes_have_intervals_and_gates_stand_beside(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path / "results", compared=comparison_run())
    assert answer.question == (
        "What does a change of fifo-depth do to noc: fifo-depth 4 against fifo-depth 8?"
    )
    value, what = answer.figures[0]
    assert (value, what) == ("+25\xa0%", "saturation load (flits/node/cycle), fifo-depth 8")
    assert answer.interval == "+20\xa0% to +31\xa0%"
    changes, gates, every = answer.grids
    assert [row[5:] for row in cells(changes)] == [
        ["+20\xa0% to +31\xa0%", "yes"],
        ["not known", "not known"],
    ]
    assert cells(gates) == [["deep.toml", "12\u202f345", "21", "–", "–", "790\u202f080"]]
    assert every.folded
    assert answer.trust.startswith("1 of 2 of these changes have an interval")
    assert len(answer.panels) == 1


def test_no_change_beyond_the_errors_is_told(tmp_path: Path) -> None:
    run = comparison_run()
    for change in run["changes"]:
        change |= {"low_pct": -1.0, "high_pct": 2.0, "significant": False, "change_pct": 0.5}
    (answer,) = answers(tmp_path / "results", compared=run)
    assert answer.binds.startswith("No change of these is larger than what the errors")
    assert answer.trust == (
        "All of these changes have an interval: errors of what is equal in two variants cancel, "
        "others add up."
    )


def test_a_change_that_no_error_moves_is_exact(tmp_path: Path) -> None:
    run = comparison_run()
    run["changes"][0] |= {"low_pct": 25.0, "high_pct": 25.0}
    (answer,) = answers(tmp_path / "results", compared=run)
    assert answer.interval == "exact in the checked cases"


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    grid = Grid((Column("a"), Column("b"), Column("c")), [["1", "–", "–"], ["2", Cell("–"), "3"]])
    assert grid.filled == ([Column("a"), Column("c")], [["1", "–"], ["2", "3"]])


def test_an_exploration_has_its_front_and_all_trials(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path / "results", explored=exploration_run())
    assert answer.figures == [
        ("2 trials", "are best, none of them in all objectives"),
        ("0.4", "low time to first token, mean (s): set:noc.buffer_flits 8"),
        ("5000", "low cells of a router: set:noc.buffer_flits 2"),
    ]
    alone = exploration_run(pareto=exploration_run()["pareto"][:1])
    (answer_alone,) = answers(tmp_path / "alone", explored=alone)
    assert answer_alone.figures[0] == ("set:noc.buffer_flits 2", "is best")
    assert answer.binds == "4 trials, 1 of them failed; 2 beaten by no other in all objectives."
    best, every = answer.grids
    assert [row[:4] for row in cells(best)] == [
        ["0", "2", "0.9", "5000"],
        ["1", "8", "0.4", "20\u202f000"],
    ]
    assert [row[0] for row in cells(every)] == ["0", "1", "2"]
    (figure,) = answer.panels
    for label in ("buffer_flits 2", "buffer_flits 8", "cells of a router"):
        assert f">{label}</text>" in figure


def test_an_exploration_of_one_objective_has_one_best(tmp_path: Path) -> None:
    run = exploration_run(trials=2, failed=0)
    best = run.pop("pareto")[1]
    run["options"] = {"command": "serve", "objectives": {"ttft_s.mean": "minimize"}}
    confirmed = {
        "level": "lt",
        "objectives": {"ttft_s.mean": 0.42},
        "change_pct": {"ttft_s.mean": 5},
    }
    run["best"] = best | {"confirmed": confirmed, "command_line": "wafertlm serve --model m"}
    (answer,) = answers(tmp_path / "results", explored=run)
    assert answer.interval == "at level lt: time to first token, mean (s) 0.42"
    assert answer.trust.endswith("where they moved by +5\xa0% at most.")
    assert cells(answer.grids[1]) == [["wafertlm serve --model m"]]
    none = answers(tmp_path / "none", explored=run | {"best": None, "rows": []})[0]
    assert none.figures == [("none", "of the trials will do")]


def test_a_study_tells_errors_of_predictions(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path / "results", paper=study_run())
    assert answer.figures[0] == ("10 %", "mean error of 1 rows that are predicted")
    assert answer.interval == "up to 10 %, T1/a"
    assert [row[0] for row in cells(answer.grids[0])] == ["T1/a", "T1/b"]
    assert re.search(">predicted</text>", answer.panels[0])
