// Dimension-ordered route of a packet to a tile, or to all tiles of marked rows and columns.
//
// A packet travels along its first dimension, drops branches along the second and into the tile where
// it must, and never turns from the second dimension into the first.
module tree_route #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Port by which the packet came: 0 local, 1 north, 2 east, 3 south, 4 west.
  parameter int FromPort = 0,
  /// 0: along the row first, 1: along the column first.
  parameter int YFirst = 0,
  /// 1: the network forks multicasts.
  parameter int Multicast = 1,
  /// 1: a sender among the destinations of its multicast gets a copy.
  parameter int Loopback = 1,
  /// Bits of a row index.
  localparam int RowWidth = noc_pkg::index_width(Rows),
  /// Bits of a column index.
  localparam int ColWidth = noc_pkg::index_width(Cols)
) (
  /// Row of this router; 0 is the northmost.
  input  logic [RowWidth-1:0] at_row_i,
  /// Column of this router; 0 is the westmost.
  input  logic [ColWidth-1:0] at_col_i,
  /// Destination of a unicast: its row.
  input  logic [RowWidth-1:0] row_i,
  /// Its column.
  input  logic [ColWidth-1:0] col_i,
  /// The packet goes to the marked rows and columns.
  input  logic                multicast_i,
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
  localparam bit AlongCol = FromPort == Local || FromPort == North || FromPort == South;
  // The sender gets no copy of its own multicast.
  localparam bit Withheld = Multicast != 0 && Loopback == 0 && FromPort == Local;
  // Whether a packet from this port may still go along the row, and along the column.
  localparam bit MayRow = (YFirst == 0) ? AlongRow : 1'b1;
  localparam bit MayCol = (YFirst == 0) ? 1'b1 : AlongCol;

  // Destinations in this row or column, and beyond it on either side.
  logic here_row, north, south, here_col, west, east;
  // The first dimension is settled here, so the packet may go along the column; along the row.
  logic turn_col, turn_row;

  logic [Rows-1:0] rows_at, rows_north, rows_south;
  logic [Cols-1:0] cols_at, cols_west, cols_east;
  assign rows_at = Rows'(1) << at_row_i;
  assign rows_north = rows_at - Rows'(1);
  assign rows_south = ~(rows_at | rows_north);
  assign cols_at = Cols'(1) << at_col_i;
  assign cols_west = cols_at - Cols'(1);
  assign cols_east = ~(cols_at | cols_west);

  logic many;
  assign many = (Multicast != 0) && multicast_i;
  assign here_row = many ? (row_mask_i & rows_at) != '0 : row_i == at_row_i;
  assign north = many ? (row_mask_i & rows_north) != '0 : row_i < at_row_i;
  assign south = many ? (row_mask_i & rows_south) != '0 : row_i > at_row_i;
  assign here_col = many ? (col_mask_i & cols_at) != '0 : col_i == at_col_i;
  assign west = many ? (col_mask_i & cols_west) != '0 : col_i < at_col_i;
  assign east = many ? (col_mask_i & cols_east) != '0 : col_i > at_col_i;

  assign turn_col = (YFirst != 0) || !AlongRow || here_col;
  assign turn_row = (YFirst == 0) || !AlongCol || here_row;

  assign ports_o[Local] = !(Withheld && many)
                        && ((YFirst == 0) ? turn_col && here_row : turn_row && here_col);
  assign ports_o[North] = MayCol && FromPort != North && turn_col && north;
  assign ports_o[South] = MayCol && FromPort != South && turn_col && south;
  assign ports_o[East] = MayRow && FromPort != East && turn_row && east;
  assign ports_o[West] = MayRow && FromPort != West && turn_row && west;
endmodule
