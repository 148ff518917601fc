// Streams words of 32-bit elements through one operation: element by element, or row by row.
//
//   job_operation_i                result
//   0  add                         A + B, wrapping
//   1  maximum                     the larger of A and B
//   2  scale                       A * multiplier, shifted right, saturated to 32 bits
//   3  quantize                    the same, saturated to OperandWidth bits
//   4  exp                         2^(A / 256) in steps of 2^-16; A above zero counts as zero
//   5  multiply                    A * low 16 bits of B, shifted right, saturated to 32 bits
//   6  row sum                     the sum of a row's elements, wrapping
//   7  row maximum                 the largest of a row's elements
//
// Elements are two's complement; element 0 of a word is in its low bits. B is taken together with A by
// add, maximum and multiply, and not at all by the others. A row's result is a word with it in every element.
//
// A result that is offered and not taken stops the whole unit. A missing operand stops nothing: what
// is inside moves on.
module vector_unit #(
  /// Elements of a word; 1 to 64.
  parameter int Lanes = 2,
  /// Bits to which a quantized element is saturated; 2 to 16.
  parameter int OperandWidth = 8,
  /// Bits of a job's words a row, and of its rows; 8 to 32.
  parameter int LengthWidth = 16
) (
  /// Clock, rising edge.
  input  logic                   clk_i,
  /// Reset, active low, synchronous.
  input  logic                   rst_ni,
  /// A job is offered.
  input  logic                   job_valid_i,
  /// The job is taken in this cycle if it is offered.
  output logic                   job_ready_o,
  /// Its operation: table above.
  input  logic [2:0]             job_operation_i,
  /// Its words a row; at least 1.
  input  logic [LengthWidth-1:0] job_words_i,
  /// Its rows; at least 1.
  input  logic [LengthWidth-1:0] job_rows_i,
  /// Factor of scale and quantize, two's complement.
  input  logic [15:0]            job_multiplier_i,
  /// Bits by which scale, quantize and multiply shift right, rounding down.
  input  logic [5:0]             job_shift_i,
  /// A word of A is offered.
  input  logic                   a_valid_i,
  /// The word of A is taken in this cycle if it is offered.
  output logic                   a_ready_o,
  /// The word of A.
  input  logic [Lanes*32-1:0]    a_data_i,
  /// A word of B is offered.
  input  logic                   b_valid_i,
  /// The word of B is taken in this cycle if it is offered.
  output logic                   b_ready_o,
  /// The word of B.
  input  logic [Lanes*32-1:0]    b_data_i,
  /// A word of results is offered.
  output logic                   result_valid_o,
  /// The word of results is taken in this cycle if it is offered.
  input  logic                   result_ready_i,
  /// The word of results.
  output logic [Lanes*32-1:0]    result_data_o,
  /// The word is the last of its job.
  output logic                   result_last_o
);
  if (Lanes < 1 || Lanes > 64) begin : gen_illegal_lanes
    $error("vector_unit: Lanes is %0d, must be 1 to 64", Lanes);
  end
  if (OperandWidth < 2 || OperandWidth > 16) begin : gen_illegal_operand_width
    $error("vector_unit: OperandWidth is %0d, must be 2 to 16", OperandWidth);
  end
  if (LengthWidth < 8 || LengthWidth > 32) begin : gen_illegal_length_width
    $error("vector_unit: LengthWidth is %0d, must be 8 to 32", LengthWidth);
  end

  logic enable, enter, first, row_last, last;
  logic [2:0] operation;
  logic [15:0] multiplier;
  logic [5:0] shift;
  logic [Lanes*32-1:0] lanes;

  // What the words in the lanes' two steps are; a step may be empty.
  logic [1:0] valid_q, first_q, row_last_q, last_q;
  logic [1:0][2:0] operation_q;
  logic reduces, result_valid_q, result_last_q;

  assign enable = ~result_valid_q | result_ready_i;

  vector_sequencer #(
    .LengthWidth(LengthWidth)
  ) u_vector_sequencer (
    .clk_i,
    .rst_ni,
    .enable_i(enable),
    .job_valid_i,
    .job_ready_o,
    .job_operation_i,
    .job_words_i,
    .job_rows_i,
    .job_multiplier_i,
    .job_shift_i,
    .a_valid_i,
    .a_ready_o,
    .b_valid_i,
    .b_ready_o,
    .enter_o(enter),
    .operation_o(operation),
    .multiplier_o(multiplier),
    .shift_o(shift),
    .first_o(first),
    .row_last_o(row_last),
    .last_o(last)
  );

  for (genvar l = 0; l < Lanes; l++) begin : gen_lane
    vector_lane #(
      .OperandWidth(OperandWidth)
    ) u_lane (
      .clk_i,
      .enable_i(enable),
      .operation_i(operation),
      .multiplier_i(multiplier),
      .shift_i(shift),
      .a_i(a_data_i[l*32 +: 32]),
      .b_i(b_data_i[l*32 +: 32]),
      .quantize_i(operation_q[0] == 3'd3),
      .data_o(lanes[l*32 +: 32])
    );
  end

  assign reduces = operation_q[1][2:1] == 2'd3;

  vector_reduce #(
    .Lanes(Lanes)
  ) u_vector_reduce (
    .clk_i,
    .enable_i(enable & valid_q[1]),
    .reduce_i(reduces),
    .maximum_i(operation_q[1][0]),
    .first_i(first_q[1]),
    .data_i(lanes),
    .data_o(result_data_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      result_valid_q <= 1'b0;
    end else if (enable) begin
      valid_q <= {valid_q[0], enter};
      result_valid_q <= valid_q[1] & (row_last_q[1] | ~reduces);
    end
  end

  always_ff @(posedge clk_i) begin
    if (enable) begin
      operation_q <= {operation_q[0], operation};
      first_q <= {first_q[0], first};
      row_last_q <= {row_last_q[0], row_last};
      last_q <= {last_q[0], last};
      result_last_q <= last_q[1];
    end
  end

  assign result_valid_o = result_valid_q;
  assign result_last_o = result_last_q;
endmodule
