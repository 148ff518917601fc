// One lane of the vector unit: two steps, of which the first computes and the second shifts and
// saturates.
//
// What is not scaled has 32 bits, which saturation to 32 bits leaves as they are.
module vector_lane #(
  /// Bits to which a quantized element is saturated.
  parameter int OperandWidth = 8
) (
  /// Clock, rising edge.
  input  logic        clk_i,
  /// Both steps move.
  input  logic        enable_i,
  /// Operation of the elements that enter; see vector_unit.sv.
  input  logic [2:0]  operation_i,
  /// Factor of a scaling, two's complement.
  input  logic [15:0] multiplier_i,
  /// Shift of a scaling.
  input  logic [5:0]  shift_i,
  /// Element of A.
  input  logic [31:0] a_i,
  /// Element of B.
  input  logic [31:0] b_i,
  /// The element in the second step is saturated to `OperandWidth` bits.
  input  logic        quantize_i,
  /// What the lane makes of an element, two steps later.
  output logic [31:0] data_o
);
  // Largest and smallest element of each of the two widths.
  localparam logic signed [47:0] WideMax = 48'sh7fff_ffff;
  localparam logic signed [47:0] NarrowMax = (48'sd1 <<< (OperandWidth - 1)) - 48'sd1;

  logic signed [47:0] value_d, value_q, scaled, shifted, top, bottom;
  logic [5:0] amount_d, amount_q;
  logic [31:0] combined, data_q;
  logic [15:0] power;
  logic [23:0] halvings;
  logic positive;

  // Multiply takes its factor from B, scale and quantize theirs from the job.
  assign scaled = 48'($signed(a_i)) * 48'($signed(operation_i[2] ? b_i[15:0] : multiplier_i));
  assign positive = ~a_i[31] & (a_i != '0);
  // 2^(a/256) is the power of the exponent's fraction, halved as often as its whole part says. The
  // fraction is counted from the whole number below; so below zero there is at least one halving.
  assign halvings = -a_i[31:8];

  exp2_table u_exp2_table (
    .fraction_i(positive ? 8'd0 : a_i[7:0]),
    .power_o(power)
  );

  always_comb begin
    if (!operation_i[0]) combined = a_i + b_i;
    else combined = ($signed(a_i) > $signed(b_i)) ? a_i : b_i;
  end

  always_comb begin
    amount_d = '0;
    unique case (operation_i[2:1])
      2'd0: value_d = 48'($signed(combined));
      2'd1: begin
        value_d = scaled;
        amount_d = shift_i;
      end
      2'd2: begin
        if (operation_i[0]) begin
          value_d = scaled;
          amount_d = shift_i;
        end else begin
          value_d = 48'({power, 1'b0});
          if (!positive) amount_d = (halvings > 24'd17) ? 6'd17 : halvings[5:0];
        end
      end
      default: value_d = 48'($signed(a_i));
    endcase
  end

  assign shifted = value_q >>> amount_q;
  assign top = quantize_i ? NarrowMax : WideMax;
  assign bottom = ~top;

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      value_q <= value_d;
      amount_q <= amount_d;
      if (shifted > top) data_q <= top[31:0];
      else if (shifted < bottom) data_q <= bottom[31:0];
      else data_q <= shifted[31:0];
    end
  end

  assign data_o = data_q;
endmodule
