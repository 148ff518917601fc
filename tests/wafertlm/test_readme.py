"""The README says what the stored results say, and its commands run."""

import re
import shlex
from pathlib import Path

import pytest

from tlm.calibrated import load_levels, load_result, stored_names
from wafertlm.cli import run

README = Path(__file__).parents[2] / "README.md"


def between(mark: str) -> str:
    found = re.search(
        rf"<!-- {mark}: begin -->\n(.*?)<!-- {mark}: end -->", README.read_text(), re.DOTALL
    )
    assert found is not None
    return found[1]


def error_table() -> str:
    lines = ["| experiment | subject | fitted on | checked on | mean error | worst error |"]
    lines.append("|---|---|---|---|---|---|")
    for name in stored_names():
        result = load_result(name)
        errors = f"{result.mean_abs_error_pct:.2g} % | {result.max_abs_error_pct:.3g} %"
        points = f"{len(result.fit)} | {len(result.check)}"
        lines.append(f"| {name} | {result.subject} | {points} | {errors} |")
    return "\n".join(lines) + "\n"


def level_table() -> str:
    lines = [
        "| kernel | cases | `lt` against `at`: mean, worst | `perf` against `lt`: mean, worst |"
    ]
    lines.append("|---|---|---|---|")
    points = load_levels().points
    for kernel in dict.fromkeys(point.kernel for point in points):
        chosen = [point for point in points if point.kernel == kernel]
        shown = []
        for errors in (
            [abs(point.lt_error_pct) for point in chosen],
            [abs(point.perf_error_pct) for point in chosen],
        ):
            shown.append(f"{sum(errors) / len(errors):.2g} %, {max(errors):.3g} %")
        lines.append(f"| {kernel} | {len(chosen)} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("mark", "table"), [("errors", error_table), ("levels", level_table)])
def test_tables_are_those_of_the_stored_results(mark: str, table: object) -> None:
    assert callable(table)
    assert between(mark) == table()


def commands() -> list[str]:
    blocks = re.findall(r"(?:^    .*\n)+", README.read_text(), re.MULTILINE)
    lines = [line.strip().split("  #")[0] for block in blocks for line in block.splitlines()]
    # The largest and those that write are run by the demo.
    left_out = ("720x720", "wafertlm report", "wafertlm calibrate", "wafertlm replay", "--noc rtl")
    return [
        line
        for line in lines
        if line.startswith("wafertlm ") and not any(part in line for part in left_out)
    ]


@pytest.mark.parametrize("line", commands())
def test_commands_run(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out
