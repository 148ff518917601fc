// Round-robin arbiter: grants the first request at or after a pointer, in the cycle of the request.
//
// The pointer moves past the winner when `advance_i` says that the grant was used, so a requester
// waits for at most one grant of each other one.
module rr_arbiter #(
  /// Requesters.
  parameter int Requesters = 5
) (
  /// Clock, rising edge.
  input  logic                  clk_i,
  /// Reset, active low, synchronous.
  input  logic                  rst_ni,
  /// One bit a requester.
  input  logic [Requesters-1:0] request_i,
  /// The grant of this cycle is used.
  input  logic                  advance_i,
  /// One-hot; zero if nothing is requested.
  output logic [Requesters-1:0] grant_o
);
  // Bits at and above the pointer: 1 where a requester is first in line.
  logic [Requesters-1:0] preferred_q, preferred_d;
  logic [Requesters-1:0] first_line, lowest_preferred, lowest_any;

  assign first_line = request_i & preferred_q;
  assign lowest_preferred = first_line & (~first_line + Requesters'(1));
  assign lowest_any = request_i & (~request_i + Requesters'(1));
  assign grant_o = (first_line != '0) ? lowest_preferred : lowest_any;
  // All bits above the winner; empty after the last one, which is the same as all of them.
  assign preferred_d = ~(grant_o | (grant_o - Requesters'(1)));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) preferred_q <= '1;
    else if (advance_i) preferred_q <= preferred_d;
  end
endmodule
