"""Commands in the documents of studies print what stands below them."""

import json
import re
import shlex

import pytest

from tests.conftest import Wafertlm
from tests.documents import assert_near, text_of

_COMPARED = re.compile(r"```text\nwafertlm (compare .*?)\n```\n\n((?: {4}.*\n)+)")
_ROW = re.compile(r"^ *│ *([\w.]+) .*│$", re.MULTILINE)
_MODES = re.compile(r"^\| `(perf|lt|at)`, `(perf|at)` \| ([\d,]+) \|", re.MULTILINE)


def rows(table: str) -> dict[str, str]:
    """Lines of a printed table by their figures."""
    return {found[1]: found[0] for found in _ROW.finditer(table)}


@pytest.mark.slow  # half a minute each
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        pytest.param(*each, id=each[0][:17])
        for each in _COMPARED.findall(text_of("flatattention.md"))
    ],
)
def test_comparisons_on_the_wafer(line: str, shown: str, wafertlm: Wafertlm) -> None:
    """The document shows some of the figures."""
    printed, wanted = rows(wafertlm(*shlex.split(line)).stdout), rows(shown)
    assert wanted
    for figure, row in wanted.items():
        assert_near(printed[figure], row)


def test_modes_of_a_prompt(wafertlm: Wafertlm) -> None:
    """Cycles with formulas, programs, every packet and every DRAM command."""
    text = text_of("npusim.md")
    [line] = re.findall(r"```text\nwafertlm (iteration .*?) --noc at --memory at\n```", text)
    modes = _MODES.findall(text)
    assert len(modes) == 4
    for noc, memory, shown in modes:
        ran = wafertlm(*shlex.split(line), "--noc", noc, "--memory", memory, "--json")
        cycles = json.loads(ran.stdout)["cycles"]
        assert cycles == pytest.approx(int(shown.replace(",", "")), rel=0.005)
