"""Parameters of the memory channel: what is legal is lint-clean, what is not does not elaborate."""

import pytest

from calibration.memory.cases import HBM2, SMALL
from cosim.verilog import MEMORY_SOURCES
from tests.verilog_lint import lint

pytestmark = pytest.mark.rtl


@pytest.mark.parametrize(
    "parameters", [{}, HBM2.parameters(), SMALL.parameters()], ids=["defaults", "hbm2", "small"]
)
def test_sources_are_lint_clean(parameters: dict[str, int]) -> None:
    outcome = lint("memory_channel", MEMORY_SOURCES, **parameters)
    assert outcome.returncode == 0, outcome.stderr


def test_the_python_defaults_are_those_of_the_verilog() -> None:
    text = next(path for path in MEMORY_SOURCES if path.stem == "memory_channel").read_text()
    # A simulation has fewer rows than the device; nothing else differs.
    for name, value in (HBM2.parameters() | {"RowWidth": 14}).items():
        assert f"  parameter int {name} = {value}," in text


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("BankGroups", 3, "BankGroups must be a power of two, 2 to 16"),
        ("BanksPerGroup", 32, "BanksPerGroup must be a power of two, 2 to 16"),
        ("RowWidth", 19, "RowWidth must be 1 to 18, ColWidth 1 to 10"),
        ("TRp", 0, "times must be at least 1 cycle"),
        ("TRfc", 5000, "times but TRefi must be at most 4095 cycles"),
        ("TRc", 34, "TRc must be at least TRas"),
        ("Bl", 3, "TCcdS, TRtw and TWtrS must keep two bursts from the bus at once"),
        ("TRtw", 10, "TCcdS, TRtw and TWtrS must keep two bursts from the bus at once"),
        ("TRefi", 473, "TRefi must be at most 65535, and leave time to close rows and refresh"),
    ],
)
def test_illegal_parameters_do_not_elaborate(name: str, value: int, rule: str) -> None:
    outcome = lint("memory_channel", MEMORY_SOURCES, **{name: value})
    assert outcome.returncode != 0
    assert f"memory_channel: {rule}" in outcome.stderr


def test_the_least_refresh_interval_elaborates() -> None:
    assert lint("memory_channel", MEMORY_SOURCES, TRefi=474).returncode == 0
