// Output of a router: gives itself to one packet at a time, round-robin, until the packet's last flit.
//
// A multicast that has been granted a link offers nothing until there is room for all of it behind the
// link: it then never waits on its way out, whatever its other branches do. Everything behind the link
// comes through this output, so the room can only grow meanwhile.
module output_port #(
  /// Inputs that may ask for this output.
  parameter int Requesters = 5,
  /// Bits of a flit.
  parameter int FlitWidth = 83,
  /// Flits held by each input buffer.
  parameter int FifoDepth = 4,
  /// Flits held between the switch and the link: 0, or at least 2.
  parameter int OutputDepth = 0,
  /// 1: a multicast waits for room for all of it.
  parameter int CutThrough = 1,
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(FifoDepth + 1)
) (
  /// Clock, rising edge.
  input  logic                             clk_i,
  /// Reset, active low, synchronous.
  input  logic                             rst_ni,
  /// An input offers a flit.
  input  logic [Requesters-1:0]            valid_i,
  /// The offered flits.
  input  logic [Requesters*FlitWidth-1:0]  flit_i,
  /// The offered flit is its packet's last.
  input  logic [Requesters-1:0]            last_i,
  /// The input's packet is a multicast.
  input  logic [Requesters-1:0]            multicast_i,
  /// Its flits.
  input  logic [Requesters*CountWidth-1:0] length_i,
  /// An offered flit is taken.
  output logic [Requesters-1:0]            taken_o,
  /// Free places of the buffer behind the link.
  input  logic [CountWidth-1:0]            free_i,
  /// The link is offered a flit.
  output logic                             valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                             ready_i,
  /// The offered flit.
  output logic [FlitWidth-1:0]             flit_o
);
  if (OutputDepth < 0 || OutputDepth == 1) begin : gen_illegal_depth
    $error("output_port: OutputDepth is %0d, must be 0 or at least 2", OutputDepth);
  end

  logic [Requesters-1:0] winner, granted, owner_q, offered;
  logic locked_q, fresh, switch_valid, switch_ready, clear, tail_taken;
  logic [FlitWidth-1:0] switch_flit;

  assign fresh = !locked_q && valid_i != '0;
  rr_arbiter #(
    .Requesters(Requesters)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .request_i(valid_i),
    .advance_i(fresh),
    .grant_o(winner)
  );

  assign granted = locked_q ? owner_q : winner;
  assign offered = clear ? granted & valid_i : '0;
  assign taken_o = switch_ready ? offered : '0;
  assign switch_valid = offered != '0;
  assign tail_taken = (taken_o & last_i) != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) locked_q <= 1'b0;
    else locked_q <= (locked_q | fresh) & !tail_taken;
  end
  always_ff @(posedge clk_i) begin
    if (fresh) owner_q <= winner;
  end

  always_comb begin
    switch_flit = '0;
    for (int i = 0; i < Requesters; i++) begin
      if (granted[i]) switch_flit |= flit_i[i*FlitWidth +: FlitWidth];
    end
  end

  // Places between here and the next router's switch.
  localparam int RoomWidth = $clog2(FifoDepth + OutputDepth + 1);
  logic [RoomWidth-1:0] room;

  if (CutThrough != 0) begin : gen_cut_through
    logic started_q;
    logic [CountWidth-1:0] length;
    always_comb begin
      length = '0;
      for (int i = 0; i < Requesters; i++) begin
        if (granted[i]) length |= length_i[i*CountWidth +: CountWidth];
      end
    end
    assign clear = started_q || (granted & multicast_i) == '0 || room >= RoomWidth'(length);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) started_q <= 1'b0;
      else started_q <= (started_q | taken_o != '0) & !tail_taken;
    end
  end else begin : gen_wormhole
    assign clear = 1'b1;
    logic unused_room;
    assign unused_room = ^{room, length_i, multicast_i};
  end

  if (OutputDepth == 0) begin : gen_link
    assign room = free_i;
    assign valid_o = switch_valid;
    assign flit_o = switch_flit;
    assign switch_ready = ready_i;
  end else begin : gen_buffer
    localparam int HeldWidth = $clog2(OutputDepth + 1);
    logic [HeldWidth-1:0] free;
    fifo #(
      .Width(FlitWidth),
      .Depth(OutputDepth)
    ) u_buffer (
      .clk_i,
      .rst_ni,
      .valid_i(switch_valid),
      .ready_o(switch_ready),
      .data_i(switch_flit),
      .free_o(free),
      .valid_o,
      .ready_i,
      .data_o(flit_o)
    );
    assign room = RoomWidth'(free_i) + RoomWidth'(free);
  end

`ifndef SYNTHESIS
  logic [FlitWidth-1:0] flit_q;
  logic waiting_q;
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      waiting_q <= 1'b0;
    end else begin
      waiting_q <= valid_o & !ready_i;
      flit_q <= flit_o;
      assert ($onehot0(granted)) else $error("output_port: granted twice");
      assert (!waiting_q || (valid_o && flit_o == flit_q))
      else $error("output_port: an offer was changed or taken back");
    end
  end
`endif
endmodule
