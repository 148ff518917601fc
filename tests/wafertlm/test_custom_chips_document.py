"""The document of chips and models of one's own: what it runs prints what it says."""

import re
from pathlib import Path

import pytest

from tests.conftest import Wafertlm
from tests.documents import commands, console_blocks, run_shown, text_of

_TEXT = text_of("custom_chips.md")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of which the document tells."""
    [config] = re.findall(r"^```json\n(.*?)^```", _TEXT, re.MULTILINE | re.DOTALL)
    for name, text in (("tiny", config), ("other", '{"model_type": "mamba"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", console_blocks(_TEXT))
def test_commands_print_what_is_shown(block: str, folder: Path, wafertlm: Wafertlm) -> None:
    for shown in commands(block):
        run_shown(shown, wafertlm)


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    [(code, shown)] = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)*)", _TEXT)
    exec(compile(code, "docs/custom_chips.md", "exec"), {})
    assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in shown.splitlines())
