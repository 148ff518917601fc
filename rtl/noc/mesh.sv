// Rows x Cols routers, each joined to its four neighbours; the tiles' ports are flat vectors.
//
// Node n stands in row n / Cols (0 is the northmost) and column n % Cols (0 is the westmost).
module mesh #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Flits held by each input buffer of a router.
  parameter int FifoDepth = 4,
  /// Flits held by each output of a router: 0, or at least 2.
  parameter int OutputDepth = 0,
  /// Bits of a flit's payload.
  parameter int PayloadWidth = 64,
  /// Cycles in which a flit passes a router, without output buffers: 1 or 2.
  parameter int Stages = 1,
  /// 0: along the row first, 1: along the column first.
  parameter int YFirst = 0,
  /// 1: the network forks multicasts.
  parameter int Multicast = 1,
  /// 1: the network combines reductions.
  parameter int Reduction = 1,
  /// 1: multicasts and reductions go by virtual cut-through; 0: by wormhole, and may hang.
  parameter int CutThrough = 1,
  /// 1: a sender among the destinations of its multicast gets a copy.
  parameter int Loopback = 1,
  /// Bits of an element of a reduction; a divisor of PayloadWidth.
  parameter int ElementWidth = 32,
  /// Registers on the way of a reduction's result.
  parameter int ReduceStages = 1,
  /// Nodes.
  localparam int Nodes = Rows * Cols,
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, PayloadWidth, Multicast,
                                                 Reduction, CutThrough)
) (
  /// Clock, rising edge.
  input  logic                       clk_i,
  /// Reset, active low, synchronous.
  input  logic                       rst_ni,
  /// A tile offers a flit to the network.
  input  logic [Nodes-1:0]           inject_valid_i,
  /// The network takes it in this cycle if it is offered.
  output logic [Nodes-1:0]           inject_ready_o,
  /// The offered flits.
  input  logic [Nodes*FlitWidth-1:0] inject_flit_i,
  /// The network offers a flit to a tile.
  output logic [Nodes-1:0]           eject_valid_o,
  /// The tile takes it in this cycle if it is offered.
  input  logic [Nodes-1:0]           eject_ready_i,
  /// The offered flits.
  output logic [Nodes*FlitWidth-1:0] eject_flit_o
);
  localparam int Ports = 5;
  localparam int Local = 0;
  localparam int North = 1;
  localparam int East = 2;
  localparam int South = 3;
  localparam int West = 4;
  localparam int CountWidth = $clog2(FifoDepth + 1);
  localparam int RowWidth = noc_pkg::index_width(Rows);
  localparam int ColWidth = noc_pkg::index_width(Cols);

  if (Rows < 1 || Cols < 1) begin : gen_illegal_shape
    $error("mesh: Rows and Cols are %0d and %0d, must be at least 1", Rows, Cols);
  end

  logic [Ports-1:0] in_valid [Nodes];
  logic [Ports-1:0] in_ready [Nodes];
  logic [Ports*FlitWidth-1:0] in_flit [Nodes];
  logic [Ports*CountWidth-1:0] in_free [Nodes];
  logic [Ports*CountWidth-1:0] in_operand_free [Nodes];
  logic [Ports-1:0] out_valid [Nodes];
  logic [Ports-1:0] out_ready [Nodes];
  logic [Ports*FlitWidth-1:0] out_flit [Nodes];
  logic [(Ports-1)*CountWidth-1:0] out_free [Nodes];
  logic [(Ports-1)*CountWidth-1:0] out_operand_free [Nodes];

  for (genvar r = 0; r < Rows; r++) begin : gen_row
    for (genvar c = 0; c < Cols; c++) begin : gen_col
      localparam int Node = r * Cols + c;

      router #(
        .Rows(Rows),
        .Cols(Cols),
        .FifoDepth(FifoDepth),
        .OutputDepth(OutputDepth),
        .PayloadWidth(PayloadWidth),
        .Stages(Stages),
        .YFirst(YFirst),
        .Multicast(Multicast),
        .Reduction(Reduction),
        .CutThrough(CutThrough),
        .Loopback(Loopback),
        .ElementWidth(ElementWidth),
        .ReduceStages(ReduceStages)
      ) u_router (
        .clk_i,
        .rst_ni,
        .row_i(RowWidth'(r)),
        .col_i(ColWidth'(c)),
        .in_valid_i(in_valid[Node]),
        .in_ready_o(in_ready[Node]),
        .in_flit_i(in_flit[Node]),
        .in_free_o(in_free[Node]),
        .in_operand_free_o(in_operand_free[Node]),
        .out_valid_o(out_valid[Node]),
        .out_ready_i(out_ready[Node]),
        .out_flit_o(out_flit[Node]),
        .out_free_i(out_free[Node]),
        .out_operand_free_i(out_operand_free[Node])
      );

      // A tile need not know the room in front of it, nor an edge that behind it.
      logic unused_free;
      assign unused_free = ^{in_free[Node], in_operand_free[Node]};
      assign in_valid[Node][Local] = inject_valid_i[Node];
      assign inject_ready_o[Node] = in_ready[Node][Local];
      assign in_flit[Node][Local*FlitWidth +: FlitWidth] = inject_flit_i[Node*FlitWidth +: FlitWidth];
      assign eject_valid_o[Node] = out_valid[Node][Local];
      assign out_ready[Node][Local] = eject_ready_i[Node];
      assign eject_flit_o[Node*FlitWidth +: FlitWidth] = out_flit[Node][Local*FlitWidth +: FlitWidth];

      // A port joins the facing port of the neighbour, or ends at the edge of the mesh.
      for (genvar p = North; p <= West; p++) begin : gen_link
        localparam int Facing = (p == North) ? South : (p == South) ? North : (p == East) ? West : East;
        localparam bit Inside = (p == North) ? r > 0 : (p == South) ? r < Rows - 1
                              : (p == East) ? c < Cols - 1 : c > 0;
        localparam int Neighbour = !Inside ? Node : (p == North) ? Node - Cols
                                 : (p == South) ? Node + Cols : (p == East) ? Node + 1 : Node - 1;
        if (Inside) begin : gen_inside
          assign in_valid[Node][p] = out_valid[Neighbour][Facing];
          assign in_flit[Node][p*FlitWidth +: FlitWidth] =
              out_flit[Neighbour][Facing*FlitWidth +: FlitWidth];
          assign out_ready[Node][p] = in_ready[Neighbour][Facing];
          assign out_free[Node][(p-1)*CountWidth +: CountWidth] =
              in_free[Neighbour][Facing*CountWidth +: CountWidth];
          assign out_operand_free[Node][(p-1)*CountWidth +: CountWidth] =
              in_operand_free[Neighbour][Facing*CountWidth +: CountWidth];
        end else begin : gen_edge
`ifndef SYNTHESIS
          always @(posedge clk_i) begin
            assert (!rst_ni || !out_valid[Node][p]) else $error("mesh: a packet leaves the mesh");
          end
`endif
          assign in_valid[Node][p] = 1'b0;
          assign in_flit[Node][p*FlitWidth +: FlitWidth] = '0;
          assign out_ready[Node][p] = 1'b0;
          assign out_free[Node][(p-1)*CountWidth +: CountWidth] = '0;
          assign out_operand_free[Node][(p-1)*CountWidth +: CountWidth] = '0;
        end
      end
    end
  end

`ifndef SYNTHESIS
  // A tile's offer stands until it is taken, as an output's does.
  for (genvar n = 0; n < Nodes; n++) begin : gen_offer
    logic waiting_q;
    logic [FlitWidth-1:0] flit_q;
    always @(posedge clk_i) begin
      waiting_q <= rst_ni & inject_valid_i[n] & !inject_ready_o[n];
      flit_q <= inject_flit_i[n*FlitWidth +: FlitWidth];
      assert (!rst_ni || !waiting_q
              || (inject_valid_i[n] && inject_flit_i[n*FlitWidth +: FlitWidth] == flit_q))
      else $error("mesh: a tile changed its offer or took it back");
    end
  end
`endif
endmodule
