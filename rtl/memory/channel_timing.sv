// What the commands to one bank forbid the others: activates too close, columns too close, turnarounds.
module channel_timing #(
  /// Bank groups.
  parameter int BankGroups = 4,
  /// Bits of a count of cycles.
  parameter int TimerWidth = 12,
  /// Activate to activate of any bank.
  parameter int TRrdS = 4,
  /// Activate to activate in the same group.
  parameter int TRrdL = 4,
  /// Window that sees four activates at most.
  parameter int TFaw = 15,
  /// Read to read and write to write of any bank.
  parameter int TCcdS = 2,
  /// Read to read and write to write in the same group.
  parameter int TCcdL = 4,
  /// Read to write of any bank.
  parameter int TRtw = 13,
  /// Write to read of any bank.
  parameter int TWtrS = 13,
  /// Write to read in the same group.
  parameter int TWtrL = 15
) (
  /// Clock, rising edge.
  input  logic                  clk_i,
  /// Reset, active low, synchronous; after it everything is allowed.
  input  logic                  rst_ni,
  /// The group in which a row is opened, one-hot or zero.
  input  logic [BankGroups-1:0] activate_i,
  /// The group from which a burst is read, one-hot or zero.
  input  logic [BankGroups-1:0] read_i,
  /// The group to which a burst is written, one-hot or zero.
  input  logic [BankGroups-1:0] write_i,
  /// Activates are allowed, group by group.
  output logic [BankGroups-1:0] activate_ok_o,
  /// Reads are allowed, group by group.
  output logic [BankGroups-1:0] read_ok_o,
  /// Writes are allowed, group by group.
  output logic [BankGroups-1:0] write_ok_o
);
  // An activate is kept until three younger ones have come: the fifth must be TFaw after the first.
  localparam int Window = 4;

  logic [TimerWidth-1:0] since_q [Window];
  logic activate, read, write, window_ok, any_activate_ok, any_read_ok, any_write_ok;
  logic [TimerWidth-1:0] to_read, to_write;

  assign activate = |activate_i;
  assign read = |read_i;
  assign write = |write_i;

  always_comb begin
    to_read = '0;
    to_write = '0;
    if (read) begin
      to_read = TimerWidth'(TCcdS);
      to_write = TimerWidth'(TRtw);
    end
    if (write) begin
      to_read = TimerWidth'(TWtrS);
      to_write = TimerWidth'(TCcdS);
    end
  end

  wait_counter #(
    .Width(TimerWidth)
  ) u_activate (
    .clk_i,
    .rst_ni,
    .wait_i(activate ? TimerWidth'(TRrdS) : '0),
    .allowed_o(any_activate_ok)
  );

  wait_counter #(
    .Width(TimerWidth)
  ) u_read (
    .clk_i,
    .rst_ni,
    .wait_i(to_read),
    .allowed_o(any_read_ok)
  );

  wait_counter #(
    .Width(TimerWidth)
  ) u_write (
    .clk_i,
    .rst_ni,
    .wait_i(to_write),
    .allowed_o(any_write_ok)
  );

  for (genvar g = 0; g < BankGroups; g++) begin : gen_group
    logic group_activate_ok, group_read_ok, group_write_ok;
    logic [TimerWidth-1:0] to_group_read;

    always_comb begin
      to_group_read = '0;
      if (read_i[g]) to_group_read = TimerWidth'(TCcdL);
      if (write_i[g]) to_group_read = TimerWidth'(TWtrL);
    end

    wait_counter #(
      .Width(TimerWidth)
    ) u_activate (
      .clk_i,
      .rst_ni,
      .wait_i(activate_i[g] ? TimerWidth'(TRrdL) : '0),
      .allowed_o(group_activate_ok)
    );

    wait_counter #(
      .Width(TimerWidth)
    ) u_read (
      .clk_i,
      .rst_ni,
      .wait_i(to_group_read),
      .allowed_o(group_read_ok)
    );

    wait_counter #(
      .Width(TimerWidth)
    ) u_write (
      .clk_i,
      .rst_ni,
      .wait_i(write_i[g] ? TimerWidth'(TCcdL) : '0),
      .allowed_o(group_write_ok)
    );

    assign activate_ok_o[g] = any_activate_ok & window_ok & group_activate_ok;
    assign read_ok_o[g] = any_read_ok & group_read_ok;
    assign write_ok_o[g] = any_write_ok & group_write_ok;
  end

  // Cycles for which each of the last four activates still counts, the youngest first.
  assign window_ok = since_q[Window-1] == '0;

  function automatic logic [TimerWidth-1:0] one_less(input logic [TimerWidth-1:0] cycles);
    return (cycles == '0) ? '0 : cycles - TimerWidth'(1);
  endfunction

  always_ff @(posedge clk_i) begin
    for (int n = 0; n < Window; n++) begin
      if (!rst_ni) since_q[n] <= '0;
      else if (!activate) since_q[n] <= one_less(since_q[n]);
      else since_q[n] <= (n == 0) ? TimerWidth'(TFaw - 1) : one_less(since_q[(n == 0) ? 0 : n-1]);
    end
  end

`ifndef SYNTHESIS
  always @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((activate_i & ~activate_ok_o) == '0) else $error("channel_timing: early activate");
      assert ((read_i & ~read_ok_o) == '0) else $error("channel_timing: early read");
      assert ((write_i & ~write_ok_o) == '0) else $error("channel_timing: early write");
      assert ($onehot0({read_i, write_i})) else $error("channel_timing: two column commands");
      assert ($onehot0(activate_i)) else $error("channel_timing: two activates");
    end
  end
`endif
endmodule
