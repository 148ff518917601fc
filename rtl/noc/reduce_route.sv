// Route of a reduction: the operands of marked rows and columns meet on their ways to the root.
//
// Each tile's operand takes the dimension-ordered way to the root, and where ways join, operands are
// combined. A router can tell from the header which inputs bring one: a tile that is not marked, and
// a direction in which no marked tile lies, bring none.
module reduce_route #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// 0: along the row first, 1: along the column first.
  parameter int YFirst = 0,
  /// Bits of a row index.
  localparam int RowWidth = noc_pkg::index_width(Rows),
  /// Bits of a column index.
  localparam int ColWidth = noc_pkg::index_width(Cols)
) (
  /// Row of this router; 0 is the northmost.
  input  logic [RowWidth-1:0] at_row_i,
  /// Column of this router; 0 is the westmost.
  input  logic [ColWidth-1:0] at_col_i,
  /// Root: its row.
  input  logic [RowWidth-1:0] row_i,
  /// Its column.
  input  logic [ColWidth-1:0] col_i,
  /// Marked rows.
  input  logic [Rows-1:0]     row_mask_i,
  /// Marked columns.
  input  logic [Cols-1:0]     col_mask_i,
  /// Inputs that bring an operand.
  output logic [4:0]          inputs_o,
  /// Output to which the result goes; one-hot.
  output logic [4:0]          output_o
);
  localparam int Local = 0;
  localparam int North = 1;
  localparam int East = 2;
  localparam int South = 3;
  localparam int West = 4;

  logic [Rows-1:0] rows_at, rows_north, rows_south;
  logic [Cols-1:0] cols_at, cols_west, cols_east;
  assign rows_at = Rows'(1) << at_row_i;
  assign rows_north = rows_at - Rows'(1);
  assign rows_south = ~(rows_at | rows_north);
  assign cols_at = Cols'(1) << at_col_i;
  assign cols_west = cols_at - Cols'(1);
  assign cols_east = ~(cols_at | cols_west);

  // Where the root lies, and where operands can come from: never from where they go.
  logic root_north, root_south, root_west, root_east, marked_row, marked_col;
  logic from_north, from_south, from_west, from_east;
  assign root_north = row_i < at_row_i;
  assign root_south = row_i > at_row_i;
  assign root_west = col_i < at_col_i;
  assign root_east = col_i > at_col_i;
  assign marked_row = (row_mask_i & rows_at) != '0;
  assign marked_col = (col_mask_i & cols_at) != '0;
  assign from_north = !root_north && (row_mask_i & rows_north) != '0;
  assign from_south = !root_south && (row_mask_i & rows_south) != '0;
  assign from_west = !root_west && (col_mask_i & cols_west) != '0;
  assign from_east = !root_east && (col_mask_i & cols_east) != '0;

  // Along the first dimension only a line's own operands travel; the second gathers the lines.
  logic settled_row, settled_col;
  assign settled_row = row_i == at_row_i;
  assign settled_col = col_i == at_col_i;
  assign inputs_o[Local] = marked_row && marked_col;
  if (YFirst == 0) begin : gen_xy
    assign inputs_o[East] = marked_row && from_east;
    assign inputs_o[West] = marked_row && from_west;
    assign inputs_o[North] = settled_col && from_north;
    assign inputs_o[South] = settled_col && from_south;
    assign output_o[East] = root_east;
    assign output_o[West] = root_west;
    assign output_o[North] = settled_col && root_north;
    assign output_o[South] = settled_col && root_south;
  end else begin : gen_yx
    assign inputs_o[North] = marked_col && from_north;
    assign inputs_o[South] = marked_col && from_south;
    assign inputs_o[East] = settled_row && from_east;
    assign inputs_o[West] = settled_row && from_west;
    assign output_o[North] = root_north;
    assign output_o[South] = root_south;
    assign output_o[East] = settled_row && root_east;
    assign output_o[West] = settled_row && root_west;
  end
  assign output_o[Local] = settled_row && settled_col;
endmodule
