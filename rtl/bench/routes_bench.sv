// All routes of a mesh side by side: from each port, by either order of the dimensions, with and
// without loopback; and the ways of a reduction.
module routes_bench #(
  /// Rows of the mesh.
  parameter int Rows = 3,
  /// Columns of the mesh.
  parameter int Cols = 3,
  /// Bits of a row index.
  localparam int RowWidth = noc_pkg::index_width(Rows),
  /// Bits of a column index.
  localparam int ColWidth = noc_pkg::index_width(Cols)
) (
  /// Row of the router.
  input  logic [RowWidth-1:0] at_row_i,
  /// Column of the router.
  input  logic [ColWidth-1:0] at_col_i,
  /// Row of a unicast's destination or a reduction's root.
  input  logic [RowWidth-1:0] row_i,
  /// Its column.
  input  logic [ColWidth-1:0] col_i,
  /// The packet is a multicast.
  input  logic                multicast_i,
  /// Marked rows.
  input  logic [Rows-1:0]     row_mask_i,
  /// Marked columns.
  input  logic [Cols-1:0]     col_mask_i,
  /// Outputs of a packet, five bits each: for port 0 to 4, without and with loopback, along the row
  /// and along the column first. The port changes fastest.
  output logic [4*5*5-1:0]    ports_o,
  /// Inputs of a reduction's operands, along the row and along the column first.
  output logic [2*5-1:0]      inputs_o,
  /// Output of its result.
  output logic [2*5-1:0]      output_o
);
  for (genvar y = 0; y < 2; y++) begin : gen_order
    for (genvar l = 0; l < 2; l++) begin : gen_loopback
      for (genvar p = 0; p < 5; p++) begin : gen_port
        tree_route #(
          .Rows(Rows),
          .Cols(Cols),
          .FromPort(p),
          .YFirst(y),
          .Multicast(1),
          .Loopback(l)
        ) u_tree (
          .at_row_i,
          .at_col_i,
          .row_i,
          .col_i,
          .multicast_i,
          .row_mask_i,
          .col_mask_i,
          .ports_o(ports_o[((2*y + l)*5 + p)*5 +: 5])
        );
      end
    end

    reduce_route #(
      .Rows(Rows),
      .Cols(Cols),
      .YFirst(y)
    ) u_reduce (
      .at_row_i,
      .at_col_i,
      .row_i,
      .col_i,
      .row_mask_i,
      .col_mask_i,
      .inputs_o(inputs_o[y*5 +: 5]),
      .output_o(output_o[y*5 +: 5])
    );
  end
endmodule
