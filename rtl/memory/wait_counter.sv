// Cycles until a command is allowed again: the longest of the waits that were asked for.
module wait_counter #(
  /// Bits of a count of cycles.
  parameter int Width = 12
) (
  /// Clock, rising edge.
  input  logic             clk_i,
  /// Reset, active low, synchronous; after it the command is allowed.
  input  logic             rst_ni,
  /// The command is allowed no earlier than this many cycles from now; 0 asks for nothing.
  input  logic [Width-1:0] wait_i,
  /// The command is allowed in this cycle.
  output logic             allowed_o
);
  logic [Width-1:0] left_q, left_d, asked;

  // What is asked in this cycle counts from the next on, when one cycle has gone.
  assign asked = (wait_i == '0) ? '0 : wait_i - Width'(1);
  assign allowed_o = left_q == '0;

  always_comb begin
    left_d = allowed_o ? '0 : left_q - Width'(1);
    if (asked > left_d) left_d = asked;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) left_q <= '0;
    else left_q <= left_d;
  end
endmodule
