// All-bank refresh: every TRefi cycles it halts the other commands, closes all rows and refreshes.
//
// The n-th refresh falls due n TRefi cycles after reset, whatever the delay of those before.
module refresh_timer #(
  /// Bits of a count of cycles.
  parameter int TimerWidth = 12,
  /// Cycles for which a refresh keeps the banks from activates.
  parameter int TRfc = 349,
  /// Cycles from a refresh falling due to the next; more than TRfc and the time to close all rows.
  parameter int TRefi = 3900
) (
  /// Clock, rising edge.
  input  logic clk_i,
  /// Reset, active low, synchronous.
  input  logic rst_ni,
  /// Some row is open.
  input  logic open_i,
  /// Every bank with an open row allows its precharge.
  input  logic precharge_ok_i,
  /// Every bank allows an activate, so far as its own timing goes.
  input  logic activate_ok_i,
  /// A refresh is due: nobody else gives a command.
  output logic halt_o,
  /// All open rows are closed in this cycle.
  output logic precharge_all_o,
  /// All banks are refreshed in this cycle.
  output logic refresh_o,
  /// The last refresh is over.
  output logic activate_ok_o
);
  localparam int PeriodWidth = $clog2(TRefi);

  logic [PeriodWidth-1:0] left_q;
  logic due_q, idle;

  assign halt_o = due_q;
  assign precharge_all_o = due_q & open_i & precharge_ok_i;
  assign refresh_o = due_q & ~open_i & activate_ok_i & idle;
  assign activate_ok_o = idle;

  wait_counter #(
    .Width(TimerWidth)
  ) u_refresh (
    .clk_i,
    .rst_ni,
    .wait_i(refresh_o ? TimerWidth'(TRfc) : '0),
    .allowed_o(idle)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q <= PeriodWidth'(TRefi - 1);
      due_q <= 1'b0;
    end else begin
      left_q <= (left_q == '0) ? PeriodWidth'(TRefi - 1) : left_q - PeriodWidth'(1);
      if (left_q == '0) due_q <= 1'b1;
      else if (refresh_o) due_q <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  always @(posedge clk_i) begin
    if (rst_ni) assert (left_q != '0 || !due_q) else $error("refresh_timer: a refresh was missed");
  end
`endif
endmodule
