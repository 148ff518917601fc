"""Parameters of the network: what is legal is lint-clean, what is not does not elaborate."""

import subprocess

import pytest

from cosim.verilog import NOC_SOURCES
from tests.verilog_lint import lint

pytestmark = pytest.mark.rtl

CORNERS: list[dict[str, int]] = [
    {"Rows": 1, "Cols": 1},
    {"Rows": 1, "Cols": 3, "YFirst": 1},
    {"Rows": 3, "Cols": 1, "Loopback": 0},
    {"FifoDepth": 2, "OutputDepth": 2, "Stages": 2},
    {"FifoDepth": 7, "OutputDepth": 3, "ReduceStages": 0},
    {"PayloadWidth": 1, "ElementWidth": 1, "ReduceStages": 3},
    {"PayloadWidth": 24, "ElementWidth": 24, "Multicast": 0},
    {"Reduction": 0, "CutThrough": 0, "Stages": 2},
    {"Multicast": 0, "Reduction": 0, "PayloadWidth": 1},
]


def lint_noc(top: str, parameters: dict[str, int]) -> subprocess.CompletedProcess[str]:
    # A small mesh has every parameter that a large one has; `make lint` reads that of the defaults.
    if top == "mesh":
        parameters = {"Rows": 2, "Cols": 2} | parameters
    sources = (path for path in NOC_SOURCES if top == "mesh" or path.stem != "mesh")
    return lint(top, (NOC_SOURCES[0].with_name("noc.vlt"), *sources), **parameters)


@pytest.mark.parametrize("parameters", CORNERS, ids=str)
@pytest.mark.parametrize("top", ["mesh", "router"])
def test_legal_parameters_are_lint_clean(top: str, parameters: dict[str, int]) -> None:
    outcome = lint_noc(top, parameters)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("Rows", 0, "mesh: Rows and Cols are 0 and 2, must be at least 1"),
        ("FifoDepth", 1, "Depth is 1, must be at least 2"),
        ("OutputDepth", 1, "output_port: OutputDepth is 1, must be 0 or at least 2"),
        ("Stages", 3, "input_port: Stages is 3, must be 1 or 2"),
        (
            "YFirst",
            2,
            "router: YFirst, Multicast, Reduction, CutThrough and Loopback must be 0 or 1",
        ),
        ("ElementWidth", 24, "reduce_unit: ElementWidth is 24, must divide PayloadWidth, 64"),
        ("ReduceStages", -1, "reduce_unit: ReduceStages is -1, must be at least 0"),
    ],
)
def test_illegal_parameters_do_not_elaborate(name: str, value: int, rule: str) -> None:
    outcome = lint_noc("mesh", {name: value})
    assert outcome.returncode != 0
    assert rule in outcome.stderr
