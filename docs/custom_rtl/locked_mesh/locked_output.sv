// Output of a router: locked from a message's first data flit to its last, and buffers flits.
//
// A request or an acknowledge passes only while no message holds the output. Locked for a message, it
// takes the data of that one alone. Locked for a receiver, it takes the data of every message to that
// receiver, flit by flit, until all that have begun have ended.
module locked_output
  import locked_pkg::*;
#(
  /// Flits held.
  parameter int Depth = 2,
  /// Cycles from one flit on the link to the next, at least.
  parameter int Interval = 1,
  /// Next flit: 0: of the first input after the last winner, around the end; 1: of the lowest.
  parameter int Arbiter = 0,
  /// 0: locked for a message; 1: for its receiver.
  parameter int ByReceiver = 0,
  /// Messages that may hold the output at once.
  parameter int Messages = 16
) (
  /// Clock, rising edge.
  input  logic              clk,
  /// Reset, active high, synchronous.
  input  logic              rst,
  /// An input offers a flit.
  input  ports_t            in_valid,
  /// The offered flits.
  input  flit_t [Ports-1:0] in_flit,
  /// The input's flit is taken.
  output ports_t            in_taken,
  /// The link is offered a flit.
  output logic              out_valid,
  /// It is taken in this cycle if it is offered.
  input  logic              out_ready,
  /// The offered flit.
  output flit_t             out_flit
);
  localparam int WaitWidth = $clog2(Interval + 1);
  localparam int OpenWidth = $clog2(Messages + 1);

  // `later_q` marks the inputs after the last winner, `owner_q` the last winner.
  ports_t later_q, owner_q, may, eligible, grant;
  logic [OpenWidth-1:0] open_q, begins, ends;
  place_t receiver_q;
  logic room, held, rested;
  logic [WaitWidth-1:0] wait_q;
  flit_t chosen;

  for (genvar i = 0; i < Ports; i++) begin : gen_input
    logic goes_on;
    assign goes_on = (ByReceiver == 0) ? owner_q[i] : in_flit[i].to == receiver_q;
    assign may[i] = in_valid[i] && (open_q == '0 || (in_flit[i].kind == Data && goes_on));
  end

  always_comb begin
    eligible = may & later_q;
    if (eligible == '0 || Arbiter == 1) eligible = may;
    grant = eligible & (~eligible + 1'b1);
    chosen = '0;
    for (int i = 0; i < Ports; i++) begin
      if (grant[i]) chosen |= in_flit[i];
    end
  end
  assign in_taken = room ? grant : '0;
  assign begins = OpenWidth'(chosen.kind == Data && chosen.first);
  assign ends = OpenWidth'(chosen.kind == Data && chosen.last);

  always_ff @(posedge clk) begin
    if (rst) begin
      open_q <= '0;
      owner_q <= '0;
      later_q <= '0;
      receiver_q <= '0;
    end else if (in_taken != '0) begin
      open_q <= open_q + begins - ends;
      owner_q <= grant;
      later_q <= ~(grant | (grant - 1'b1));
      receiver_q <= chosen.to;
    end
  end

  locked_fifo #(
    .Depth(Depth)
  ) u_fifo (
    .clk,
    .rst,
    .in_valid(grant != '0),
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
