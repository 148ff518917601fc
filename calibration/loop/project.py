"""The project's own mesh, described as its user would describe hers."""

from typing import Any

from calibration.blackbox.spec import MeshSpec
from calibration.harness.mesh import NOC_SOURCES, RtlMesh


def project_spec(mesh: RtlMesh) -> MeshSpec:
    """The specification of a mesh of rtl/noc; its fields stand in rtl/noc/noc_pkg.sv.

    Args:
        mesh: Its size and parameters; with multicast, reduction and cut-through.
    """
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
                "parameters": {
                    "FifoDepth": mesh.fifo_depth,
                    "OutputDepth": mesh.output_depth,
                    "Stages": mesh.stages,
                    "YFirst": int(mesh.y_first),
                    "Loopback": int(mesh.loopback),
                    "ReduceStages": mesh.reduce_stages,
                },
            },
            # Of the sizes that a calibration would take the least: any can be built.
            "mesh": {"rows_parameter": "Rows", "cols_parameter": "Cols", "fit": "3x4", "check": []},
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
        }
    )
    spec._file = folder / "mesh.sv"
    return spec
