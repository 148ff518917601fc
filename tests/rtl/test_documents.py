"""The examples in the documents of the Verilog run as they stand."""

import re

import pytest

from tlm.calibrated import REPOSITORY

pytestmark = [pytest.mark.rtl, pytest.mark.slow]


@pytest.mark.parametrize(
    "document", ["rtl/README.md", "rtl/memory/README.md", "rtl/tile/README.md"]
)
def test_examples_run(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", (REPOSITORY / document).read_text(), re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, document, "exec"), {})
    assert capsys.readouterr().out
