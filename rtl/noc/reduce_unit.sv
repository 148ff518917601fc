// Where the operands of a reduction meet: one unit a router, one flit of a result a cycle.
//
// A reduction starts when every input that brings an operand shows it and the buffer for operands
// behind its output has room for the whole packet, and keeps the unit to its last flit. The results
// pass `ReduceStages` registers and then stand in line at the output like a sixth input.
//
// Waiting for room holds nothing, lest packets wait for operands that have not come. Nobody is passed
// over for ever by that: reductions that may be under way together never compete for one link, since
// those with the same tiles have the same inputs there, and others share no link. The tile needs no room.
module reduce_unit #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Flits held by each buffer for operands; at least 2. A reduction's packet is at most this long.
  parameter int FifoDepth = 4,
  /// Bits of a flit's payload.
  parameter int PayloadWidth = 64,
  /// 0: along the row first, 1: along the column first.
  parameter int YFirst = 0,
  /// 1: the network forks multicasts.
  parameter int Multicast = 1,
  /// 1: reductions go by virtual cut-through.
  parameter int CutThrough = 1,
  /// Bits of an element; a divisor of PayloadWidth.
  parameter int ElementWidth = 32,
  /// Registers on the way of a result.
  parameter int ReduceStages = 1,
  /// Bits of a row index.
  localparam int RowWidth = noc_pkg::index_width(Rows),
  /// Bits of a column index.
  localparam int ColWidth = noc_pkg::index_width(Cols),
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(FifoDepth + 1),
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, PayloadWidth, Multicast, 1,
                                                 CutThrough)
) (
  /// Clock, rising edge.
  input  logic                    clk_i,
  /// Reset, active low, synchronous.
  input  logic                    rst_ni,
  /// Row of this router; 0 is the northmost.
  input  logic [RowWidth-1:0]     row_i,
  /// Column of this router; 0 is the westmost.
  input  logic [ColWidth-1:0]     col_i,
  /// An input shows an operand's flit.
  input  logic [4:0]              operand_valid_i,
  /// The flits.
  input  logic [5*FlitWidth-1:0]  operand_flit_i,
  /// They are taken.
  output logic [4:0]              operand_taken_o,
  /// Free places of the buffers for operands behind the output ports 1 to 4.
  input  logic [4*CountWidth-1:0] free_i,
  /// A flit of a reduction leaves by the output ports 1 to 4 in this cycle.
  input  logic [3:0]              leaving_i,
  /// An output is offered a flit of a result.
  output logic [4:0]              valid_o,
  /// The flit.
  output logic [FlitWidth-1:0]    flit_o,
  /// It is taken.
  input  logic                    taken_i
);
  localparam int Ports = 5;
  localparam int Lanes = PayloadWidth / ElementWidth;

  if (ElementWidth < 1 || PayloadWidth % ElementWidth != 0) begin : gen_illegal_element
    $error("reduce_unit: ElementWidth is %0d, must divide PayloadWidth, %0d", ElementWidth,
           PayloadWidth);
  end
  if (ReduceStages < 0) begin : gen_illegal_stages
    $error("reduce_unit: ReduceStages is %0d, must be at least 0", ReduceStages);
  end

  // Per input: where its operand's partners come in, where the result goes, whether it may start.
  logic [Ports-1:0][Ports-1:0] partners, output_of;
  logic [Ports-1:0] candidate, maximum;
  logic [Ports-1:0][CountWidth-1:0] length;
  // Flits of started packets that have yet to leave, per output; the local one needs no room.
  logic [Ports-1:0][CountWidth-1:0] pending_q;

  for (genvar i = 0; i < Ports; i++) begin : gen_operand
    logic [RowWidth-1:0] root_row;
    logic [ColWidth-1:0] root_col;
    logic [Rows-1:0] row_mask;
    logic [Cols-1:0] col_mask;
    logic [Ports-1:0] present;
    logic room;

    header #(
      .Rows(Rows),
      .Cols(Cols),
      .FifoDepth(FifoDepth),
      .PayloadWidth(PayloadWidth),
      .Multicast(Multicast),
      .Reduction(1),
      .CutThrough(CutThrough)
    ) u_header (
      .flit_i(operand_flit_i[i*FlitWidth +: FlitWidth]),
      .row_o(root_row),
      .col_o(root_col),
      .row_mask_o(row_mask),
      .col_mask_o(col_mask),
      .length_o(length[i]),
      .multicast_o(),
      .reduce_o(),
      .maximum_o(maximum[i]),
      .last_o()
    );

    reduce_route #(
      .Rows(Rows),
      .Cols(Cols),
      .YFirst(YFirst)
    ) u_route (
      .at_row_i(row_i),
      .at_col_i(col_i),
      .row_i(root_row),
      .col_i(root_col),
      .row_mask_i(row_mask),
      .col_mask_i(col_mask),
      .inputs_o(partners[i]),
      .output_o(output_of[i])
    );

    // Flits of one reduction have equal headers.
    for (genvar j = 0; j < Ports; j++) begin : gen_partner
      assign present[j] = operand_valid_i[j]
          && operand_flit_i[j*FlitWidth + PayloadWidth +: FlitWidth - 1 - PayloadWidth]
             == operand_flit_i[i*FlitWidth + PayloadWidth +: FlitWidth - 1 - PayloadWidth];
    end

    if (CutThrough != 0) begin : gen_room
      always_comb begin
        room = output_of[i][0];
        for (int o = 1; o < Ports; o++) begin
          if (output_of[i][o]) begin
            room = free_i[(o-1)*CountWidth +: CountWidth] - pending_q[o] >= length[i];
          end
        end
      end
    end else begin : gen_wormhole
      assign room = 1'b1;
    end

    // One of the partners speaks for all: the first.
    localparam logic [Ports-1:0] Before = Ports'((1 << i) - 1);
    assign candidate[i] = operand_valid_i[i] && (partners[i] & Before) == '0
                        && (partners[i] & ~present) == '0 && room;

`ifndef SYNTHESIS
    always @(posedge clk_i) begin
      if (rst_ni && operand_valid_i[i]) begin
        assert (partners[i][i]) else $error("reduce_unit: an operand came by a way not its own");
        assert ($onehot(output_of[i])) else $error("reduce_unit: an operand goes nowhere");
        assert (CutThrough == 0 || (length[i] != '0 && int'(length[i]) <= FifoDepth))
        else $error("reduce_unit: packet of %0d flits, buffers of %0d", length[i], FifoDepth);
        for (int j = 0; j < Ports; j++) begin
          // Each needs the other's input, which shows something else: neither can ever go on.
          assert (!operand_valid_i[j] || present[j] || !partners[i][j] || !partners[j][i])
          else $error("reduce_unit: reductions out of order");
        end
      end
    end
`endif
  end

  logic [Ports-1:0] winner, operands, operands_q, target, target_q, lead, lead_q;
  logic busy_q, start, complete, step, stop, pipe_ready;

  assign start = !busy_q && candidate != '0;
  rr_arbiter #(
    .Requesters(Ports)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .request_i(candidate),
    .advance_i(start),
    .grant_o(winner)
  );

  always_comb begin
    operands = operands_q;
    target = target_q;
    lead = lead_q;
    if (!busy_q) begin
      operands = '0;
      target = '0;
      lead = winner;
      for (int i = 0; i < Ports; i++) begin
        if (winner[i]) begin
          operands |= partners[i];
          target |= output_of[i];
        end
      end
    end
  end

  assign complete = (busy_q | start) && (operands & ~operand_valid_i) == '0;
  assign step = complete && pipe_ready;
  assign operand_taken_o = step ? operands : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else busy_q <= (busy_q | start) & !(step & stop);
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      operands_q <= operands;
      target_q <= target;
      lead_q <= lead;
    end
  end

  // The result has the first operand's header.
  logic [FlitWidth-1:0] result;
  logic keep_larger;
  always_comb begin
    result = '0;
    keep_larger = 1'b0;
    for (int i = 0; i < Ports; i++) begin
      if (lead[i]) begin
        result |= operand_flit_i[i*FlitWidth +: FlitWidth];
        keep_larger |= maximum[i];
      end
    end
    for (int e = 0; e < Lanes; e++) begin
      logic [ElementWidth-1:0] sum, largest, element;
      sum = '0;
      largest = {1'b1, {(ElementWidth - 1){1'b0}}};
      for (int i = 0; i < Ports; i++) begin
        element = operand_flit_i[i*FlitWidth + e*ElementWidth +: ElementWidth];
        if (operands[i]) begin
          sum = sum + element;
          if ($signed(element) > $signed(largest)) largest = element;
        end
      end
      result[e*ElementWidth +: ElementWidth] = keep_larger ? largest : sum;
    end
  end
  assign stop = result[FlitWidth-1];

  // Elastic registers; a stage moves on when the next one does or is empty.
  logic [ReduceStages:0] stage_valid, stage_ready;
  logic [ReduceStages:0][Ports-1:0] stage_target;
  logic [ReduceStages:0][FlitWidth-1:0] stage_flit;
  assign stage_valid[0] = complete;
  assign stage_target[0] = target;
  assign stage_flit[0] = result;
  assign pipe_ready = stage_ready[0];
  assign stage_ready[ReduceStages] = taken_i;
  for (genvar s = 0; s < ReduceStages; s++) begin : gen_stage
    logic valid_q;
    logic [Ports-1:0] target_stage_q;
    logic [FlitWidth-1:0] flit_q;
    assign stage_ready[s] = !valid_q || stage_ready[s+1];
    assign stage_valid[s+1] = valid_q;
    assign stage_target[s+1] = target_stage_q;
    assign stage_flit[s+1] = flit_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) valid_q <= 1'b0;
      else if (stage_ready[s]) valid_q <= stage_valid[s];
    end
    always_ff @(posedge clk_i) begin
      if (stage_ready[s]) begin
        target_stage_q <= stage_target[s];
        flit_q <= stage_flit[s];
      end
    end
  end
  assign valid_o = stage_valid[ReduceStages] ? stage_target[ReduceStages] : '0;
  assign flit_o = stage_flit[ReduceStages];

  if (CutThrough != 0) begin : gen_pending
    logic [CountWidth-1:0] started;
    always_comb begin
      started = '0;
      for (int i = 0; i < Ports; i++) begin
        if (winner[i]) started |= length[i];
      end
    end
    assign pending_q[0] = '0;
    for (genvar o = 1; o < Ports; o++) begin : gen_output
      always_ff @(posedge clk_i) begin
        if (!rst_ni) pending_q[o] <= '0;
        else pending_q[o] <= pending_q[o] + ((start && target[o]) ? started : '0)
                           - CountWidth'(leaving_i[o-1]);
      end
`ifndef SYNTHESIS
      always @(posedge clk_i) begin
        assert (!rst_ni || int'(pending_q[o]) <= FifoDepth)
        else $error("reduce_unit: more flits on their way than there is room for");
      end
`endif
    end
  end else begin : gen_no_pending
    assign pending_q = '0;
    logic unused_room;
    assign unused_room = ^{free_i, leaving_i, length, pending_q};
  end

`ifndef SYNTHESIS
  localparam logic [Ports-1:0] Vertical = 5'b01010;
  localparam logic [Ports-1:0] Horizontal = 5'b10100;
  localparam logic [Ports-1:0] First = (YFirst == 0) ? Horizontal : Vertical;
  localparam logic [Ports-1:0] Second = (YFirst == 0) ? Vertical : Horizontal;
  always @(posedge clk_i) begin
    if (rst_ni && step) begin
      assert ($onehot(target)) else $error("reduce_unit: a result goes nowhere");
      // Not back, and not from the second dimension into the first.
      assert ((operands & target & ~Ports'(1)) == '0
              && ((operands & Second) == '0 || (target & First) == '0))
      else $error("reduce_unit: illegal turn");
      for (int i = 0; i < Ports; i++) begin
        if (operands[i]) begin
          assert (partners[i] == operands) else $error("reduce_unit: an operand is left out");
          assert (operand_flit_i[i*FlitWidth + FlitWidth - 1] == stop)
          else $error("reduce_unit: operands of different lengths");
        end
      end
    end
  end
`endif
endmodule
