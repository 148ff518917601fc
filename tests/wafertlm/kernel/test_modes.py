"""The documents' tables of kernels with parts in Verilog are what the command says."""

import json
import re
from typing import Any

import pytest

from tlm.calibrated import REPOSITORY

_ROW = re.compile(r"\| `([\w-]+)`(?:, `(\w+)`,)? ([\d,]+) \| (\d+x\d+) \| ([\d,]+) \| ([\d,]+) \|")
_PARTS = (("--noc", "rtl"), ("--compute", "rtl"), ("--noc", "rtl", "--compute", "rtl"))
_CHANNELS = (("--memory", "rtl"), ("--memory", "rtl", "--noc", "rtl"))


def rows(document: str) -> list[tuple[str, ...]]:
    """Kernel, schedule if any, shape, grid, and cycles of tiles in Verilog and at level `at`."""
    return _ROW.findall((REPOSITORY / "docs" / document).read_text())


def cycles(wafertlm: Any, kernel: str, schedule: str, shape: str, grid: str, *options: str) -> int:
    fixed = ("--chip", f"rtl-{grid}", "--grid", grid, "--shape", shape, "--dtype", "int8")
    if schedule:
        options = (*options, "--schedule", schedule)
    ran = wafertlm("kernel", kernel, *fixed, *options, "--allow-stale", "--json")
    assert ran.status == 0, ran.stderr
    return int(json.loads(ran.stdout)["cycles"])


@pytest.mark.parametrize("row", rows("rtl_in_the_loop.md"), ids="-".join)
def test_level_at_takes_the_cycles_of_the_table(wafertlm: Any, row: tuple[str, ...]) -> None:
    *case, _, at = row
    assert cycles(wafertlm, *case, "--level", "at") == int(at)


@pytest.mark.rtl
@pytest.mark.slow  # tiles and meshes of many sizes are built
@pytest.mark.parametrize("row", rows("rtl_in_the_loop.md"), ids="-".join)
def test_parts_in_verilog_take_the_cycles_of_the_table(wafertlm: Any, row: tuple[str, ...]) -> None:
    *case, rtl, at = row
    assert cycles(wafertlm, *case, "--level", "rtl") == int(rtl)
    for parts in _PARTS:
        assert cycles(wafertlm, *case, "--level", "at", *parts) == int(at)


@pytest.mark.parametrize("row", rows("offchip.md"), ids="-".join)
def test_modelled_channels_take_the_cycles_of_the_table(
    wafertlm: Any, row: tuple[str, ...]
) -> None:
    *case, _, at = row
    modelled = cycles(wafertlm, *case, "--level", "at", "--memory", "at")
    assert modelled == int(at.replace(",", ""))


@pytest.mark.rtl
@pytest.mark.slow  # tiles and meshes of many sizes are built
@pytest.mark.parametrize("row", rows("offchip.md"), ids="-".join)
def test_channels_beside_tiles_take_the_cycles_of_the_table(
    wafertlm: Any, row: tuple[str, ...]
) -> None:
    *case, rtl, at = row
    verilog = cycles(wafertlm, *case, "--level", "rtl", "--memory", "rtl")
    assert verilog == int(rtl.replace(",", ""))
    for parts in _CHANNELS:
        assert cycles(wafertlm, *case, "--level", "at", *parts) == int(at.replace(",", ""))


def test_there_are_such_tables() -> None:
    assert len(rows("rtl_in_the_loop.md")) == 8
    assert len(rows("offchip.md")) == 16
