// Tells when the bursts of column commands are over, by a mark a burst that moves up a cycle a cycle.
//
// A burst starts Rl or Wl cycles after its command and takes Bl. Bursts end in the order of their
// commands, one a cycle at most, if the data bus is never asked for two at once.
module burst_timer #(
  /// Read command to the first beat.
  parameter int Rl = 14,
  /// Write command to the first beat.
  parameter int Wl = 5,
  /// Cycles of a burst.
  parameter int Bl = 2
) (
  /// Clock, rising edge.
  input  logic clk_i,
  /// Reset, active low, synchronous; it forgets all bursts.
  input  logic rst_ni,
  /// A read command is given.
  input  logic read_i,
  /// A write command is given.
  input  logic write_i,
  /// This is the last cycle of a burst.
  output logic last_o
);
  localparam int Longest = ((Rl > Wl) ? Rl : Wl) + Bl - 1;

  // Mark n: a burst that ends in n cycles.
  logic [Longest-1:0] marks_q, moved, added;

  assign last_o = marks_q[0];
  assign moved = marks_q >> 1;

  always_comb begin
    added = '0;
    if (read_i) added[Rl+Bl-2] = 1'b1;
    if (write_i) added[Wl+Bl-2] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) marks_q <= '0;
    else marks_q <= moved | added;
  end

`ifndef SYNTHESIS
  always @(posedge clk_i) begin
    // A burst takes the bus for its last Bl cycles: the one before must have ended by then.
    if (rst_ni && added != '0) begin
      assert ({{Bl{1'b0}}, moved} << Bl < {{Bl{1'b0}}, added} << 1)
        else $error("burst_timer: two bursts on the bus at once");
    end
  end
`endif
endmodule
