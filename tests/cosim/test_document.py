"""The examples in the document of RTL in the loop run as they stand, and print what it says."""

import re

import pytest

from tlm.calibrated import REPOSITORY


@pytest.mark.rtl
def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "docs" / "rtl_in_the_loop.md").read_text()
    examples = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)*)", text)
    assert len(examples) == 2
    for code, shown in examples:
        exec(compile(code, "docs/rtl_in_the_loop.md", "exec"), {})
        assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in shown.splitlines())
