// What fifo holds to, whatever is offered and taken: see the labels of the assertions.
//
// Any one entry is watched on its way through. Assertions called `helper_` are about the inside and
// make the others provable by induction.
module fifo_proof #(
  /// Bits of an entry.
  parameter int Width = 2,
  /// Entries held.
  parameter int Depth = 4,
  /// Bits of a count of entries.
  localparam int CountWidth = $clog2(Depth + 1)
) (
  /// Clock, rising edge.
  input logic             clk_i,
  /// Reset, active low, synchronous; low in the first cycle.
  input logic             rst_ni,
  /// Any offers.
  input logic             valid_i,
  /// Any entries.
  input logic [Width-1:0] data_i,
  /// Any takings.
  input logic             ready_i,
  /// Any choice of the entry to watch.
  input logic             watch_i
);
  localparam int PointerWidth = $clog2(Depth);

  logic [CountWidth-1:0] free;
  logic [Width-1:0] data;
  logic valid, ready, push, pop, first_q;
  // Entries that are in by the handshakes alone.
  logic [CountWidth-1:0] held_q;
  // The watched entry is in, what it is, and how many go before it.
  logic inside_q;
  logic [Width-1:0] watched_q;
  logic [CountWidth-1:0] before_q;
  // The offer of the cycle before, if it was not taken.
  logic waiting_q;
  logic [Width-1:0] offer_q;

  fifo #(
    .Width(Width),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o(ready),
    .data_i,
    .free_o(free),
    .valid_o(valid),
    .ready_i,
    .data_o(data)
  );

  function automatic logic [PointerWidth-1:0] place(input logic [CountWidth-1:0] offset);
    return PointerWidth'((32'(u_fifo.front_q) + 32'(offset)) % Depth);
  endfunction

  assign push = valid_i & ready;
  assign pop = valid & ready_i;
  initial first_q = 1'b1;
  always_ff @(posedge clk_i) first_q <= 1'b0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= '0;
      inside_q <= 1'b0;
      waiting_q <= 1'b0;
    end else begin
      held_q <= held_q + CountWidth'(push) - CountWidth'(pop);
      waiting_q <= valid & !ready_i;
      if (!inside_q) inside_q <= push & watch_i;
      else if (pop && before_q == '0) inside_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    offer_q <= data;
    if (!inside_q) begin
      watched_q <= data_i;
      before_q <= held_q - CountWidth'(pop);
    end else begin
      before_q <= before_q - CountWidth'(pop);
    end
  end

  always_ff @(posedge clk_i) begin
    assume (rst_ni == 1'b0 || !first_q);
    if (rst_ni) begin
      free_is_true: assert (32'(held_q) <= Depth && free == CountWidth'(Depth) - held_q);
      takes_until_full: assert (ready == (held_q != CountWidth'(Depth)));
      offers_until_empty: assert (valid == (held_q != '0));
      leaves_in_order_unchanged: assert (!inside_q || before_q != '0
          || (valid && data == watched_q));
      offer_stays: assert (!waiting_q || (valid && data == offer_q));
      helper_place: assert (32'(u_fifo.front_q) < Depth && u_fifo.write_q == place(held_q));
      helper_watched: assert (!inside_q
          || (before_q < held_q && u_fifo.memory_q[place(before_q)] == watched_q));
      last_of_a_full_one_leaves: cover (inside_q && 32'(before_q) == Depth - 1 && pop);
    end
  end
endmodule
