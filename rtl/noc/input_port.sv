// Input of a router: buffers, and the outputs by which the packet at the front leaves.
//
// Operands of reductions have a buffer of their own, so that they wait for each other without
// standing in the way of other packets. With two stages a flit spends its first cycle in a register in
// front of the buffers, where its route is found; its place in the buffer is already taken.
module input_port #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Flits held by each buffer; at least 2.
  parameter int FifoDepth = 4,
  /// Bits of a flit's payload.
  parameter int PayloadWidth = 64,
  /// Cycles in which a flit passes the router: 1 or 2.
  parameter int Stages = 1,
  /// 0: along the row first, 1: along the column first.
  parameter int YFirst = 0,
  /// 1: the network forks multicasts.
  parameter int Multicast = 1,
  /// 1: the network combines reductions.
  parameter int Reduction = 1,
  /// 1: multicasts and reductions go by virtual cut-through.
  parameter int CutThrough = 1,
  /// 1: a sender among the destinations of its multicast gets a copy.
  parameter int Loopback = 1,
  /// This port: 0 local, 1 north, 2 east, 3 south, 4 west.
  parameter int FromPort = 0,
  /// Bits of a row index.
  localparam int RowWidth = noc_pkg::index_width(Rows),
  /// Bits of a column index.
  localparam int ColWidth = noc_pkg::index_width(Cols),
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(FifoDepth + 1),
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, PayloadWidth, Multicast,
                                                 Reduction, CutThrough)
) (
  /// Clock, rising edge.
  input  logic                   clk_i,
  /// Reset, active low, synchronous.
  input  logic                   rst_ni,
  /// Row of this router; 0 is the northmost.
  input  logic [RowWidth-1:0]    row_i,
  /// Column of this router; 0 is the westmost.
  input  logic [ColWidth-1:0]    col_i,
  /// A flit is offered.
  input  logic                   valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                   ready_o,
  /// The offered flit.
  input  logic [FlitWidth-1:0]   flit_i,
  /// Free places of the buffer.
  output logic [CountWidth-1:0]  free_o,
  /// Free places of the buffer for operands.
  output logic [CountWidth-1:0]  operand_free_o,
  /// An output is offered a flit of the packet at the front.
  output logic [4:0]             branch_valid_o,
  /// The offered flits.
  output logic [5*FlitWidth-1:0] branch_flit_o,
  /// The offered flit is the packet's last.
  output logic [4:0]             branch_last_o,
  /// The packet at the front is a multicast.
  output logic                   multicast_o,
  /// Its flits, if it is a multicast.
  output logic [CountWidth-1:0]  length_o,
  /// The output takes its flit.
  input  logic [4:0]             branch_taken_i,
  /// There is an operand's flit.
  output logic                   operand_valid_o,
  /// The oldest operand's oldest flit.
  output logic [FlitWidth-1:0]   operand_flit_o,
  /// It is taken.
  input  logic                   operand_taken_i
);
  if (Stages != 1 && Stages != 2) begin : gen_illegal_stages
    $error("input_port: Stages is %0d, must be 1 or 2", Stages);
  end

  // The flit that is written into a buffer in this cycle, and what the register in front holds.
  logic push, push_reduce, offered_reduce;
  logic [FlitWidth-1:0] pushed;
  logic staged, staged_operand;
  logic [CountWidth-1:0] buffer_free, operand_buffer_free;

  // The header whose route is looked up: of the flit in the register, or at the front of the buffer.
  logic [FlitWidth-1:0] routed_flit, front_flit;
  logic [RowWidth-1:0] to_row;
  logic [ColWidth-1:0] to_col;
  logic [Rows-1:0] row_mask;
  logic [Cols-1:0] col_mask;
  logic routed_multicast;
  logic [4:0] route, needed;

  assign free_o = buffer_free - CountWidth'(staged);
  assign operand_free_o = operand_buffer_free - CountWidth'(staged_operand);
  assign ready_o = (offered_reduce ? operand_free_o : free_o) != '0;

  if (Stages == 1) begin : gen_one_stage
    assign staged = 1'b0;
    assign staged_operand = 1'b0;
    assign push = valid_i & ready_o;
    assign push_reduce = offered_reduce;
    assign pushed = flit_i;
    assign routed_flit = front_flit;
    assign needed = route;
  end else begin : gen_two_stages
    logic valid_q, reduce_q;
    logic [FlitWidth-1:0] flit_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) valid_q <= 1'b0;
      else valid_q <= valid_i & ready_o;
    end
    always_ff @(posedge clk_i) begin
      if (valid_i & ready_o) begin
        flit_q <= flit_i;
        reduce_q <= offered_reduce;
      end
    end
    assign staged = valid_q & !reduce_q;
    assign staged_operand = valid_q & reduce_q;
    assign push = valid_q;
    assign push_reduce = reduce_q;
    assign pushed = flit_q;
    assign routed_flit = flit_q;
  end

  header #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .PayloadWidth(PayloadWidth),
    .Multicast(Multicast),
    .Reduction(Reduction),
    .CutThrough(CutThrough)
  ) u_routed (
    .flit_i(routed_flit),
    .row_o(to_row),
    .col_o(to_col),
    .row_mask_o(row_mask),
    .col_mask_o(col_mask),
    .length_o(),
    .multicast_o(routed_multicast),
    .reduce_o(),
    .maximum_o(),
    .last_o()
  );

  tree_route #(
    .Rows(Rows),
    .Cols(Cols),
    .FromPort(FromPort),
    .YFirst(YFirst),
    .Multicast(Multicast),
    .Loopback(Loopback)
  ) u_route (
    .at_row_i(row_i),
    .at_col_i(col_i),
    .row_i(to_row),
    .col_i(to_col),
    .multicast_i(routed_multicast),
    .row_mask_i(row_mask),
    .col_mask_i(col_mask),
    .ports_o(route)
  );

  header #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .PayloadWidth(PayloadWidth),
    .Multicast(Multicast),
    .Reduction(Reduction),
    .CutThrough(CutThrough)
  ) u_front (
    .flit_i(front_flit),
    .row_o(),
    .col_o(),
    .row_mask_o(),
    .col_mask_o(),
    .length_o(length_o),
    .multicast_o(multicast_o),
    .reduce_o(),
    .maximum_o(),
    .last_o()
  );

  // The route found in the register travels through the buffer with its flit.
  localparam int RouteWidth = (Stages == 1) ? 0 : 5;
  localparam int EntryWidth = FlitWidth + RouteWidth;
  logic [EntryWidth-1:0] entry, front;
  logic front_valid;
  assign front_flit = front[FlitWidth-1:0];
  if (Stages == 1) begin : gen_plain_entry
    assign entry = pushed;
  end else begin : gen_routed_entry
    assign entry = {route, pushed};
    assign needed = front[FlitWidth +: 5];
  end

  if (Multicast != 0) begin : gen_fork
    logic [5*EntryWidth-1:0] branch_entry;
    fork_fifo #(
      .Width(EntryWidth),
      .Depth(FifoDepth),
      .Branches(5)
    ) u_buffer (
      .clk_i,
      .rst_ni,
      .valid_i(push & !push_reduce),
      .ready_o(),
      .flit_i(entry),
      .last_i(pushed[FlitWidth-1]),
      .free_o(buffer_free),
      .front_flit_o(front),
      .front_valid_o(front_valid),
      .needed_i(needed),
      .branch_valid_o(branch_valid_o),
      .branch_flit_o(branch_entry),
      .branch_last_o(branch_last_o),
      .branch_taken_i(branch_taken_i)
    );
    for (genvar o = 0; o < 5; o++) begin : gen_branch
      assign branch_flit_o[o*FlitWidth +: FlitWidth] = branch_entry[o*EntryWidth +: FlitWidth];
      if (RouteWidth != 0) begin : gen_unused
        logic unused_route;
        assign unused_route = ^branch_entry[o*EntryWidth + FlitWidth +: 5];
      end
    end
  end else begin : gen_fifo
    fifo #(
      .Width(EntryWidth),
      .Depth(FifoDepth)
    ) u_buffer (
      .clk_i,
      .rst_ni,
      .valid_i(push & !push_reduce),
      .ready_o(),
      .data_i(entry),
      .free_o(buffer_free),
      .valid_o(front_valid),
      .ready_i(branch_taken_i != '0),
      .data_o(front)
    );
    assign branch_valid_o = needed & {5{front_valid}};
    assign branch_flit_o = {5{front_flit}};
    assign branch_last_o = {5{front_flit[FlitWidth-1]}};
  end

  if (Reduction != 0) begin : gen_operands
    assign offered_reduce = flit_i[FlitWidth-2-Multicast];
    fifo #(
      .Width(FlitWidth),
      .Depth(FifoDepth)
    ) u_operands (
      .clk_i,
      .rst_ni,
      .valid_i(push & push_reduce),
      .ready_o(),
      .data_i(pushed),
      .free_o(operand_buffer_free),
      .valid_o(operand_valid_o),
      .ready_i(operand_taken_i),
      .data_o(operand_flit_o)
    );
  end else begin : gen_no_operands
    assign offered_reduce = 1'b0;
    assign operand_buffer_free = '0;
    assign operand_valid_o = 1'b0;
    assign operand_flit_o = '0;
    logic unused_taken;
    assign unused_taken = operand_taken_i;
  end

`ifndef SYNTHESIS
  // What a packet's first flit said, and how many flits of it have come.
  localparam int HeaderWidth = FlitWidth - 1 - PayloadWidth;
  logic [HeaderWidth-1:0] came, open_q;
  logic [CountWidth-1:0] came_length;
  logic came_multicast, came_reduce;
  int came_q;
  assign came = flit_i[PayloadWidth +: HeaderWidth];
  header #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .PayloadWidth(PayloadWidth),
    .Multicast(Multicast),
    .Reduction(Reduction),
    .CutThrough(CutThrough)
  ) u_came (
    .flit_i(flit_i),
    .row_o(),
    .col_o(),
    .row_mask_o(),
    .col_mask_o(),
    .length_o(came_length),
    .multicast_o(came_multicast),
    .reduce_o(came_reduce),
    .maximum_o(),
    .last_o()
  );
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      came_q <= 0;
    end else if (valid_i && ready_o) begin
      came_q <= flit_i[FlitWidth-1] ? 0 : came_q + 1;
      open_q <= came;
      assert (came_q == 0 || came == open_q) else $error("input_port: a header changes in a packet");
      // Longer ones would also void cut-through if the header's few bits cannot tell.
      if (CutThrough != 0 && (came_multicast || came_reduce)) begin
        assert (came_q < int'(came_length) && (!flit_i[FlitWidth-1] || came_q + 1 == int'(came_length)))
        else $error("input_port: flit %0d of a packet whose header says %0d", came_q + 1, came_length);
      end
    end
  end

  always @(posedge clk_i) begin
    if (rst_ni && front_valid) begin
      assert (needed != '0 || multicast_o) else $error("input_port: a flit goes nowhere");
      assert (multicast_o || $onehot(needed)) else $error("input_port: a unicast is forked");
      assert (!multicast_o || CutThrough == 0 || (length_o != '0 && int'(length_o) <= FifoDepth))
      else $error("input_port: multicast packet of %0d flits, buffers of %0d", length_o, FifoDepth);
    end
    if (rst_ni && push) begin
      assert ((push_reduce ? operand_buffer_free : buffer_free) != '0)
      else $error("input_port: a flit finds no place");
    end
  end
`endif
endmodule
