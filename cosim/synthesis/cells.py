"""Cells of a module of Verilog, and the longest path through them.

A logic gate counts by its transistors in static CMOS, in units of a NAND2's four; a flip-flop is a
plain one, and what enables and resets it counts as gates. A latch counts as a flip-flop. There is
no library, layout or clock behind these figures: they compare variants. A library of cells, if one
is given, gives their area beside them: what the same logic takes when it is mapped to its cells.
"""

import json
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from cosim.synthesis.yosys import ToolError, run_yosys
from tlm.tables import Table

#: Flip-flops and latches, and what resets them as the gate that a synchronous reset is.
_STATE = {"$_DFF_P_": 0, "$_DFF_PN0_": 6, "$_DFF_PN1_": 6, "$_DLATCH_P_": 0}
_TRANSISTORS = {
    "$_NOT_": 2, "$_NAND_": 4, "$_NOR_": 4, "$_AOI3_": 6, "$_OAI3_": 6, "$_AOI4_": 8, "$_OAI4_": 8,
    "$_NMUX_": 10, "$_MUX_": 12, "$_XOR_": 12, "$_XNOR_": 12, **_STATE,
}  # fmt: skip
_NAND2_TRANSISTORS = 4
_LIBRARY = "cells.lib"


class Cost(Table):
    """What a module is made of: NAND2 equivalents of its logic, and flip-flops."""

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
        area_um2: What it takes of a library's cells; None without one.
    """

    cost: Cost
    cells: int
    longest_path_cells: int
    output: str
    area_um2: float | None = None


def synthesised(
    read: str,
    top: str,
    scratch: Path,
    *,
    user: Path | None = None,
    beside: Collection[str] = (),
    liberty: Path | None = None,
) -> Synthesised:
    """Synthesise a module, its hierarchy dissolved.

    Args:
        read: The command of Yosys that reads it.
        top: Its name.
        scratch: A folder for what Yosys writes.
        user: The folder ``/user`` of `run_yosys`.
        beside: Modules that are not among the cells; what reads has not read their contents.
        liberty: A library of cells in Liberty's format, areas in um2.

    Raises:
        ToolError: if it cannot be synthesised, or the library lacks a cell that it needs.
    """
    # Nothing goes on through what is not synthesised here.
    alone = [f"delete t:{module}" for module in ("$scopeinfo", *beside)]
    output = run_yosys(
        [
            read,
            f"synth -noabc -flatten -top {top}",
            "setattr -unset init w:*",
            f"dfflegalize {' '.join(f'-cell {cell} x' for cell in _STATE)}",
            "opt -nodffe -nosdff",
            "design -save logic",
            "abc -g cmos",
            "opt_clean",
            *alone,
            "tee -q -o /scratch/path.txt ltp -noff",
            "tee -q -o /scratch/cells.json stat -json",
            *(() if liberty is None else _mapped(liberty, scratch, alone)),
        ],
        scratch,
        user,
    )
    cells = json.loads((scratch / "cells.json").read_text())["design"]["num_cells_by_type"]
    paths = re.findall(r"\(length=(\d+)\)", (scratch / "path.txt").read_text())
    return Synthesised(
        _cost(cells),
        sum(cells.values()),
        max(map(int, paths), default=0),
        output,
        None if liberty is None else _area_um2(scratch),
    )


def _mapped(liberty: Path, scratch: Path, alone: Collection[str]) -> list[str]:
    """The commands that map the logic to a library's cells, and add up their areas."""
    shutil.copyfile(liberty, scratch / _LIBRARY)
    library = f"-liberty /scratch/{_LIBRARY}"
    return [
        "design -load logic",
        f"dfflibmap {library}",
        f"abc {library}",
        "opt_clean",
        *alone,
        f"tee -q -o /scratch/area.json stat {library} -json",
    ]


def _area_um2(scratch: Path) -> float:
    (scratch / _LIBRARY).unlink()  # as large as it may be, it is kept where the user has it
    return float(json.loads((scratch / "area.json").read_text())["design"]["area"])


def _cost(cells: Mapping[str, int]) -> Cost:
    if unknown := sorted(cells.keys() - _TRANSISTORS.keys()):
        raise ToolError(f"cells of unknown cost: {', '.join(unknown)}")
    transistors = sum(count * _TRANSISTORS[cell] for cell, count in cells.items())
    return Cost(
        nand2=round(transistors / _NAND2_TRANSISTORS),
        flip_flops=sum(cells.get(cell, 0) for cell in _STATE),
    )
