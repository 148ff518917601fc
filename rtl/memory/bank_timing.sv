// One bank: its open row, and from which cycle on each command is allowed by the bank alone.
module bank_timing #(
  /// Bits of a row number.
  parameter int RowWidth = 14,
  /// Bits of a count of cycles.
  parameter int TimerWidth = 12,
  /// Activate to read.
  parameter int TRcdRd = 15,
  /// Activate to write.
  parameter int TRcdWr = 13,
  /// Precharge to activate.
  parameter int TRp = 13,
  /// Activate to precharge.
  parameter int TRas = 35,
  /// Activate to activate.
  parameter int TRc = 48,
  /// Read to precharge.
  parameter int TRtp = 5,
  /// Write to precharge.
  parameter int TWtp = 23
) (
  /// Clock, rising edge.
  input  logic                clk_i,
  /// Reset, active low, synchronous; after it no row is open.
  input  logic                rst_ni,
  /// The bank's row is opened.
  input  logic                activate_i,
  /// The row that is opened.
  input  logic [RowWidth-1:0] row_i,
  /// The open row is closed.
  input  logic                precharge_i,
  /// A burst is read from the open row.
  input  logic                read_i,
  /// A burst is written to the open row.
  input  logic                write_i,
  /// A row is open.
  output logic                open_o,
  /// The open row; meaningless without one.
  output logic [RowWidth-1:0] row_o,
  /// Activate is allowed, if no row is open.
  output logic                activate_ok_o,
  /// Precharge is allowed.
  output logic                precharge_ok_o,
  /// Read is allowed, if the row is open.
  output logic                read_ok_o,
  /// Write is allowed, if the row is open.
  output logic                write_ok_o
);
  logic open_q;
  logic [RowWidth-1:0] row_q;
  logic [TimerWidth-1:0] to_activate, to_precharge, to_read, to_write;

  assign open_o = open_q;
  assign row_o = row_q;

  always_comb begin
    to_activate = '0;
    to_precharge = '0;
    to_read = '0;
    to_write = '0;
    if (activate_i) begin
      to_activate = TimerWidth'(TRc);
      to_precharge = TimerWidth'(TRas);
      to_read = TimerWidth'(TRcdRd);
      to_write = TimerWidth'(TRcdWr);
    end
    if (precharge_i) to_activate = TimerWidth'(TRp);
    if (read_i) to_precharge = TimerWidth'(TRtp);
    if (write_i) to_precharge = TimerWidth'(TWtp);
  end

  wait_counter #(
    .Width(TimerWidth)
  ) u_activate (
    .clk_i,
    .rst_ni,
    .wait_i(to_activate),
    .allowed_o(activate_ok_o)
  );

  wait_counter #(
    .Width(TimerWidth)
  ) u_precharge (
    .clk_i,
    .rst_ni,
    .wait_i(to_precharge),
    .allowed_o(precharge_ok_o)
  );

  wait_counter #(
    .Width(TimerWidth)
  ) u_read (
    .clk_i,
    .rst_ni,
    .wait_i(to_read),
    .allowed_o(read_ok_o)
  );

  wait_counter #(
    .Width(TimerWidth)
  ) u_write (
    .clk_i,
    .rst_ni,
    .wait_i(to_write),
    .allowed_o(write_ok_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (activate_i) open_q <= 1'b1;
    else if (precharge_i) open_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (activate_i) row_q <= row_i;
  end

`ifndef SYNTHESIS
  always @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!activate_i || (!open_q && activate_ok_o)) else $error("bank_timing: early activate");
      assert (!precharge_i || (open_q && precharge_ok_o)) else $error("bank_timing: early precharge");
      assert (!read_i || (open_q && read_ok_o)) else $error("bank_timing: early read");
      assert (!write_i || (open_q && write_ok_o)) else $error("bank_timing: early write");
      assert ($onehot0({activate_i, precharge_i, read_i, write_i}))
        else $error("bank_timing: two commands at once");
    end
  end
`endif
endmodule
