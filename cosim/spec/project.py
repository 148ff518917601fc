"""The project's mesh: its parameters, and described as a user would describe a custom one."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from cosim.spec.mesh import MeshSpec
from cosim.verilog import NOC_SOURCES, default_parameters, parameter_name
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.zero_load import NocTiming

#: Parameters that a specification gives; sizes are the mesh's own matter.
_GIVEN = ("FifoDepth", "OutputDepth", "Stages", "YFirst", "Loopback", "ReduceStages")
#: Features, each of which a mesh has unless it is said to be without.
_FEATURES = ("Multicast", "Reduction", "CutThrough")


#: What rtl/noc/mesh.sv itself says; this is what experiments measure.
_DEFAULTS = default_parameters(NOC_SOURCES[-1])


@dataclass(frozen=True, slots=True)
class MeshParameters:
    """A mesh of ``rows`` x ``cols`` routers with buffers of ``fifo_depth`` flits.

    The other fields are parameters of rtl/noc/mesh.sv, too, whose values there are the defaults.
    """

    rows: int
    cols: int
    fifo_depth: int = _DEFAULTS["FifoDepth"]
    output_depth: int = _DEFAULTS["OutputDepth"]
    stages: int = _DEFAULTS["Stages"]
    y_first: bool = bool(_DEFAULTS["YFirst"])
    multicast: bool = bool(_DEFAULTS["Multicast"])
    reduction: bool = bool(_DEFAULTS["Reduction"])
    cut_through: bool = bool(_DEFAULTS["CutThrough"])
    loopback: bool = bool(_DEFAULTS["Loopback"])
    reduce_stages: int = _DEFAULTS["ReduceStages"]

    def parameters(self) -> dict[str, int]:
        """Values of the Verilog's parameters."""
        names = [field.name for field in fields(MeshParameters)]
        return {parameter_name(name): int(getattr(self, name)) for name in names}


def mesh_timing(mesh: MeshParameters) -> NocTiming:
    """Timing of a mesh of any form: what was measured, and what its parameters add by themselves.

    Measured are routers as rtl/noc/mesh.sv has them. Each stage more and an output buffer hold a
    flit for a cycle, on each hop and on the way out to the tile; a full multicast packet goes
    earlier by the room in an output buffer.

    Raises:
        InputError: if a measurement is missing or stale.
    """
    measured = rtl_timing()
    shipped = MeshParameters(mesh.rows, mesh.cols)
    more_cycles = mesh.stages - shipped.stages
    more_cycles += int(mesh.output_depth > 0) - int(shipped.output_depth > 0)
    more_room = mesh.output_depth - shipped.output_depth
    return replace(
        measured,
        hop_cycles=measured.hop_cycles + more_cycles,
        ejection_cycles=measured.ejection_cycles + more_cycles,
        fifo_depth=mesh.fifo_depth,
        multicast_gap_cycles=max(measured.multicast_gap_cycles + more_cycles - more_room, 0),
        output_depth=mesh.output_depth,
        reduce_cycles=mesh.reduce_stages,
        y_first=mesh.y_first,
        cut_through=mesh.cut_through,
        loopback=mesh.loopback,
    )


def project_spec(mesh: MeshParameters, sizes: Sequence[tuple[int, int]] = ((3, 4),)) -> MeshSpec:
    """The specification of a mesh of rtl/noc; its fields stand in rtl/noc/noc_pkg.sv.

    Args:
        mesh: Its parameters.
        sizes: Rows and columns on which a calibration fits, then those of its checks. Any size can
            be built.
    """
    fit, *check = (f"{rows}x{cols}" for rows, cols in sizes)
    folder, values = NOC_SOURCES[0].parent, mesh.parameters()
    without = [name for name in _FEATURES if not values[name]]
    # Without cut-through packets are of any length; else a whole one has to fit.
    bound = mesh.fifo_depth if mesh.cut_through else None
    spec = MeshSpec.model_validate(
        {
            "name": "rtl-mesh",
            "rtl": {
                "top": "mesh",
                "sources": [path.name for path in NOC_SOURCES],
                "parameters": {name: values[name] for name in (*_GIVEN, *without)},
                "payload_parameter": "PayloadWidth",
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
            "flit": _flit(mesh),
            "features": {
                "multicast": "bitmask" if mesh.multicast else None,
                "reduction": "bitmask" if mesh.reduction else None,
            },
            # Operands may come from all sides.
            "limits": {
                "multicast_flits": bound,
                "reduction_flits": bound,
                "reduction_operands": 5,
            },
        }
    )
    spec._file = folder / "mesh.sv"
    return spec


def _flit(mesh: MeshParameters) -> list[dict[str, Any]]:
    """Fields of a flit; one that no feature of the mesh reads has no bits."""
    fields: list[dict[str, Any]] = [
        {"field": "payload", "bits": 64},
        {"field": "col", "bits": "col_index"},
        {"field": "row", "bits": "row_index"},
    ]
    if mesh.multicast or mesh.reduction:
        fields += [{"field": "col_mask", "bits": "cols"}, {"field": "row_mask", "bits": "rows"}]
        if mesh.cut_through:
            fields += [{"field": "length", "bits": mesh.fifo_depth.bit_length()}]
        # From the low end a bit each: maximum and reduce, multicast.
        codes = {"unicast": 0} | ({"sum": 2, "maximum": 3} if mesh.reduction else {})
        bits = 2 * mesh.reduction
        if mesh.multicast:
            codes, bits = codes | {"multicast": 1 << bits}, bits + 1
        fields += [{"field": "operation", "bits": bits, "values": codes}]
    return [*fields, {"field": "last", "bits": 1}]
