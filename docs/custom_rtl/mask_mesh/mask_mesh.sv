// Rows x Cols routers, each joined to its four neighbours; the tiles' ports are flat vectors.
//
// Node n stands in row n / Cols (0 is the northmost) and column n % Cols (0 is the westmost).
module mask_mesh
  import mask_pkg::*;
#(
  /// Rows of the mesh; at most 16.
  parameter int Rows = 4,
  /// Columns of the mesh; at most 16.
  parameter int Cols = 4,
  /// Flits held by each input of a router.
  parameter int InDepth = 2,
  /// Flits held by each output of a router.
  parameter int OutDepth = 2,
  /// Cycles of an addition.
  parameter int AddCycles = 3,
  /// Cycles that each router takes beyond two.
  parameter int ExtraStages = 0,
  /// Cycles from one flit on a link to the next, at least.
  parameter int LinkInterval = 1,
  /// Next packet of an output: 0: round-robin over the inputs; 1: of the lowest port.
  parameter int Arbiter = 0,
  /// 1: a sender among the destinations of its multicast gets a copy.
  parameter int Loopback = 1,
  /// Nodes.
  localparam int Nodes = Rows * Cols,
  /// Bits of a flit.
  localparam int FlitWidth = $bits(flit_t)
) (
  /// Clock, rising edge.
  input  logic                       clk,
  /// Reset, active high, synchronous.
  input  logic                       rst,
  /// A tile offers a flit to the network.
  input  logic [Nodes-1:0]           tile_out_valid,
  /// The network takes it in this cycle if it is offered.
  output logic [Nodes-1:0]           tile_out_ready,
  /// The offered flits.
  input  logic [Nodes*FlitWidth-1:0] tile_out_flit,
  /// The network offers a flit to a tile.
  output logic [Nodes-1:0]           tile_in_valid,
  /// The tile takes it in this cycle if it is offered.
  input  logic [Nodes-1:0]           tile_in_ready,
  /// The offered flits.
  output logic [Nodes*FlitWidth-1:0] tile_in_flit
);
  if (Rows < 1 || Cols < 1 || Rows > 2**CoordWidth || Cols > 2**CoordWidth) begin : gen_illegal_shape
    $error("mask_mesh: found %0d rows and %0d columns, allowed: 1 to 16", Rows, Cols);
  end

  ports_t in_valid [Nodes];
  ports_t in_ready [Nodes];
  flit_t [Ports-1:0] in_flit [Nodes];
  ports_t out_valid [Nodes];
  ports_t out_ready [Nodes];
  flit_t [Ports-1:0] out_flit [Nodes];

  for (genvar n = 0; n < Nodes; n++) begin : gen_node
    localparam int Row = n / Cols;
    localparam int Col = n % Cols;

    mask_router #(
      .InDepth(InDepth),
      .OutDepth(OutDepth),
      .AddCycles(AddCycles),
      .ExtraStages(ExtraStages),
      .LinkInterval(LinkInterval),
      .Arbiter(Arbiter),
      .Loopback(Loopback)
    ) u_router (
      .clk,
      .rst,
      .at('{col: coord_t'(Col), row: coord_t'(Row)}),
      .in_valid(in_valid[n]),
      .in_ready(in_ready[n]),
      .in_flit(in_flit[n]),
      .out_valid(out_valid[n]),
      .out_ready(out_ready[n]),
      .out_flit(out_flit[n])
    );

    assign in_valid[n][Local] = tile_out_valid[n];
    assign tile_out_ready[n] = in_ready[n][Local];
    assign in_flit[n][Local] = flit_t'(tile_out_flit[n*FlitWidth +: FlitWidth]);
    assign tile_in_valid[n] = out_valid[n][Local];
    assign out_ready[n][Local] = tile_in_ready[n];
    assign tile_in_flit[n*FlitWidth +: FlitWidth] = out_flit[n][Local];

    // The ports stand clockwise, so the facing one is two further.
    for (genvar p = North; p <= West; p++) begin : gen_link
      localparam int Facing = (p + 2) % 4;
      localparam bit Inside = (p == North) ? Row > 0 : (p == South) ? Row < Rows - 1
                            : (p == West) ? Col > 0 : Col < Cols - 1;
      localparam int Beside = (p == North) ? n - Cols : (p == South) ? n + Cols
                            : (p == West) ? n - 1 : n + 1;
      if (Inside) begin : gen_inside
        assign in_valid[n][p] = out_valid[Beside][Facing];
        assign in_flit[n][p] = out_flit[Beside][Facing];
        assign out_ready[n][p] = in_ready[Beside][Facing];
      end else begin : gen_edge
        assign in_valid[n][p] = 1'b0;
        assign in_flit[n][p] = '0;
        assign out_ready[n][p] = 1'b0;
      end
    end
  end
endmodule
