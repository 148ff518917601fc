"""The examples in the document of the models run as they stand, and print what it says."""

import re

import pytest

from tlm.calibrated import REPOSITORY


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "docs" / "models.md").read_text()
    examples = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)*)", text)
    assert len(examples) == 2
    for code, shown in examples:
        exec(compile(code, "docs/models.md", "exec"), {})
        expected = "".join(line[4:] + "\n" for line in shown.splitlines())
        assert capsys.readouterr().out == expected
