"""The document of chips and models of one's own: what it runs prints what it says."""

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import Wafertlm
from tlm.calibrated import REPOSITORY

_TEXT = (REPOSITORY / "docs" / "custom_chips.md").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"^```console\n(.*?)^```", _TEXT, re.MULTILINE | re.DOTALL)


def _pattern(shown: str) -> str:
    """What is shown, three dots standing for anything."""
    return ".*".join(re.escape(part) for part in shown.rstrip("\n").split("..."))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of which the document tells."""
    [config] = re.findall(r"^```json\n(.*?)^```", _TEXT, re.MULTILINE | re.DOTALL)
    for name, text in (("tiny", config), ("other", '{"model_type": "mamba"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", _BLOCKS)
def test_commands_print_what_is_shown(block: str, folder: Path, wafertlm: Wafertlm) -> None:
    for command, shown in re.findall(r"^\$ wafertlm (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        line, _, file = command.partition(" > ")
        ran = wafertlm(*shlex.split(line))
        if file:
            (folder / file).write_text(ran.stdout)
            continue
        assert re.fullmatch(_pattern(shown), (ran.stdout + ran.stderr).rstrip("\n"), re.DOTALL)
        assert ran.status == (2 if shown.startswith("error") else 0)


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    [(code, shown)] = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)*)", _TEXT)
    exec(compile(code, "docs/custom_chips.md", "exec"), {})
    assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in shown.splitlines())
