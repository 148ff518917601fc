// Addresses of nested loops, one a cycle: level 0 is the innermost.
//
// Level l goes `counts_i[l]` times round what is inside it, and moves the address by `strides_i[l]`
// from each time to the next. Addresses wrap.
module address_loop #(
  /// Nested loops; at least 1.
  parameter int Levels = 2,
  /// Bits of an address.
  parameter int AddressWidth = 12,
  /// Bits of a count.
  parameter int CountWidth = 16
) (
  /// Clock, rising edge.
  input  logic                           clk_i,
  /// Reset, active low, synchronous.
  input  logic                           rst_ni,
  /// Loops are offered.
  input  logic                           loops_valid_i,
  /// They are taken in this cycle if they are offered.
  output logic                           loops_ready_o,
  /// The first address.
  input  logic [AddressWidth-1:0]        base_i,
  /// How often each level goes round; at least 1.
  input  logic [Levels*CountWidth-1:0]   counts_i,
  /// By how much each level moves the address.
  input  logic [Levels*AddressWidth-1:0] strides_i,
  /// There is an address.
  output logic                           valid_o,
  /// It is used in this cycle.
  input  logic                           ready_i,
  /// The address.
  output logic [AddressWidth-1:0]        address_o,
  /// It is the last one of its loops.
  output logic                           last_o
);
  logic valid_q;
  logic [Levels-1:0][CountWidth-1:0] counts_q, round_q;
  logic [Levels-1:0][AddressWidth-1:0] strides_q;
  // Where each level's present round began; of level 0 that is the address.
  logic [Levels-1:0][AddressWidth-1:0] place_q;
  logic [AddressWidth-1:0] next_place;
  // A level is in its last round; all levels inside it are.
  logic [Levels-1:0] ends, inner_end;
  logic step, all_end;

  always_comb begin
    next_place = place_q[0];
    all_end = 1'b1;
    for (int l = 0; l < Levels; l++) begin
      ends[l] = round_q[l] == counts_q[l];
      inner_end[l] = all_end;
      if (all_end & ~ends[l]) next_place = place_q[l] + strides_q[l];
      all_end &= ends[l];
    end
  end

  assign valid_o = valid_q;
  assign address_o = place_q[0];
  assign last_o = all_end;
  assign step = valid_q & ready_i;
  assign loops_ready_o = ~valid_q | (step & last_o);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (loops_ready_o) valid_q <= loops_valid_i;
  end

  // Rounds are counted from one: the last round has the count's number.
  always_ff @(posedge clk_i) begin
    if (loops_ready_o & loops_valid_i) begin
      counts_q <= counts_i;
      strides_q <= strides_i;
      for (int l = 0; l < Levels; l++) begin
        round_q[l] <= CountWidth'(1);
        place_q[l] <= base_i;
      end
    end else if (step) begin
      for (int l = 0; l < Levels; l++) begin
        if (inner_end[l]) begin
          round_q[l] <= ends[l] ? CountWidth'(1) : round_q[l] + CountWidth'(1);
          place_q[l] <= next_place;
        end
      end
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    for (int l = 0; l < Levels; l++) begin
      if (rst_ni && loops_valid_i && counts_i[l*CountWidth +: CountWidth] == '0) begin
        $fatal(1, "address_loop: the count of level %0d is 0, must be at least 1", l);
      end
    end
  end
`endif
endmodule
