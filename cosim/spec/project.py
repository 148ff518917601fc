"""The project's mesh: its parameters, and described as a user would describe a custom one."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from cosim.spec.mesh import MeshSpec
from cosim.verilog import NOC_SOURCES, parameter_name
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.zero_load import NocTiming

#: Parameters that a specification gives; sizes are the mesh's own matter.
_GIVEN = ("FifoDepth", "OutputDepth", "Stages", "YFirst", "Loopback", "ReduceStages")


@dataclass(frozen=True, slots=True)
class MeshParameters:
    """A mesh of ``rows`` x ``cols`` routers with buffers of ``fifo_depth`` flits.

    The other fields are parameters of rtl/noc/mesh.sv, too.
    """

    rows: int
    cols: int
    fifo_depth: int
    output_depth: int = 0
    stages: int = 1
    y_first: bool = False
    multicast: bool = True
    reduction: bool = True
    cut_through: bool = True
    loopback: bool = True
    reduce_stages: int = 1

    def parameters(self) -> dict[str, int]:
        """Values of the Verilog's parameters."""
        names = [field.name for field in fields(MeshParameters)]
        return {parameter_name(name): int(getattr(self, name)) for name in names}


def mesh_timing(mesh: MeshParameters) -> NocTiming:
    """Timing of a mesh of any form: what was measured, and what its parameters add by themselves.

    Measured are routers of one stage without output buffers. Each stage more and an output buffer
    hold every flit for a cycle, on each hop and on the way out to the tile; a full multicast packet
    goes earlier by the room in an output buffer.

    Raises:
        InputError: if a measurement is missing or stale.
    """
    measured = rtl_timing()
    more_cycles = mesh.stages - 1 + int(mesh.output_depth > 0)
    return replace(
        measured,
        hop_cycles=measured.hop_cycles + more_cycles,
        ejection_cycles=measured.ejection_cycles + more_cycles,
        fifo_depth=mesh.fifo_depth,
        multicast_gap_cycles=max(
            measured.multicast_gap_cycles + more_cycles - mesh.output_depth, 0
        ),
        output_depth=mesh.output_depth,
        reduce_cycles=mesh.reduce_stages,
        y_first=mesh.y_first,
        cut_through=mesh.cut_through,
        loopback=mesh.loopback,
    )


def project_spec(mesh: MeshParameters, sizes: Sequence[tuple[int, int]] = ((3, 4),)) -> MeshSpec:
    """The specification of a mesh of rtl/noc; its fields stand in rtl/noc/noc_pkg.sv.

    Args:
        mesh: Its parameters; with multicast, reduction and cut-through.
        sizes: Rows and columns on which a calibration fits, then those of its checks. Any size can
            be built.
    """
    fit, *check = (f"{rows}x{cols}" for rows, cols in sizes)
    folder = NOC_SOURCES[0].parent
    fields: list[dict[str, Any]] = [
        {"field": "payload", "bits": 64},
        {"field": "col", "bits": "col_index"},
        {"field": "row", "bits": "row_index"},
        {"field": "col_mask", "bits": "cols"},
        {"field": "row_mask", "bits": "rows"},
        {"field": "length", "bits": mesh.fifo_depth.bit_length()},
        # Maximum, reduce, multicast: a bit each.
        {
            "field": "operation",
            "bits": 3,
            "values": {"unicast": 0, "multicast": 4, "sum": 2, "maximum": 3},
        },
        {"field": "last", "bits": 1},
    ]
    spec = MeshSpec.model_validate(
        {
            "name": "rtl-mesh",
            "rtl": {
                "top": "mesh",
                "sources": [path.name for path in NOC_SOURCES],
                "parameters": {name: mesh.parameters()[name] for name in _GIVEN},
            },
            "mesh": {
                "rows_parameter": "Rows",
                "cols_parameter": "Cols",
                "fit": fit,
                "check": check,
            },
            "clock": {"port": "clk_i"},
            "reset": {"port": "rst_ni", "active": "low"},
            "ports": {
                "inject_valid": "inject_valid_i",
                "inject_ready": "inject_ready_o",
                "inject_flit": "inject_flit_i",
                "eject_valid": "eject_valid_o",
                "eject_ready": "eject_ready_i",
                "eject_flit": "eject_flit_o",
            },
            "flit": fields,
            "features": {"multicast": "bitmask", "reduction": "bitmask"},
            # A whole packet has to fit; operands may come from all sides.
            "limits": {
                "multicast_flits": mesh.fifo_depth,
                "reduction_flits": mesh.fifo_depth,
                "reduction_operands": 5,
            },
        }
    )
    spec._file = folder / "mesh.sv"
    return spec
