// Five-port mesh router: X-first routing, unicast by wormhole, multicast by virtual cut-through.
//
// A flit that is written into an input buffer in one cycle can leave in the next. Every output grants
// one packet at a time, round-robin, and stays with it to its last flit. Ports are numbered
// 0 local, 1 north, 2 east, 3 south, 4 west; vectors over ports are packed in that order.
//
// A multicast packet forks here: each of its branches asks for its output by itself, and is granted
// only when the next buffer has room for the whole packet, so no branch ever waits inside the network
// while it holds an output. Local delivery needs no room: a tile takes every flit in bounded time.
module router #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Flits held by each input buffer; at least 2. A multicast packet is at most this long.
  parameter int FifoDepth = 4,
  /// Bits of a flit's payload.
  parameter int PayloadWidth = 64,
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(FifoDepth + 1),
  /// Bits of a row index.
  localparam int RowWidth = (Rows > 1) ? $clog2(Rows) : 1,
  /// Bits of a column index.
  localparam int ColWidth = (Cols > 1) ? $clog2(Cols) : 1,
  /// Bits of a flit: last, multicast, length, row mask, column mask, payload.
  localparam int FlitWidth = 2 + CountWidth + Rows + Cols + PayloadWidth
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
  /// Free places of the input buffers, for the neighbours' cut-through grants.
  output logic [5*CountWidth-1:0] in_free_o,
  /// A flit is offered at an output port.
  output logic [4:0]              out_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic [4:0]              out_ready_i,
  /// The offered flits.
  output logic [5*FlitWidth-1:0]  out_flit_o,
  /// Free places of the buffers behind the output ports 1 to 4; the local port needs none.
  input  logic [4*CountWidth-1:0] out_free_i
);
  localparam int Ports = 5;
  localparam int Local = 0;
  localparam int ColMaskLsb = PayloadWidth;
  localparam int RowMaskLsb = ColMaskLsb + Cols;
  localparam int LengthLsb = RowMaskLsb + Rows;
  localparam int MulticastBit = LengthLsb + CountWidth;
  localparam int LastBit = MulticastBit + 1;

  if (Rows < 1 || Cols < 1 || PayloadWidth < 1) begin : gen_illegal_shape
    $error("router: Rows, Cols and PayloadWidth must be at least 1");
  end

  // Indexed [input][output].
  logic [Ports-1:0] branch_valid [Ports];
  logic [Ports-1:0] branch_last [Ports];
  logic [Ports*FlitWidth-1:0] branch_flit [Ports];
  logic [Ports-1:0] branch_request [Ports];
  // Indexed [output][input].
  logic [Ports-1:0] granted [Ports];

  for (genvar i = 0; i < Ports; i++) begin : gen_input
    logic [FlitWidth-1:0] front;
    logic [Ports-1:0] needed, taken;
    logic front_valid, multicast;
    logic [CountWidth-1:0] length;

    fork_fifo #(
      .Width(FlitWidth),
      .Depth(FifoDepth),
      .Branches(Ports)
    ) u_buffer (
      .clk_i,
      .rst_ni,
      .valid_i(in_valid_i[i]),
      .ready_o(in_ready_o[i]),
      .flit_i(in_flit_i[i*FlitWidth +: FlitWidth]),
      .last_i(in_flit_i[i*FlitWidth + LastBit]),
      .free_o(in_free_o[i*CountWidth +: CountWidth]),
      .front_flit_o(front),
      .front_valid_o(front_valid),
      .needed_i(needed),
      .branch_valid_o(branch_valid[i]),
      .branch_flit_o(branch_flit[i]),
      .branch_last_o(branch_last[i]),
      .branch_taken_i(taken)
    );

    xy_route #(
      .Rows(Rows),
      .Cols(Cols),
      .FromPort(i)
    ) u_route (
      .row_i,
      .col_i,
      .row_mask_i(front[RowMaskLsb +: Rows]),
      .col_mask_i(front[ColMaskLsb +: Cols]),
      .ports_o(needed)
    );

    assign multicast = front[MulticastBit];
    assign length = front[LengthLsb +: CountWidth];
    for (genvar o = 0; o < Ports; o++) begin : gen_branch
      logic room;
      if (o == Local) begin : gen_tile
        assign room = 1'b1;
      end else begin : gen_link
        assign room = !multicast || out_free_i[(o-1)*CountWidth +: CountWidth] >= length;
      end
      assign branch_request[i][o] = branch_valid[i][o] & room;
      assign taken[o] = granted[o][i] & branch_valid[i][o] & out_ready_i[o];
    end

`ifndef SYNTHESIS
    always @(posedge clk_i) begin
      if (rst_ni && front_valid && multicast) begin
        assert (length != '0 && FifoDepth - int'(length) >= 0)
        else $error("router: multicast packet of %0d flits, buffers of %0d", length, FifoDepth);
      end
    end
`else
    logic unused_front_valid;
    assign unused_front_valid = front_valid;
`endif
  end

  for (genvar o = 0; o < Ports; o++) begin : gen_output
    logic [Ports-1:0] request, winner, owner_q, offered, last;
    logic locked_q, fresh, tail_taken;

    for (genvar i = 0; i < Ports; i++) begin : gen_request
      assign request[i] = branch_request[i][o];
      assign offered[i] = branch_valid[i][o] & granted[o][i];
      assign last[i] = branch_last[i][o] & granted[o][i];
    end

    assign fresh = !locked_q && request != '0;
    rr_arbiter #(
      .Requesters(Ports)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(request),
      .advance_i(fresh),
      .grant_o(winner)
    );

    assign granted[o] = locked_q ? owner_q : winner;
    assign out_valid_o[o] = offered != '0;
    assign tail_taken = out_valid_o[o] && out_ready_i[o] && last != '0;

    always_comb begin
      out_flit_o[o*FlitWidth +: FlitWidth] = '0;
      for (int i = 0; i < Ports; i++) begin
        if (granted[o][i]) begin
          out_flit_o[o*FlitWidth +: FlitWidth] |= branch_flit[i][o*FlitWidth +: FlitWidth];
        end
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) locked_q <= 1'b0;
      else locked_q <= (locked_q | fresh) & !tail_taken;
    end
    always_ff @(posedge clk_i) begin
      if (fresh) owner_q <= winner;
    end

`ifndef SYNTHESIS
    logic [FlitWidth-1:0] flit_q;
    logic waiting_q;
    always @(posedge clk_i) begin
      if (!rst_ni) begin
        waiting_q <= 1'b0;
      end else begin
        waiting_q <= out_valid_o[o] & !out_ready_i[o];
        flit_q <= out_flit_o[o*FlitWidth +: FlitWidth];
        assert ($onehot0(granted[o])) else $error("router: output %0d granted twice", o);
        assert (!waiting_q || (out_valid_o[o] && out_flit_o[o*FlitWidth +: FlitWidth] == flit_q))
        else $error("router: output %0d changed its offer", o);
      end
    end
`endif
  end
endmodule
