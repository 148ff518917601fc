"""The project's mesh is described and measured as its Verilog stands."""

from pathlib import Path

from calibration.routers.rtl_mesh import CHECK_MESH, FIT_MESH
from cosim.spec.project import MeshParameters, mesh_timing
from cosim.verilog import NOC_SOURCES, default_parameters
from tlm.interconnect.calibration import rtl_timing


def test_defaults_are_those_of_the_file(tmp_path: Path) -> None:
    source = tmp_path / "mesh.sv"
    source.write_text(
        "module mesh #(\n  /// Flits.\n  parameter int FifoDepth = 8,\n"
        "  parameter int Rows = 4,\n  localparam int Nodes = 16\n) ();\nendmodule\n"
    )
    assert default_parameters(source) == {"FifoDepth": 8, "Rows": 4}


def test_experiments_measure_what_the_verilog_says() -> None:
    said = default_parameters(NOC_SOURCES[-1])
    for mesh in (FIT_MESH, CHECK_MESH, MeshParameters(3, 5)):
        given = mesh.parameters()
        assert {name: said[name] for name in given if name not in ("Rows", "Cols")} == {
            name: value for name, value in given.items() if name not in ("Rows", "Cols")
        }
        assert mesh_timing(mesh) == rtl_timing()
