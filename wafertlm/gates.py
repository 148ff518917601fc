"""What a router in Verilog costs in gates and switches, alone and as often as a chip has it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cosim.errors import HangError, SimulationError
from cosim.spec.mesh import MeshSpec
from cosim.synthesis.mesh import mesh_gates
from cosim.synthesis.switching import MeshToggles, mesh_toggles
from cosim.synthesis.yosys import ToolError
from tlm.errors import InputError
from wafertlm.output import log

_CHANGE = re.compile(r"([A-Za-z_][A-Za-z0-9_$]*)=([0-9]{1,9})")


def router_gates(
    spec: MeshSpec,
    rows: int,
    cols: int,
    payload_bits: int | None = None,
    *,
    has_toggles: bool = True,
    liberty: Path | None = None,
) -> dict[str, Any]:
    """Gates and toggles of a router, and of a mesh of them.

    Args:
        spec: The routers.
        rows: Rows of the mesh.
        cols: Its columns.
        payload_bits: Bits of a payload; None: as the specification says.
        has_toggles: Whether toggles are counted, too.
        liberty: A library of cells, for areas.

    Returns:
        The record; Verilog that cannot be synthesised is told in its ``finding``.
    """
    told: dict[str, Any] = {"grid": f"{rows}x{cols}"}
    try:
        found = mesh_gates(spec, rows, cols, payload_bits or spec.payload_bits, liberty)
    except (SimulationError, ToolError) as error:
        empty = dict.fromkeys(("payload_bits", "synthesised", "traffic", "router", "chip"))
        return told | empty | {"finding": str(error)}
    switched = _switched(spec) if has_toggles else None
    router = found.router.model_dump()
    router["toggles"] = None if switched is None else switched.router(found.payload_bits)
    return told | {
        "payload_bits": found.payload_bits,
        "synthesised": {
            "grid": f"{found.rows}x{found.cols}",
            "payload_bits": list(found.synthesised_bits),
        },
        "traffic": None if switched is None else list(switched.operations),
        "router": router,
        "chip": _times(router, rows * cols),
        "finding": None,
    }


def changed_parameters(spec: MeshSpec, changes: Sequence[str]) -> dict[str, int]:
    """Parameters of the Verilog that ``--set`` changes.

    Args:
        spec: The routers.
        changes: ``PARAMETER=VALUE``.

    Raises:
        InputError: for another form, and a parameter that the Verilog does not have.
    """
    found = {}
    for change in changes:
        if not (read := _CHANGE.fullmatch(change)):
            raise InputError(f"--set: found '{change}'; write PARAMETER=VALUE, such as FifoDepth=8")
        found[read[1]] = int(read[2])
    elsewhere = {
        spec.rtl.payload_parameter: "--payload-bits",
        spec.mesh.rows_parameter: "--mesh",
        spec.mesh.cols_parameter: "--mesh",
    }
    for name in found:
        if option := elsewhere.get(name):
            raise InputError(f"--set: found '{name}'; allowed: {option}")
    verilog = "".join(path.read_text(errors="replace") for path in spec.source_files())
    for name in found:
        if not re.search(rf"\b{re.escape(name)}\s*=", verilog):
            known = re.findall(r"\bparameter\s+(?:int\s+)?(\w+)\s*=", _text_of_top(spec, verilog))
            raise InputError(f"--set: found '{name}'; allowed: {', '.join(dict.fromkeys(known))}")
    return found


def _text_of_top(spec: MeshSpec, verilog: str) -> str:
    """What stands in the module that is built."""
    return re.split(rf"\bmodule\s+{re.escape(spec.rtl.top)}\b", verilog)[-1].split("endmodule")[0]


def _switched(spec: MeshSpec) -> MeshToggles | None:
    """What a router switches; None, and said, if the mesh does not carry the traffic."""
    try:
        return mesh_toggles(spec)
    except (HangError, SimulationError, InputError) as error:
        log(f"{spec.file.name}: toggles cannot be counted: {error}")
        return None


def _times(router: Mapping[str, Any], nodes: int) -> dict[str, Any]:
    """The figures of so many routers; the longest path is that of one."""
    return {
        name: figure if figure is None or name == "longest_path_cells" else nodes * figure
        for name, figure in router.items()
    }
