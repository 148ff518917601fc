// FIFO whose offers and room come from registers alone: a full one takes nothing, not even in a cycle
// in which something leaves it.
module fifo #(
  /// Bits of an entry.
  parameter int Width = 8,
  /// Entries held; at least 2, for one entry a cycle.
  parameter int Depth = 4,
  /// Bits of a count of entries.
  localparam int CountWidth = $clog2(Depth + 1)
) (
  /// Clock, rising edge.
  input  logic                  clk_i,
  /// Reset, active low, synchronous.
  input  logic                  rst_ni,
  /// An entry is offered.
  input  logic                  valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                  ready_o,
  /// The offered entry.
  input  logic [Width-1:0]      data_i,
  /// Free places.
  output logic [CountWidth-1:0] free_o,
  /// There is an oldest entry.
  output logic                  valid_o,
  /// It is taken in this cycle.
  input  logic                  ready_i,
  /// The oldest entry.
  output logic [Width-1:0]      data_o
);
  localparam int PointerWidth = (Depth > 1) ? $clog2(Depth) : 1;
  localparam logic [PointerWidth-1:0] End = PointerWidth'(Depth - 1);

  if (Depth < 2) begin : gen_illegal_depth
    $error("fifo: Depth is %0d, must be at least 2", Depth);
  end

  logic [Width-1:0] memory_q [Depth];
  logic [PointerWidth-1:0] front_q, write_q;
  logic [CountWidth-1:0] count_q;
  logic push, pop;

  assign ready_o = count_q != CountWidth'(Depth);
  assign free_o = CountWidth'(Depth) - count_q;
  assign valid_o = count_q != '0;
  assign data_o = memory_q[front_q];
  assign push = valid_i & ready_o;
  assign pop = valid_o & ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      front_q <= '0;
      write_q <= '0;
      count_q <= '0;
    end else begin
      if (push) write_q <= (write_q == End) ? '0 : write_q + PointerWidth'(1);
      if (pop) front_q <= (front_q == End) ? '0 : front_q + PointerWidth'(1);
      count_q <= count_q + CountWidth'(push) - CountWidth'(pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) memory_q[write_q] <= data_i;
  end
endmodule
