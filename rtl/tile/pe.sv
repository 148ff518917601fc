// Processing element: one signed multiply-accumulate a cycle, in either dataflow.
//
// Weight-stationary: the partial sum from the north plus operand times weight goes south. A weight
// comes down the north path and stays in a shadow register when `load_i` meets it; `first_i` makes
// the shadow weight the active one, starting with the very operand it travels with.
//
// Output-stationary: the products of the west and the north operand add up here; `first_i` starts a
// sum, `last_i` ends it. The finished sum goes to the drain register, stays there until `release_i`,
// then moves south with the rest of its column. A west operand of zero leaves the sum as it is.
//
// The partial sum and the drain register are one register: the south output.
module pe #(
  /// Bits of an operand, two's complement.
  parameter int OperandWidth = 8,
  /// Bits of a sum, two's complement; sums wrap.
  parameter int AccWidth = 32
) (
  /// Clock, rising edge.
  input  logic                    clk_i,
  /// Reset of the control bits, active low, synchronous.
  input  logic                    rst_ni,
  /// Everything moves by one step; otherwise everything stands.
  input  logic                    enable_i,
  /// Dataflow; constant while any operand or result is inside the array.
  input  logic                    output_stationary_i,
  /// Operand from the west.
  input  logic [OperandWidth-1:0] west_i,
  /// The word from the north is this element's next weight (weight-stationary).
  input  logic                    load_i,
  /// The west operand is the first of a fold.
  input  logic                    first_i,
  /// The west operand is the last of a fold (output-stationary).
  input  logic                    last_i,
  /// West operand, a step later.
  output logic [OperandWidth-1:0] east_o,
  /// `load_i`, a step later.
  output logic                    load_o,
  /// `first_i`, a step later.
  output logic                    first_o,
  /// `last_i`, a step later.
  output logic                    last_o,
  /// Weight or operand from the north.
  input  logic [OperandWidth-1:0] north_i,
  /// Word from the north, a step later.
  output logic [OperandWidth-1:0] south_o,
  /// Finished sums of this column leave (output-stationary).
  input  logic                    release_i,
  /// Partial or finished sum from the north.
  input  logic [AccWidth-1:0]     sum_i,
  /// Partial or finished sum to the south.
  output logic [AccWidth-1:0]     sum_o
);
  logic [OperandWidth-1:0] east_q, south_q, shadow_q, weight_q, weight, factor;
  logic [AccWidth-1:0] sum_q, accumulator_q, addend, total;
  logic signed [2*OperandWidth-1:0] product;
  logic load_q, first_q, last_q, held_q, capture;

  assign weight = first_i ? shadow_q : weight_q;
  assign factor = output_stationary_i ? north_i : weight;
  assign product = $signed(west_i) * $signed(factor);

  always_comb begin
    if (!output_stationary_i) addend = sum_i;
    else if (first_i) addend = '0;
    else addend = accumulator_q;
  end

  assign total = addend + AccWidth'(product);
  assign capture = output_stationary_i & last_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      load_q <= 1'b0;
      first_q <= 1'b0;
      last_q <= 1'b0;
      held_q <= 1'b0;
    end else if (enable_i) begin
      load_q <= load_i;
      first_q <= first_i;
      last_q <= last_i;
      held_q <= capture | (held_q & ~release_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      east_q <= west_i;
      south_q <= north_i;
      if (load_i) shadow_q <= north_i;
      if (output_stationary_i) accumulator_q <= total;
      else weight_q <= weight;
      if (capture | ~output_stationary_i) sum_q <= total;
      else if (release_i | ~held_q) sum_q <= sum_i;
    end
  end

  assign east_o = east_q;
  assign load_o = load_q;
  assign first_o = first_q;
  assign last_o = last_q;
  assign south_o = south_q;
  assign sum_o = sum_q;
endmodule
