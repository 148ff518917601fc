// What routers and network interfaces say to each other, and the ways of their flits.
package locked_pkg;
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
    Data = 2'd0,
    Request = 2'd1,
    Acknowledge = 2'd2
  } kind_e;

  // Every flit carries the header. Tiles leave `first` and `kind` zero: interfaces set them.
  typedef struct packed {
    payload_t payload;
    place_t source;
    place_t to;
    logic first;
    kind_e kind;
    logic last;
  } flit_t;

  // The output by which a flit leaves the router `at`: along the row first, then along the column.
  function automatic ports_t output_of(place_t to, place_t at);
    output_of = '0;
    if (to.col > at.col) output_of[East] = 1'b1;
    else if (to.col < at.col) output_of[West] = 1'b1;
    else if (to.row > at.row) output_of[South] = 1'b1;
    else if (to.row < at.row) output_of[North] = 1'b1;
    else output_of[Local] = 1'b1;
  endfunction
endpackage
