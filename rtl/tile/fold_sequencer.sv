// Decides in every cycle which operands enter the array, and tags them.
//
// A job is one fold. Its stages: *pending* (weight-stationary: its weights are being loaded;
// output-stationary: its steps are being fed), *loaded* (weight-stationary: its weights wait in the
// shadow registers) and *current* (weight-stationary: its rows are being fed). So one fold's weights
// load while the rows of the fold before are fed. Jobs of one dataflow follow each other without a
// gap; a job of the other dataflow waits until the array is empty.
module fold_sequencer #(
  /// Rows of the array; at least 2.
  parameter int Rows = 8,
  /// Bits of a job's length.
  parameter int LengthWidth = 16
) (
  /// Clock, rising edge.
  input  logic                   clk_i,
  /// Reset, active low, synchronous.
  input  logic                   rst_ni,
  /// The array moves by one step in this cycle.
  input  logic                   enable_i,
  /// Results are on their way through the array.
  input  logic                   in_flight_i,
  /// A job is offered.
  input  logic                   job_valid_i,
  /// The job is taken in this cycle if it is offered.
  output logic                   job_ready_o,
  /// Dataflow of the offered job.
  input  logic                   job_output_stationary_i,
  /// Rows (weight-stationary) or steps (output-stationary) of the fold; at least 1.
  input  logic [LengthWidth-1:0] job_length_i,
  /// A west word is offered.
  input  logic                   west_valid_i,
  /// The west word is taken in this cycle if it is offered.
  output logic                   west_ready_o,
  /// A north word is offered.
  input  logic                   north_valid_i,
  /// The north word is taken in this cycle if it is offered.
  output logic                   north_ready_o,
  /// Dataflow of the array.
  output logic                   output_stationary_o,
  /// Row for which the north word entering now is the weights, one-hot.
  output logic [Rows-1:0]        load_o,
  /// The west word entering now is the first of its fold.
  output logic                   first_o,
  /// The west word entering now is the last of its fold (output-stationary).
  output logic                   last_o,
  /// A row of results belongs to this step.
  output logic                   result_o,
  /// That row is the last of its fold.
  output logic                   result_last_o
);
  localparam int RowWidth = $clog2(Rows);

  logic mode_q;
  logic pending_valid_q, pending_mode_q;
  logic [LengthWidth-1:0] pending_length_q, step_q;
  logic [RowWidth-1:0] load_row_q, drain_q;
  logic loaded_valid_q;
  logic [LengthWidth-1:0] loaded_length_q, remaining_q;

  logic runs, idle, pending_done;
  logic row_push, swap, weight_push, loaded, last_row;
  logic step_open, step_push, last_step, draining;

  assign idle = ~loaded_valid_q & (remaining_q == '0) & ~draining & ~in_flight_i;
  assign runs = pending_valid_q & (pending_mode_q == mode_q);

  // Weight-stationary. The shadow weights may be overwritten from the step in which they are taken.
  assign row_push = enable_i & west_valid_i & ((remaining_q != '0) | loaded_valid_q);
  assign swap = row_push & (remaining_q == '0);
  assign last_row = swap ? (loaded_length_q == LengthWidth'(1)) : (remaining_q == LengthWidth'(1));
  assign weight_push = north_ready_o & north_valid_i & ~mode_q;
  assign loaded = weight_push & (load_row_q == RowWidth'(Rows - 1));

  // Output-stationary. A fold may end only when the sums of the one before have left their registers.
  assign draining = drain_q != '0;
  assign last_step = (step_q + LengthWidth'(1)) == pending_length_q;
  assign step_open = runs & mode_q & ~(last_step & draining);
  assign step_push = enable_i & step_open & west_valid_i & north_valid_i;

  assign pending_done = loaded | (step_push & last_step);
  assign job_ready_o = ~pending_valid_q | pending_done;

  always_comb begin
    if (mode_q) begin
      west_ready_o = enable_i & step_open & north_valid_i;
      north_ready_o = enable_i & step_open & west_valid_i;
    end else begin
      west_ready_o = enable_i & ((remaining_q != '0) | loaded_valid_q);
      north_ready_o = enable_i & runs & (~loaded_valid_q | swap);
    end
  end

  assign output_stationary_o = mode_q;
  assign load_o = weight_push ? (Rows'(1) << load_row_q) : '0;
  assign first_o = mode_q ? (step_push & (step_q == '0)) : swap;
  assign last_o = step_push & last_step;
  assign result_o = row_push | last_o | draining;
  assign result_last_o = mode_q ? (drain_q == RowWidth'(1)) : (row_push & last_row);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      mode_q <= 1'b0;
      pending_valid_q <= 1'b0;
      pending_mode_q <= 1'b0;
      pending_length_q <= '0;
    end else begin
      if (pending_valid_q & idle) mode_q <= pending_mode_q;
      if (job_ready_o) begin
        pending_valid_q <= job_valid_i;
        pending_mode_q <= job_output_stationary_i;
        pending_length_q <= job_length_i;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      load_row_q <= '0;
      loaded_valid_q <= 1'b0;
      loaded_length_q <= '0;
      remaining_q <= '0;
    end else begin
      if (weight_push) load_row_q <= loaded ? '0 : load_row_q + RowWidth'(1);
      if (loaded) begin
        loaded_valid_q <= 1'b1;
        loaded_length_q <= pending_length_q;
      end else if (swap) begin
        loaded_valid_q <= 1'b0;
      end
      if (row_push) remaining_q <= (swap ? loaded_length_q : remaining_q) - LengthWidth'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= '0;
      drain_q <= '0;
    end else begin
      if (step_push) step_q <= last_step ? '0 : step_q + LengthWidth'(1);
      if (last_o) drain_q <= RowWidth'(Rows - 1);
      else if (enable_i & draining) drain_q <= drain_q - RowWidth'(1);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && job_valid_i && job_length_i == '0) begin
      $fatal(1, "fold_sequencer: job_length_i must be at least 1");
    end
  end
`endif
endmodule
