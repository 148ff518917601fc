"""The document of serving: its commands run, and its example prints what it says."""

import re
import shlex
from pathlib import Path

import pytest

from tlm.calibrated import REPOSITORY
from wafertlm.asked.serve import known_names
from wafertlm.cli import run
from wafertlm.compare import cases

_TEXT = (REPOSITORY / "docs" / "serving.md").read_text(encoding="utf-8")
_COMMANDS = re.findall(r"^    (wafertlm .*)$", _TEXT, re.MULTILINE)


def _policy() -> str:
    """The example's policy by itself."""
    [imports] = re.findall(r"^from workloads.serving.schedulers import .*$", _TEXT, re.MULTILINE)
    [policy] = re.findall(r"^class PromptsFirst:\n(?:    .*\n|\n(?=    ))+", _TEXT, re.MULTILINE)
    return f"{imports}\n\n\n{policy}"


@pytest.mark.parametrize("line", _COMMANDS)
def test_commands_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cases, "MOST_COST", 300)  # errors of changes, on short cases
    (tmp_path / "prompts_first.py").write_text(_policy())
    assert run(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out
    if "--plot" in line:
        picture = (tmp_path / "serving.png").read_bytes()
        assert picture.startswith(b"\x89PNG")


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    [(code, shown)] = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)*)", _TEXT)
    exec(compile(code, "docs/serving.md", "exec"), {})
    assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in shown.splitlines())


def test_every_scheduler_has_its_row() -> None:
    rows = re.findall(r"^\| `([a-z][a-z-]+)` \|", _TEXT, re.MULTILINE)
    assert sorted(rows) == known_names()["schedulers"]
