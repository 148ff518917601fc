// What the routers say to each other, and the ways of their packets.
//
// A set of tiles is a place and a mask: the tiles whose row and column equal the place's in every bit
// that the mask does not mark. The lowest has the marked bits cleared, the highest has them set. All
// tiles of a set must lie inside the mesh.
package mask_pkg;
  localparam int CoordWidth = 4;
  localparam int PayloadWidth = 64;

  localparam int Ports = 5;
  localparam int North = 0;
  localparam int East = 1;
  localparam int South = 2;
  localparam int West = 3;
  localparam int Local = 4;

  typedef logic [Ports-1:0] ports_t;
  typedef logic [CoordWidth-1:0] coord_t;
  typedef logic [PayloadWidth-1:0] payload_t;

  // Row 0 is the northmost, column 0 the westmost.
  typedef struct packed {
    coord_t col;
    coord_t row;
  } place_t;

  typedef enum logic [1:0] {
    Unicast = 2'd0,
    Multicast = 2'd1,
    Sum = 2'd2
  } operation_e;

  // The destinations of a multicast are the set `to`, `mask`. So are the tiles that bring an operand of
  // a sum, and `to` gets the result.
  typedef struct packed {
    place_t mask;
    place_t to;
    operation_e operation;
  } header_t;

  // Every flit of a packet carries the header.
  typedef struct packed {
    payload_t payload;
    place_t source;
    header_t header;
    logic last;
  } flit_t;

  // Outputs by which a packet that came by port `from` leaves the router `at`: along the row first,
  // then along the columns. All but a multicast goes one way.
  function automatic ports_t outputs(header_t header, place_t at, int from);
    place_t mask, low, high, off;
    logic along_row, col_here;
    mask = (header.operation == Multicast) ? header.mask : '0;
    low = header.to & ~mask;
    high = header.to | mask;
    off = (header.to ^ at) & ~mask;
    along_row = from == East || from == West || from == Local;
    col_here = off.col == '0;
    outputs[North] = col_here && from != North && low.row < at.row;
    outputs[South] = col_here && from != South && high.row > at.row;
    outputs[East] = along_row && from != East && high.col > at.col;
    outputs[West] = along_row && from != West && low.col < at.col;
    outputs[Local] = off == '0;
  endfunction

  // Inputs of the router `at` by which operands of a packet's sum come, each on its way to the root:
  // along the row first, then along the root's column. None for other packets.
  function automatic ports_t operands(header_t header, place_t at);
    place_t low, high, off;
    logic row_here, root_col;
    low = header.to & ~header.mask;
    high = header.to | header.mask;
    off = (header.to ^ at) & ~header.mask;
    row_here = off.row == '0;
    root_col = header.to.col == at.col;
    operands[North] = root_col && header.to.row >= at.row && low.row < at.row;
    operands[South] = root_col && header.to.row <= at.row && high.row > at.row;
    operands[East] = row_here && header.to.col <= at.col && high.col > at.col;
    operands[West] = row_here && header.to.col >= at.col && low.col < at.col;
    operands[Local] = off == '0;
    if (header.operation != Sum) operands = '0;
  endfunction
endpackage
