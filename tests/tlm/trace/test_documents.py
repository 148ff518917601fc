"""The examples in the documents of checks and traces run as they stand."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", ["check.md", "traces.md"])
def test_the_example_prints_what_the_document_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ((code, shown),) = re.findall(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", (DOCS / name).read_text(), re.DOTALL
    )
    exec(compile(code, name, "exec"), {})
    assert capsys.readouterr().out == shown
