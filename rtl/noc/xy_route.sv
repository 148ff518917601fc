// Dimension-ordered (X first) route of a set of destinations that is a product of rows and columns.
//
// A packet travels along its row, drops a branch north, south and into the tile at each marked column,
// and never turns from a column into a row.
module xy_route #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Port by which the packet came: 0 local, 1 north, 2 east, 3 south, 4 west.
  parameter int FromPort = 0,
  /// Bits of a row index.
  localparam int RowWidth = (Rows > 1) ? $clog2(Rows) : 1,
  /// Bits of a column index.
  localparam int ColWidth = (Cols > 1) ? $clog2(Cols) : 1
) (
  /// Row of this router; 0 is the northmost.
  input  logic [RowWidth-1:0] row_i,
  /// Column of this router; 0 is the westmost.
  input  logic [ColWidth-1:0] col_i,
  /// Marked rows.
  input  logic [Rows-1:0]     row_mask_i,
  /// Marked columns.
  input  logic [Cols-1:0]     col_mask_i,
  /// Output ports by which the packet leaves.
  output logic [4:0]          ports_o
);
  localparam int Local = 0;
  localparam int North = 1;
  localparam int East = 2;
  localparam int South = 3;
  localparam int West = 4;

  localparam bit AlongRow = FromPort == Local || FromPort == East || FromPort == West;

  logic [Rows-1:0] rows_at, rows_north, rows_south;
  logic [Cols-1:0] cols_at, cols_west, cols_east;
  logic in_column;

  assign rows_at = Rows'(1) << row_i;
  assign rows_north = rows_at - Rows'(1);
  assign rows_south = ~(rows_at | rows_north);
  assign cols_at = Cols'(1) << col_i;
  assign cols_west = cols_at - Cols'(1);
  assign cols_east = ~(cols_at | cols_west);

  assign in_column = !AlongRow || (col_mask_i & cols_at) != '0;
  assign ports_o[Local] = in_column && (row_mask_i & rows_at) != '0;
  assign ports_o[North] = in_column && FromPort != North && (row_mask_i & rows_north) != '0;
  assign ports_o[South] = in_column && FromPort != South && (row_mask_i & rows_south) != '0;
  assign ports_o[East] = AlongRow && FromPort != East && (col_mask_i & cols_east) != '0;
  assign ports_o[West] = AlongRow && FromPort != West && (col_mask_i & cols_west) != '0;
endmodule
