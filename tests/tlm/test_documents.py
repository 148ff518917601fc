"""The examples in the documents of the models run as they stand, and print what they say."""

import re
from typing import Any

import pytest

from tlm.calibrated import REPOSITORY


@pytest.mark.parametrize(("page", "count"), [("models.md", 2), ("tlm2.md", 2)])
def test_the_examples_run(page: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "docs" / page).read_text()
    examples = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)*)", text)
    assert len(examples) == count
    names: dict[str, Any] = {}  # a later one may use what an earlier one has made
    for code, shown in examples:
        exec(compile(code, f"docs/{page}", "exec"), names)
        expected = "".join(line[4:] + "\n" for line in shown.splitlines())
        assert capsys.readouterr().out == expected
