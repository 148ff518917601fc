"""Gates of a mesh's routers: what is counted, of which Verilog, and only once."""

from pathlib import Path
from typing import Any

import pytest

from cosim.errors import SimulationError
from cosim.spec.mesh import MeshSpec, load_spec
from cosim.spec.project import MeshParameters, project_spec
from cosim.synthesis import cells
from cosim.synthesis.mesh import mesh_gates
from cosim.synthesis.yosys import ToolError
from verification.gates import StoredGates

#: Nodes of two registers, one in a module and one beside it, in a module that the top is around.
_VERILOG = """
module node #(parameter int Width = 1) (
  input logic clk, input logic [Width-1:0] d, output logic [Width-1:0] q
);
  always_ff @(posedge clk) q <= d;
endmodule
module inner #(parameter int Rows = 3, parameter int Cols = 4, parameter int Width = 72) (
  input logic clk, input logic rst_n,
  input logic [Rows*Cols*Width-1:0] d, output logic [Rows*Cols*Width-1:0] q
);
  for (genvar n = 0; n < Rows * Cols; n++) begin : gen_node
    logic [Width-1:0] between;
    node #(.Width(Width)) u_node (.clk, .d(d[n*Width +: Width]), .q(between));
    always_ff @(posedge clk or negedge rst_n) begin
      if (!rst_n) q[n*Width +: Width] <= '0;
      else q[n*Width +: Width] <= between;
    end
  end
endmodule
module outer #(parameter int Rows = 3, parameter int Cols = 4, parameter int Payload = 64) (
  input logic clk, input logic rst_n,
  input logic [Rows*Cols-1:0] iv, output logic [Rows*Cols-1:0] ir,
  input logic [Rows*Cols*(Payload+8)-1:0] d,
  output logic [Rows*Cols-1:0] ov, input logic [Rows*Cols-1:0] er,
  output logic [Rows*Cols*(Payload+8)-1:0] q
);
  inner #(.Rows(Rows), .Cols(Cols), .Width(Payload + 8)) u_inner (.clk, .rst_n, .d, .q);
  assign ir = er;
  assign ov = iv;
endmodule
"""
_SPEC = """
name = "outer"
rtl = { top = "outer", sources = ["outer.sv"], payload_parameter = "Payload" }
mesh = { rows_parameter = "Rows", cols_parameter = "Cols", fit = "3x4", check = [] }
clock = { port = "clk" }
reset = { port = "rst_n", active = "low" }
flit = [
  { field = "last", bits = 1 }, { field = "constant", bits = 1, value = 0 },
  { field = "row", bits = 3 }, { field = "col", bits = 3 }, { field = "payload", bits = 64 },
]
[ports]
inject_valid = "iv"
inject_ready = "ir"
inject_flit = "d"
eject_valid = "ov"
eject_ready = "er"
eject_flit = "q"
"""


#: Five cells with areas in um2; less than these ABC does not take.
_LIBERTY = """
library(tiny) {
  cell(BUF) { area: 6; pin(A) { direction: input; }
    pin(Y) { direction: output; function: "A"; } }
  cell(NOT) { area: 3; pin(A) { direction: input; }
    pin(Y) { direction: output; function: "A'"; } }
  cell(NAND) { area: 4; pin(A) { direction: input; } pin(B) { direction: input; }
    pin(Y) { direction: output; function: "(A*B)'"; } }
  cell(NOR) { area: 4; pin(A) { direction: input; } pin(B) { direction: input; }
    pin(Y) { direction: output; function: "(A+B)'"; } }
  cell(DFF) { area: 18; ff("IQ", "IQN") { clocked_on: C; next_state: D; }
    pin(C) { direction: input; clock: true; } pin(D) { direction: input; }
    pin(Q) { direction: output; function: "IQ"; } }
}
"""


def outer(folder: Path, *changes: tuple[str, str]) -> MeshSpec:
    text, spec = _VERILOG, _SPEC
    for old, new in changes:
        assert old in text + spec
        text, spec = text.replace(old, new), spec.replace(old, new)
    (folder / "outer.sv").write_text(text)
    (folder / "outer.toml").write_text(spec)
    return load_spec(folder / "outer.toml")


def unicast(**changed: Any) -> MeshSpec:
    return project_spec(MeshParameters(4, 4, multicast=False, reduction=False, **changed))


def test_a_router_in_its_mesh_costs_what_it_costs_alone() -> None:
    stored = StoredGates.load().costs["unicast only, 32 bits of payload"]
    found = mesh_gates(unicast(), 4, 4, 32)
    assert (found.router.nand2, found.router.flip_flops) == (stored.nand2, stored.flip_flops)
    assert found.router.cells > found.router.flip_flops
    assert found.synthesised_bits == (32,)


def test_deeper_buffers_and_larger_grids_cost_more() -> None:
    small = mesh_gates(unicast(fifo_depth=2), 4, 4, 8).router
    deep = mesh_gates(unicast(fifo_depth=4), 4, 4, 8).router
    large = mesh_gates(unicast(fifo_depth=2), 16, 16, 8).router
    for other in (deep, large):
        assert other.cells > small.cells
        assert other.nand2 > small.nand2
        assert other.flip_flops > small.flip_flops


def test_logic_around_modules_is_shared_by_the_nodes(tmp_path: Path) -> None:
    found = mesh_gates(outer(tmp_path), 5, 6, 64)
    assert (found.rows, found.cols) == (5, 6)
    assert found.router.flip_flops == 2 * 72
    assert found.router.longest_path_cells == 0


def test_wide_payloads_lie_on_a_line(tmp_path: Path) -> None:
    found = mesh_gates(outer(tmp_path), 3, 4, 1024)
    assert found.synthesised_bits == (64, 128)
    assert found.router.flip_flops == 2 * (1024 + 8)


def test_without_a_parameter_payloads_are_as_specified(tmp_path: Path) -> None:
    spec = outer(tmp_path, (', payload_parameter = "Payload"', ""))
    found = mesh_gates(spec, 3, 4, 1024)
    assert (found.payload_bits, found.synthesised_bits) == (64, (64,))


def test_a_mesh_that_cannot_be_so_large_is_that_of_the_fit(tmp_path: Path) -> None:
    found = mesh_gates(outer(tmp_path), 16, 16, 64)  # rows and columns of 3 bits
    assert (found.rows, found.cols) == (3, 4)


def test_gates_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAFERTLM_CACHE", str(tmp_path / "cache"))
    found = mesh_gates(outer(tmp_path), 3, 4, 64)
    calls = []

    def counted(*arguments: object) -> str:
        calls.append(arguments)
        raise ToolError("asked again")

    monkeypatch.setattr(cells, "run_yosys", counted)
    assert mesh_gates(outer(tmp_path, ('name = "outer"', 'name = "other"')), 3, 4, 64) == found
    assert not calls
    for spec, bits in ((outer(tmp_path), 65), (outer(tmp_path, ("q <= d", "q <= ~d")), 64)):
        with pytest.raises(ToolError, match="asked again"):
            mesh_gates(spec, 3, 4, bits)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("q <= d;", "q <= missing;"), SimulationError, "missing"),
        (("q <= d;", "q <= Width'(int'($itor(d) * 0.5));"), ToolError, "line user/outer.sv:5"),
        (("#(parameter int Width = 1", "#(parameter real R = 1.5, parameter int Width = 1"),
         SimulationError, "node: R: found 1.5; allowed: numbers"),
        (("#(parameter int Width = 1", "#(parameter type T = logic, parameter int Width = 1"),
         ToolError, "blackbox cannot have a type parameter"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_told(
    tmp_path: Path, change: tuple[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        mesh_gates(outer(tmp_path, change), 3, 4, 64)


def test_a_library_gives_areas(tmp_path: Path) -> None:
    (tmp_path / "tiny.lib").write_text(_LIBERTY)
    spec = outer(tmp_path, (" or negedge rst_n", ""))
    without = mesh_gates(spec, 3, 4, 64).router
    found = mesh_gates(spec, 3, 4, 64, tmp_path / "tiny.lib").router
    # A bit is two registers, and a NAND and an inverter for the reset of one of them.
    bit_um2 = 2 * 18 + 4 + 3
    assert found.area_um2 == pytest.approx(72 * bit_um2, rel=1e-3)
    assert without.area_um2 is None
    assert found.model_copy(update={"area_um2": None}) == without
    wide = mesh_gates(spec, 3, 4, 1024, tmp_path / "tiny.lib").router
    assert wide.area_um2 == pytest.approx((1024 + 8) * bit_um2, rel=1e-3)


def test_a_library_without_a_cell_that_is_needed_is_told(tmp_path: Path) -> None:
    (tmp_path / "tiny.lib").write_text(_LIBERTY)
    with pytest.raises(ToolError, match=r"\$_DFF_PN0_\) cannot be legalized"):
        mesh_gates(outer(tmp_path), 3, 4, 64, tmp_path / "tiny.lib")


@pytest.mark.slow
@pytest.mark.parametrize(
    "mesh", [unicast(), project_spec(MeshParameters(4, 4))], ids=["unicast", "all"]
)
def test_a_line_through_two_widths_is_near_a_third(
    mesh: MeshSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = mesh_gates(mesh, 4, 4, 256).router
    monkeypatch.setattr("cosim.synthesis.mesh._WIDE_BITS", 256)
    counted = mesh_gates(mesh, 4, 4, 256).router
    assert line.flip_flops == counted.flip_flops
    assert line.nand2 == pytest.approx(counted.nand2, rel=0.03)
