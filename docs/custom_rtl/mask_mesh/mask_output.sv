// Output of a router: takes one packet at a time, from its first flit to its last, and buffers it.
module mask_output
  import mask_pkg::flit_t;
#(
  /// Requesters.
  parameter int Requesters = 6,
  /// Flits held.
  parameter int Depth = 2,
  /// Cycles from one flit on the link to the next, at least.
  parameter int Interval = 1,
  /// Next packet: 0: of the first requester after the last winner, around the end; 1: of the lowest.
  parameter int Arbiter = 0
) (
  /// Clock, rising edge.
  input  logic                   clk,
  /// Reset, active high, synchronous.
  input  logic                   rst,
  /// A requester offers a flit.
  input  logic  [Requesters-1:0] in_valid,
  /// The offered flits.
  input  flit_t [Requesters-1:0] in_flit,
  /// The requester's flit is taken.
  output logic  [Requesters-1:0] in_taken,
  /// The link is offered a flit.
  output logic                   out_valid,
  /// It is taken in this cycle if it is offered.
  input  logic                   out_ready,
  /// The offered flit.
  output flit_t                  out_flit
);
  localparam int WaitWidth = $clog2(Interval + 1);

  // `later_q` marks the requesters after the last winner.
  logic [Requesters-1:0] later_q, eligible, grant, owner_q;
  logic locked_q, room, held, rested;
  logic [WaitWidth-1:0] wait_q;
  flit_t chosen;

  always_comb begin
    eligible = in_valid & later_q;
    if (eligible == '0 || Arbiter == 1) eligible = in_valid;
    grant = locked_q ? owner_q : eligible & (~eligible + 1'b1);
    chosen = '0;
    for (int i = 0; i < Requesters; i++) begin
      if (grant[i]) chosen |= in_flit[i];
    end
  end
  assign in_taken = room ? grant & in_valid : '0;

  always_ff @(posedge clk) begin
    if (rst) begin
      locked_q <= 1'b0;
      owner_q <= '0;
      later_q <= '0;
    end else if (in_taken != '0) begin
      locked_q <= !chosen.last;
      owner_q <= grant;
      later_q <= ~(grant | (grant - 1'b1));
    end
  end

  mask_fifo #(
    .Depth(Depth)
  ) u_fifo (
    .clk,
    .rst,
    .in_valid((grant & in_valid) != '0),
    .in_ready(room),
    .in_flit(chosen),
    .out_valid(held),
    .out_ready(out_ready && rested),
    .out_flit
  );

  assign rested = wait_q == '0;
  assign out_valid = held && rested;
  always_ff @(posedge clk) begin
    if (rst) wait_q <= '0;
    else if (out_valid && out_ready) wait_q <= WaitWidth'(Interval - 1);
    else if (!rested) wait_q <= wait_q - WaitWidth'(1);
  end
endmodule
