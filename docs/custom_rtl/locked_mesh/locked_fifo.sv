// FIFO with registered offers and room: a full one takes nothing, not even while something leaves it.
module locked_fifo
  import locked_pkg::flit_t;
#(
  /// Flits held; at least 2, for one flit a cycle.
  parameter int Depth = 2
) (
  /// Clock, rising edge.
  input  logic  clk,
  /// Reset, active high, synchronous.
  input  logic  rst,
  /// A flit is offered.
  input  logic  in_valid,
  /// There is a free place.
  output logic  in_ready,
  /// The offered flit.
  input  flit_t in_flit,
  /// There is an oldest flit.
  output logic  out_valid,
  /// It is taken in this cycle.
  input  logic  out_ready,
  /// The oldest flit.
  output flit_t out_flit
);
  localparam int IndexWidth = (Depth > 1) ? $clog2(Depth) : 1;
  localparam int CountWidth = $clog2(Depth + 1);
  localparam logic [IndexWidth-1:0] End = IndexWidth'(Depth - 1);

  flit_t places_q [Depth];
  logic [IndexWidth-1:0] read_q, write_q;
  logic [CountWidth-1:0] count_q;
  logic push, pop;

  assign in_ready = count_q < CountWidth'(Depth);
  assign out_valid = count_q > '0;
  assign out_flit = places_q[read_q];
  assign push = in_valid && in_ready;
  assign pop = out_valid && out_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      read_q <= '0;
      write_q <= '0;
      count_q <= '0;
    end else begin
      if (pop) read_q <= (read_q == End) ? '0 : read_q + IndexWidth'(1);
      if (push) write_q <= (write_q == End) ? '0 : write_q + IndexWidth'(1);
      if (push && !pop) count_q <= count_q + CountWidth'(1);
      if (pop && !push) count_q <= count_q - CountWidth'(1);
    end
  end

  always_ff @(posedge clk) begin
    if (push) places_q[write_q] <= in_flit;
  end
endmodule
