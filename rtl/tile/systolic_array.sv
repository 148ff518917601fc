// Systolic array for int matrix products, weight- or output-stationary by job.
//
// Weight-stationary fold: C[length, Cols] = A[length, Rows] W[Rows, Cols]. North: the rows of W in
// order; west: the rows of A. Output-stationary fold: C[Rows, Cols] = A[Rows, length] B[length, Cols].
// West: the columns of A; north: the rows of B, both taken together. Results: the rows of C in order.
// Element 0 of a word is in its low bits. Row 0 of the array is the southernmost.
//
// A result that is offered and not taken stops the whole array. A missing operand stops nothing: an
// empty step enters the array, and what is inside moves on.
module systolic_array #(
  /// Rows of processing elements; 2 to 256.
  parameter int Rows = 8,
  /// Columns of processing elements; 2 to 256.
  parameter int Cols = 8,
  /// Bits of an operand, two's complement; 2 to 16.
  parameter int OperandWidth = 8,
  /// Bits of a result, two's complement, wrapping; 2 OperandWidth to 64.
  parameter int AccWidth = 32,
  /// Bits of a job's length; 8 to 32.
  parameter int LengthWidth = 16
) (
  /// Clock, rising edge.
  input  logic                         clk_i,
  /// Reset, active low, synchronous.
  input  logic                         rst_ni,
  /// A job (one fold) is offered.
  input  logic                         job_valid_i,
  /// The job is taken in this cycle if it is offered.
  output logic                         job_ready_o,
  /// Dataflow of the job: 0 weight-stationary, 1 output-stationary.
  input  logic                         job_output_stationary_i,
  /// Rows of A (weight-stationary) or steps (output-stationary) of the fold; at least 1.
  input  logic [LengthWidth-1:0]       job_length_i,
  /// A west word is offered.
  input  logic                         west_valid_i,
  /// The west word is taken in this cycle if it is offered.
  output logic                         west_ready_o,
  /// A row (weight-stationary) or a column (output-stationary) of A.
  input  logic [Rows*OperandWidth-1:0] west_data_i,
  /// A north word is offered.
  input  logic                         north_valid_i,
  /// The north word is taken in this cycle if it is offered.
  output logic                         north_ready_o,
  /// A row of the weights or of B.
  input  logic [Cols*OperandWidth-1:0] north_data_i,
  /// A row of results is offered.
  output logic                         result_valid_o,
  /// The row of results is taken in this cycle if it is offered.
  input  logic                         result_ready_i,
  /// A row of C.
  output logic [Cols*AccWidth-1:0]     result_data_o,
  /// The row is the last of its fold.
  output logic                         result_last_o
);
  // Steps from the entry of a row of operands to its (first) row of results.
  localparam int Latency = Rows + Cols - 1;

  if (Rows < 2 || Rows > 256) begin : gen_illegal_rows
    $error("systolic_array: Rows must be 2 to 256");
  end
  if (Cols < 2 || Cols > 256) begin : gen_illegal_cols
    $error("systolic_array: Cols must be 2 to 256");
  end
  if (OperandWidth < 2 || OperandWidth > 16) begin : gen_illegal_operand_width
    $error("systolic_array: OperandWidth must be 2 to 16");
  end
  if (AccWidth < 2 * OperandWidth || AccWidth > 64) begin : gen_illegal_acc_width
    $error("systolic_array: AccWidth must be 2*OperandWidth to 64");
  end
  if (LengthWidth < 8 || LengthWidth > 32) begin : gen_illegal_length_width
    $error("systolic_array: LengthWidth must be 8 to 32");
  end

  logic enable, output_stationary, first, last, result, result_last;
  logic [Rows-1:0] load;
  logic [Latency-1:0] result_q, release_q, result_last_q;

  // Word c of a row enters element c; word Cols leaves the row. Rows likewise, from Rows down to 0.
  logic [Rows-1:0][Cols:0][OperandWidth-1:0] west;
  logic [Rows-1:0][Cols:0] west_load, west_first, west_last;
  logic [Rows:0][Cols-1:0][OperandWidth-1:0] north;
  logic [Rows:0][Cols-1:0][AccWidth-1:0] sum;

  assign enable = ~result_valid_o | result_ready_i;

  fold_sequencer #(
    .Rows(Rows),
    .LengthWidth(LengthWidth)
  ) u_fold_sequencer (
    .clk_i,
    .rst_ni,
    .enable_i(enable),
    .in_flight_i(|result_q),
    .job_valid_i,
    .job_ready_o,
    .job_output_stationary_i,
    .job_length_i,
    .west_valid_i,
    .west_ready_o,
    .north_valid_i,
    .north_ready_o,
    .output_stationary_o(output_stationary),
    .load_o(load),
    .first_o(first),
    .last_o(last),
    .result_o(result),
    .result_last_o(result_last)
  );

  // The tags of a row of results travel beside the array, as long as the data are inside.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      result_q <= '0;
      release_q <= '0;
      result_last_q <= '0;
    end else if (enable) begin
      result_q <= {result_q[Latency-2:0], result};
      release_q <= {release_q[Latency-2:0], last};
      result_last_q <= {result_last_q[Latency-2:0], result_last};
    end
  end

  assign result_valid_o = result_q[Latency-1];
  assign result_last_o = result_last_q[Latency-1];

  for (genvar r = 0; r < Rows; r++) begin : gen_west
    logic [OperandWidth-1:0] operand;

    // An empty step carries zeros, which change no sum.
    assign operand = (west_valid_i & west_ready_o) ? west_data_i[r*OperandWidth +: OperandWidth] : '0;

    delay_line #(
      .Width(OperandWidth + 3),
      .Steps(Rows - 1 - r)
    ) u_skew (
      .clk_i,
      .rst_ni,
      .enable_i(enable),
      .data_i({load[r], first, last, operand}),
      .data_o({west_load[r][0], west_first[r][0], west_last[r][0], west[r][0]})
    );
  end

  for (genvar c = 0; c < Cols; c++) begin : gen_north
    delay_line #(
      .Width(OperandWidth),
      .Steps(c)
    ) u_skew (
      .clk_i,
      .rst_ni,
      .enable_i(enable),
      .data_i(north_data_i[c*OperandWidth +: OperandWidth]),
      .data_o(north[Rows][c])
    );

    assign sum[Rows][c] = '0;

    delay_line #(
      .Width(AccWidth),
      .Steps(Cols - 1 - c)
    ) u_deskew (
      .clk_i,
      .rst_ni,
      .enable_i(enable),
      .data_i(sum[0][c]),
      .data_o(result_data_o[c*AccWidth +: AccWidth])
    );
  end

  for (genvar r = 0; r < Rows; r++) begin : gen_row
    for (genvar c = 0; c < Cols; c++) begin : gen_col
      pe #(
        .OperandWidth(OperandWidth),
        .AccWidth(AccWidth)
      ) u_pe (
        .clk_i,
        .rst_ni,
        .enable_i(enable),
        .output_stationary_i(output_stationary),
        .west_i(west[r][c]),
        .load_i(west_load[r][c]),
        .first_i(west_first[r][c]),
        .last_i(west_last[r][c]),
        .east_o(west[r][c+1]),
        .load_o(west_load[r][c+1]),
        .first_o(west_first[r][c+1]),
        .last_o(west_last[r][c+1]),
        .north_i(north[r+1][c]),
        .south_o(north[r][c]),
        .release_i(release_q[Rows-1+c]),
        .sum_i(sum[r+1][c]),
        .sum_o(sum[r][c])
      );
    end
  end

  // What leaves the array in the east and the south.
  logic unused_edges;
  always_comb begin
    unused_edges = ^north[0];
    for (int r = 0; r < Rows; r++) begin
      unused_edges ^= ^{west[r][Cols], west_load[r][Cols], west_first[r][Cols], west_last[r][Cols]};
    end
  end
endmodule
