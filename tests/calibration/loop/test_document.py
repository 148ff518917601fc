"""The example in the document of RTL in the loop runs as it stands, and prints what it says."""

import re

import pytest

from tlm.calibrated import REPOSITORY


@pytest.mark.rtl
def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "docs" / "rtl_in_the_loop.md").read_text()
    ((code, shown),) = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)*)", text)
    exec(compile(code, "docs/rtl_in_the_loop.md", "exec"), {})
    assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in shown.splitlines())
