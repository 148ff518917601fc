"""A mesh in a size: its flits, and the module that stands between it and what drives it."""

from dataclasses import dataclass

from cosim.spec.header import FlitLayout
from cosim.spec.mesh import MeshSpec


@dataclass(frozen=True, slots=True)
class SizedMesh:
    """A mesh of ``rows`` x ``cols`` nodes of which the specification alone is known."""

    spec: MeshSpec
    rows: int
    cols: int

    def __post_init__(self) -> None:
        self.spec.check_size(self.rows, self.cols)

    @property
    def name(self) -> str:
        """The mesh and its size, for messages."""
        return f"{self.spec.name} {self.rows}x{self.cols}"

    def layout(self) -> FlitLayout:
        """Its flits."""
        return FlitLayout(self.spec, self.rows, self.cols)

    def adapter(self) -> str:
        """The module ``blackbox_dut``: the mesh behind ports of our names."""
        spec, rows, cols, width = self.spec, self.rows, self.cols, self.layout().width
        nodes, ports = rows * cols, spec.ports
        parameters = dict(spec.rtl.parameters)
        if spec.mesh.rows_parameter and spec.mesh.cols_parameter:
            parameters |= {spec.mesh.rows_parameter: rows, spec.mesh.cols_parameter: cols}
        values = ", ".join(f".{name}({value})" for name, value in parameters.items())
        reset = "rst_ni" if spec.reset.active == "low" else "!rst_ni"
        # Port here, port of the mesh, direction here, bits.
        table = [
            ("inject_valid_i", ports.inject_valid, "input", nodes),
            ("inject_ready_o", ports.inject_ready, "output", nodes),
            ("inject_flit_i", ports.inject_flit, "input", nodes * width),
            ("eject_valid_o", ports.eject_valid, "output", nodes),
            ("eject_ready_i", ports.eject_ready, "input", nodes),
            ("eject_flit_o", ports.eject_flit, "output", nodes * width),
        ]
        lines = [
            # Nothing of the specification's names: what is the same Verilog is the same model.
            f"// Joins a mesh to the bench; {rows} x {cols} nodes, flits of {width} bits.",
            "module blackbox_dut (",
            "  input logic clk_i,",
            "  input logic rst_ni,",
            ",\n".join(f"  {way} logic [{bits - 1}:0] {here}" for here, _, way, bits in table),
            ");",
            f"  {spec.rtl.top} {f'#({values}) ' if values else ''}u_mesh (",
            f"    .{spec.clock.port}(clk_i),",
            f"    .{spec.reset.port}({reset}),",
            ",\n".join(f"    .{there}({here})" for here, there, _, _ in table),
            "  );",
        ]
        # Where the specification lets warnings pass, a flit of another width must not.
        lines += [
            f"  initial if ($bits(u_mesh.{there}) != {bits})\n"
            f'    $fatal(1, "{there}: found %0d bits; by the specification: {bits}", '
            f"$bits(u_mesh.{there}));"
            for _, there, _, bits in table
        ]
        return "\n".join([*lines, "endmodule", ""])
