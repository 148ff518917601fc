"""Cells of a module of Verilog, and the longest path through them.

A logic gate counts by its transistors in static CMOS, in units of a NAND2's four; a flip-flop is a
plain one, and what enables and resets it counts as gates. There is no library, layout or clock
behind these figures: they compare variants.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from cosim.synthesis.yosys import ToolError, run_yosys

_FLIP_FLOP = "$_DFF_P_"
_TRANSISTORS = {
    "$_NOT_": 2, "$_NAND_": 4, "$_NOR_": 4, "$_AOI3_": 6, "$_OAI3_": 6, "$_AOI4_": 8, "$_OAI4_": 8,
    "$_NMUX_": 10, "$_MUX_": 12, "$_XOR_": 12, "$_XNOR_": 12,
}  # fmt: skip
_NAND2_TRANSISTORS = 4


class Cost(BaseModel):
    """What a module is made of: NAND2 equivalents of its logic, and flip-flops."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nand2: int
    flip_flops: int


@dataclass(frozen=True, slots=True)
class Synthesised:
    """A module made of gates.

    Attributes:
        cost: What it is made of.
        cells: Logic gates of any kind and flip-flops.
        longest_path_cells: Gates on the longest path that goes through no flip-flop.
        output: What Yosys printed before it mapped to gates.
    """

    cost: Cost
    cells: int
    longest_path_cells: int
    output: str


def synthesised(
    read: str, top: str, scratch: Path, *, user: Path | None = None, beside: Collection[str] = ()
) -> Synthesised:
    """Synthesise a module, its hierarchy dissolved.

    Args:
        read: The command of Yosys that reads it.
        top: Its name.
        scratch: A folder for what Yosys writes.
        user: The folder ``/user`` of `run_yosys`.
        beside: Modules that are not among the cells; what reads has not read their contents.

    Raises:
        ToolError: if it cannot be synthesised.
    """
    output = run_yosys(
        [
            read,
            f"synth -noabc -flatten -top {top}",
            f"dfflegalize -cell {_FLIP_FLOP} x",
            "opt -nodffe -nosdff",
            "abc -g cmos",
            "opt_clean",
            "tee -q -o /scratch/path.txt ltp -noff",
            "tee -q -o /scratch/cells.json stat -json",
        ],
        scratch,
        user,
    )
    found = json.loads((scratch / "cells.json").read_text())["design"]["num_cells_by_type"]
    cells = {cell: count for cell, count in found.items() if cell not in beside}
    paths = re.findall(r"\(length=(\d+)\)", (scratch / "path.txt").read_text())
    return Synthesised(_cost(cells), sum(cells.values()), max(map(int, paths), default=0), output)


def _cost(cells: Mapping[str, int]) -> Cost:
    unknown = sorted(set(cells) - set(_TRANSISTORS) - {_FLIP_FLOP})
    if unknown:
        raise ToolError(f"cells of unknown cost: {', '.join(unknown)}")
    transistors = sum(count * _TRANSISTORS.get(cell, 0) for cell, count in cells.items())
    return Cost(nand2=round(transistors / _NAND2_TRANSISTORS), flip_flops=cells.get(_FLIP_FLOP, 0))
