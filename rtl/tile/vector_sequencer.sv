// Takes jobs, and tells in every cycle whether a word enters the vector unit and what it is.
//
// The next job is taken in the cycle of a job's last word, so jobs follow each other without a gap.
module vector_sequencer #(
  /// Bits of a job's words a row, and of its rows.
  parameter int LengthWidth = 16
) (
  /// Clock, rising edge.
  input  logic                   clk_i,
  /// Reset, active low, synchronous.
  input  logic                   rst_ni,
  /// The unit moves by one step in this cycle.
  input  logic                   enable_i,
  /// A job is offered.
  input  logic                   job_valid_i,
  /// The job is taken in this cycle if it is offered.
  output logic                   job_ready_o,
  /// Its operation; see vector_unit.sv.
  input  logic [2:0]             job_operation_i,
  /// Its words a row; at least 1.
  input  logic [LengthWidth-1:0] job_words_i,
  /// Its rows; at least 1.
  input  logic [LengthWidth-1:0] job_rows_i,
  /// Factor of a scaling.
  input  logic [15:0]            job_multiplier_i,
  /// Shift of a scaling.
  input  logic [5:0]             job_shift_i,
  /// A word of A is offered.
  input  logic                   a_valid_i,
  /// The word of A is taken in this cycle if it is offered.
  output logic                   a_ready_o,
  /// A word of B is offered.
  input  logic                   b_valid_i,
  /// The word of B is taken in this cycle if it is offered.
  output logic                   b_ready_o,
  /// A word of A, with one of B if the operation has two operands, enters in this cycle.
  output logic                   enter_o,
  /// The job's operation.
  output logic [2:0]             operation_o,
  /// The job's factor.
  output logic [15:0]            multiplier_o,
  /// The job's shift.
  output logic [5:0]             shift_o,
  /// The word is the first of its row.
  output logic                   first_o,
  /// The word is the last of its row.
  output logic                   row_last_o,
  /// The word is the last of its job.
  output logic                   last_o
);
  logic valid_q;
  logic [2:0] operation_q;
  logic [LengthWidth-1:0] words_q, rows_q, word_q, row_q;
  logic [15:0] multiplier_q;
  logic [5:0] shift_q;

  logic two_operands, done;

  assign two_operands = operation_q[2:1] == 2'd0 || operation_q == 3'd5;
  assign a_ready_o = enable_i & valid_q & (b_valid_i | ~two_operands);
  assign b_ready_o = enable_i & valid_q & a_valid_i & two_operands;
  assign enter_o = a_ready_o & a_valid_i;

  assign operation_o = operation_q;
  assign multiplier_o = multiplier_q;
  assign shift_o = shift_q;
  assign first_o = word_q == LengthWidth'(1);
  assign row_last_o = word_q == words_q;
  assign last_o = row_last_o & (row_q == rows_q);

  assign done = enter_o & last_o;
  assign job_ready_o = ~valid_q | done;

  // Words and rows are counted from one: the counts of a job end at its lengths.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      word_q <= LengthWidth'(1);
      row_q <= LengthWidth'(1);
    end else begin
      if (job_ready_o) valid_q <= job_valid_i;
      if (enter_o) begin
        word_q <= row_last_o ? LengthWidth'(1) : word_q + LengthWidth'(1);
        if (row_last_o) row_q <= last_o ? LengthWidth'(1) : row_q + LengthWidth'(1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (job_ready_o) begin
      operation_q <= job_operation_i;
      words_q <= job_words_i;
      rows_q <= job_rows_i;
      multiplier_q <= job_multiplier_i;
      shift_q <= job_shift_i;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && job_valid_i && (job_words_i == '0 || job_rows_i == '0)) begin
      $fatal(1, "vector_sequencer: job_words_i and job_rows_i must be at least 1");
    end
  end
`endif
endmodule
