// Rows x Cols routers and network interfaces; the tiles' ports are flat vectors.
//
// Node n stands in row n / Cols (0 is the northmost) and column n % Cols (0 is the westmost).
module locked_mesh
  import locked_pkg::*;
#(
  /// Rows of the mesh; at most 16.
  parameter int Rows = 4,
  /// Columns of the mesh; at most 16.
  parameter int Cols = 4,
  /// Flits held by each input of a router.
  parameter int InDepth = 2,
  /// Flits held by each output of a router.
  parameter int OutDepth = 2,
  /// Cycles that each router takes beyond two.
  parameter int ExtraStages = 0,
  /// Cycles from one flit on a link to the next, at least.
  parameter int LinkInterval = 1,
  /// Next flit of an output: 0: round-robin over the inputs; 1: of the lowest port.
  parameter int Arbiter = 0,
  /// 0: outputs are locked for a message; 1: for its receiver.
  parameter int ByReceiver = 0,
  /// Cycles from the taking of a message's first flit to the offer of its request.
  parameter int RequestCycles = 1,
  /// Cycles from a request's arrival to the offer of its acknowledge.
  parameter int AcknowledgeCycles = 2,
  /// Cycles from an acknowledge's arrival to the offer of the first data flit.
  parameter int DataCycles = 1,
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
    $error("locked_mesh: found %0d rows and %0d columns, allowed: 1 to 16", Rows, Cols);
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

    locked_router #(
      .InDepth(InDepth),
      .OutDepth(OutDepth),
      .ExtraStages(ExtraStages),
      .LinkInterval(LinkInterval),
      .Arbiter(Arbiter),
      .ByReceiver(ByReceiver),
      .Messages(Nodes)
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

    locked_interface #(
      .Nodes(Nodes),
      .RequestCycles(RequestCycles),
      .AcknowledgeCycles(AcknowledgeCycles),
      .DataCycles(DataCycles)
    ) u_interface (
      .clk,
      .rst,
      .at('{col: coord_t'(Col), row: coord_t'(Row)}),
      .tile_out_valid(tile_out_valid[n]),
      .tile_out_ready(tile_out_ready[n]),
      .tile_out_flit(flit_t'(tile_out_flit[n*FlitWidth +: FlitWidth])),
      .tile_in_valid(tile_in_valid[n]),
      .tile_in_ready(tile_in_ready[n]),
      .tile_in_flit(tile_in_flit[n*FlitWidth +: FlitWidth]),
      .net_out_valid(in_valid[n][Local]),
      .net_out_ready(in_ready[n][Local]),
      .net_out_flit(in_flit[n][Local]),
      .net_in_valid(out_valid[n][Local]),
      .net_in_ready(out_ready[n][Local]),
      .net_in_flit(out_flit[n][Local])
    );

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
