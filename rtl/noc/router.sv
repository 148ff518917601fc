// Five-port mesh router: dimension-ordered; unicasts by wormhole, multicasts and reductions by virtual
// cut-through.
//
// Ports are numbered 0 local, 1 north, 2 east, 3 south, 4 west; vectors over ports are packed in that
// order. A multicast forks here, each branch at its own pace; the operands of a reduction meet here.
module router #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Flits held by each input buffer; at least 2. Multicast and reduction packets are at most this long.
  parameter int FifoDepth = 4,
  /// Flits held by each output: 0, or at least 2.
  parameter int OutputDepth = 0,
  /// Bits of a flit's payload.
  parameter int PayloadWidth = 64,
  /// Cycles in which a flit passes, without output buffers: 1 or 2.
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
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(FifoDepth + 1),
  /// Bits of a row index.
  localparam int RowWidth = noc_pkg::index_width(Rows),
  /// Bits of a column index.
  localparam int ColWidth = noc_pkg::index_width(Cols),
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, PayloadWidth, Multicast,
                                                 Reduction, CutThrough)
) (
  /// Clock, rising edge.
  input  logic                    clk_i,
  /// Reset, active low, synchronous.
  input  logic                    rst_ni,
  /// Row of this router; 0 is the northmost.
  input  logic [RowWidth-1:0]     row_i,
  /// Column of this router; 0 is the westmost.
  input  logic [ColWidth-1:0]     col_i,
  /// A flit is offered at an input port.
  input  logic [4:0]              in_valid_i,
  /// It is taken in this cycle if it is offered.
  output logic [4:0]              in_ready_o,
  /// The offered flits.
  input  logic [5*FlitWidth-1:0]  in_flit_i,
  /// Free places of the input buffers.
  output logic [5*CountWidth-1:0] in_free_o,
  /// Free places of the input buffers for operands.
  output logic [5*CountWidth-1:0] in_operand_free_o,
  /// A flit is offered at an output port.
  output logic [4:0]              out_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic [4:0]              out_ready_i,
  /// The offered flits.
  output logic [5*FlitWidth-1:0]  out_flit_o,
  /// Free places of the input buffers behind the output ports 1 to 4; a tile's need not be known.
  input  logic [4*CountWidth-1:0] out_free_i,
  /// Free places of the buffers for operands there.
  input  logic [4*CountWidth-1:0] out_operand_free_i
);
  localparam int Ports = 5;
  localparam int Local = 0;
  // The reduction unit stands in line like a sixth input.
  localparam int Requesters = (Reduction != 0) ? Ports + 1 : Ports;

  if (Rows < 1 || Cols < 1 || PayloadWidth < 1) begin : gen_illegal_shape
    $error("router: Rows, Cols and PayloadWidth are %0d, %0d and %0d, must be at least 1", Rows, Cols,
           PayloadWidth);
  end
  if (YFirst < 0 || YFirst > 1 || Multicast < 0 || Multicast > 1 || Reduction < 0 || Reduction > 1
      || CutThrough < 0 || CutThrough > 1 || Loopback < 0 || Loopback > 1) begin : gen_illegal_switch
    $error("router: YFirst, Multicast, Reduction, CutThrough and Loopback must be 0 or 1");
  end

  // Indexed [input][output].
  logic [Ports-1:0][Ports-1:0] branch_valid, branch_last, branch_taken;
  logic [Ports-1:0][Ports*FlitWidth-1:0] branch_flit;
  logic [Ports-1:0] multicast;
  logic [Ports-1:0][CountWidth-1:0] length;

  logic [Ports-1:0] operand_valid, operand_taken, result_valid, result_taken;
  logic [Ports*FlitWidth-1:0] operand_flit;
  logic [FlitWidth-1:0] result_flit;

  for (genvar i = 0; i < Ports; i++) begin : gen_input
    input_port #(
      .Rows(Rows),
      .Cols(Cols),
      .FifoDepth(FifoDepth),
      .PayloadWidth(PayloadWidth),
      .Stages(Stages),
      .YFirst(YFirst),
      .Multicast(Multicast),
      .Reduction(Reduction),
      .CutThrough(CutThrough),
      .Loopback(Loopback),
      .FromPort(i)
    ) u_input (
      .clk_i,
      .rst_ni,
      .row_i,
      .col_i,
      .valid_i(in_valid_i[i]),
      .ready_o(in_ready_o[i]),
      .flit_i(in_flit_i[i*FlitWidth +: FlitWidth]),
      .free_o(in_free_o[i*CountWidth +: CountWidth]),
      .operand_free_o(in_operand_free_o[i*CountWidth +: CountWidth]),
      .branch_valid_o(branch_valid[i]),
      .branch_flit_o(branch_flit[i]),
      .branch_last_o(branch_last[i]),
      .multicast_o(multicast[i]),
      .length_o(length[i]),
      .branch_taken_i(branch_taken[i]),
      .operand_valid_o(operand_valid[i]),
      .operand_flit_o(operand_flit[i*FlitWidth +: FlitWidth]),
      .operand_taken_i(operand_taken[i])
    );

`ifndef SYNTHESIS
    // Back where it came from, or from the second dimension into the first.
    localparam bit Vertical = i == 1 || i == 3;
    localparam bit Horizontal = i == 2 || i == 4;
    localparam logic [Ports-1:0] Back = (i == Local) ? '0 : Ports'(1 << i);
    localparam logic [Ports-1:0] Turns = (YFirst == 0 && Vertical) ? 5'b10100
                                       : (YFirst != 0 && Horizontal) ? 5'b01010 : '0;
    always @(posedge clk_i) begin
      if (rst_ni) begin
        assert ((branch_valid[i] & (Back | Turns)) == '0) else $error("router: illegal turn");
      end
    end
`endif
  end

  for (genvar o = 0; o < Ports; o++) begin : gen_output
    logic [Requesters-1:0] valid, last, many, taken;
    logic [Requesters*FlitWidth-1:0] flit;
    logic [Requesters*CountWidth-1:0] flits;

    for (genvar i = 0; i < Ports; i++) begin : gen_request
      assign valid[i] = branch_valid[i][o];
      assign last[i] = branch_last[i][o];
      // A tile takes every flit in bounded time: on the way to it there is no need for room.
      assign many[i] = multicast[i] && o != Local;
      assign flits[i*CountWidth +: CountWidth] = length[i];
      assign flit[i*FlitWidth +: FlitWidth] = branch_flit[i][o*FlitWidth +: FlitWidth];
      assign branch_taken[i][o] = taken[i];
    end
    if (Reduction != 0) begin : gen_result
      assign valid[Ports] = result_valid[o];
      assign last[Ports] = result_flit[FlitWidth-1];
      assign many[Ports] = 1'b0;
      assign flits[Ports*CountWidth +: CountWidth] = '0;
      assign flit[Ports*FlitWidth +: FlitWidth] = result_flit;
      assign result_taken[o] = taken[Ports];
    end else begin : gen_no_result
      assign result_taken[o] = 1'b0;
    end

    logic [CountWidth-1:0] free;
    if (o == Local) begin : gen_tile
      assign free = '0;
    end else begin : gen_neighbour
      assign free = out_free_i[(o-1)*CountWidth +: CountWidth];
    end

    output_port #(
      .Requesters(Requesters),
      .FlitWidth(FlitWidth),
      .FifoDepth(FifoDepth),
      .OutputDepth(OutputDepth),
      .CutThrough((Multicast != 0) ? CutThrough : 0)
    ) u_output (
      .clk_i,
      .rst_ni,
      .valid_i(valid),
      .flit_i(flit),
      .last_i(last),
      .multicast_i(many),
      .length_i(flits),
      .taken_o(taken),
      .free_i(free),
      .valid_o(out_valid_o[o]),
      .ready_i(out_ready_i[o]),
      .flit_o(out_flit_o[o*FlitWidth +: FlitWidth])
    );
  end

  if (Reduction != 0) begin : gen_reduce
    logic [Ports-2:0] leaving;
    for (genvar o = 1; o < Ports; o++) begin : gen_leaving
      localparam int ReduceBit = o * FlitWidth + FlitWidth - 2 - Multicast;
      assign leaving[o-1] = out_valid_o[o] & out_ready_i[o] & out_flit_o[ReduceBit];
    end

    reduce_unit #(
      .Rows(Rows),
      .Cols(Cols),
      .FifoDepth(FifoDepth),
      .PayloadWidth(PayloadWidth),
      .YFirst(YFirst),
      .Multicast(Multicast),
      .CutThrough(CutThrough),
      .ElementWidth(ElementWidth),
      .ReduceStages(ReduceStages)
    ) u_reduce (
      .clk_i,
      .rst_ni,
      .row_i,
      .col_i,
      .operand_valid_i(operand_valid),
      .operand_flit_i(operand_flit),
      .operand_taken_o(operand_taken),
      .free_i(out_operand_free_i),
      .leaving_i(leaving),
      .valid_o(result_valid),
      .flit_o(result_flit),
      .taken_i(result_taken != '0)
    );
  end else begin : gen_no_reduce
    assign operand_taken = '0;
    assign result_valid = '0;
    assign result_flit = '0;
    logic unused_operands;
    assign unused_operands = ^{operand_valid, operand_flit, result_valid, result_flit, result_taken,
                               out_operand_free_i};
  end
endmodule
