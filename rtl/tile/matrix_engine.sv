// Products of blocks that lie in the scratchpad: a systolic array between three readers and a writer.
//
// A job is `panels_m` x `panels_n` folds of the array, the panel of columns changing faster. Operands
// lie in panels: word k of a panel is what enters the array in one step. Results are rows of 32-bit
// sums; a job that accumulates adds them to what is in memory. One job is done after the other, so that
// a job may add to the results of the one before.
//
//   job_i, 64-bit words from the low end (descriptors.md):
//   0  bit 4 output-stationary, 5 accumulate, 31:16 folds, 47:32 length
//   1  addresses of A, B and the result, panels of A's rows; 16 bits each
//   2  distance of A's panels, of B's, of the results of A's panels, of rows of results
//   3  panels of B's columns, distance of words in a panel of A
module matrix_engine #(
  /// Bits of an operand, two's complement: 8 or 16. The array has 64 / OperandWidth rows and columns.
  parameter int OperandWidth = 16,
  /// Bits of a scratchpad's address; at most 16.
  parameter int AddressWidth = 12,
  /// Bits of a job.
  localparam int JobWidth = 256,
  /// Bits of a word.
  localparam int Width = 64,
  /// Ports of the scratchpad: A, B and the sums so far, which are read, and the results.
  localparam int Ports = 4
) (
  /// Clock, rising edge.
  input  logic                          clk_i,
  /// Reset, active low, synchronous.
  input  logic                          rst_ni,
  /// A job is offered.
  input  logic                          job_valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                          job_ready_o,
  /// The job.
  input  logic [JobWidth-1:0]           job_i,
  /// The job's last result is written in this cycle.
  output logic                          done_o,
  /// A port asks for a word; see scratchpad.sv.
  output logic [Ports-1:0]              memory_valid_o,
  /// It is served in this cycle.
  input  logic [Ports-1:0]              memory_ready_i,
  /// The ports' addresses.
  output logic [Ports*AddressWidth-1:0] memory_address_o,
  /// The result that the last port writes.
  output logic [Width-1:0]              memory_data_o,
  /// What a reading port asked for in the cycle before is here.
  input  logic [Ports-2:0]              memory_valid_i,
  /// What the reading ports have read.
  input  logic [(Ports-1)*Width-1:0]    memory_data_i
);
  localparam int Size = Width / OperandWidth;
  localparam int SumWidth = 32;
  localparam int CountWidth = 16;
  localparam int RowWords = Size * SumWidth / Width;
  localparam int WordIndexWidth = $clog2(RowWords);

  if (OperandWidth != 8 && OperandWidth != 16) begin : gen_illegal_operand_width
    $error("matrix_engine: OperandWidth is %0d, must be 8 or 16", OperandWidth);
  end
  if (AddressWidth > 16) begin : gen_illegal_address_width
    $error("matrix_engine: AddressWidth is %0d, must be at most 16", AddressWidth);
  end

  logic output_stationary, accumulate;
  logic [CountWidth-1:0] folds, length, panels_m, panels_n, weights, rows;
  assign output_stationary = job_i[4];
  assign accumulate = job_i[5];
  assign {length, folds} = job_i[16 +: 32];
  assign panels_m = job_i[64+48 +: 16];
  assign panels_n = job_i[192 +: 16];
  // Words of B, and rows of results, a fold.
  assign weights = output_stationary ? length : CountWidth'(Size);
  assign rows = output_stationary ? CountWidth'(Size) : length;

  logic [AddressWidth-1:0] a_panel, b_panel, c_panel, c_row, a_step;
  assign a_panel = AddressWidth'(job_i[128 +: 16]);
  assign b_panel = AddressWidth'(job_i[144 +: 16]);
  assign c_panel = AddressWidth'(job_i[160 +: 16]);
  assign c_row = AddressWidth'(job_i[176 +: 16]);
  assign a_step = AddressWidth'(job_i[208 +: 16]);

  logic unused_job;
  assign unused_job = ^{job_i[3:0], job_i[15:6], job_i[63:48], job_i[255:208], job_i[191:64]};

  logic busy_q, accumulate_q, output_stationary_q, start;
  logic [CountWidth-1:0] folds_q, length_q;
  logic fold_ready;
  assign job_ready_o = ~busy_q;
  assign start = job_valid_i & job_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      folds_q <= '0;
    end else begin
      busy_q <= start | (busy_q & ~done_o);
      if (start) folds_q <= folds;
      else if (folds_q != '0 && fold_ready) folds_q <= folds_q - CountWidth'(1);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      accumulate_q <= accumulate;
      output_stationary_q <= output_stationary;
      length_q <= length;
    end
  end

  // One job at a time: whoever is free takes its part.
  localparam logic [AddressWidth-1:0] One = AddressWidth'(1);
  localparam logic [AddressWidth-1:0] Still = '0;
  logic west_valid, west_ready, north_valid, north_ready, sum_valid, sum_ready;
  logic [Width-1:0] west, north, sum;
  logic [4*CountWidth-1:0] result_counts;
  logic [4*AddressWidth-1:0] result_strides;
  assign result_counts = {panels_m, panels_n, rows, CountWidth'(RowWords)};
  assign result_strides = {c_panel, AddressWidth'(RowWords), c_row, One};

  stream_reader #(
    .Levels(3),
    .AddressWidth(AddressWidth)
  ) u_west (
    .clk_i,
    .rst_ni,
    .loops_valid_i(start),
    .loops_ready_o(),
    .base_i(AddressWidth'(job_i[64 +: 16])),
    .counts_i({panels_m, panels_n, length}),
    .strides_i({a_panel, Still, a_step}),
    .read_valid_o(memory_valid_o[0]),
    .read_ready_i(memory_ready_i[0]),
    .read_address_o(memory_address_o[0 +: AddressWidth]),
    .read_valid_i(memory_valid_i[0]),
    .read_data_i(memory_data_i[0 +: Width]),
    .valid_o(west_valid),
    .ready_i(west_ready),
    .data_o(west)
  );

  stream_reader #(
    .Levels(3),
    .AddressWidth(AddressWidth)
  ) u_north (
    .clk_i,
    .rst_ni,
    .loops_valid_i(start),
    .loops_ready_o(),
    .base_i(AddressWidth'(job_i[80 +: 16])),
    .counts_i({panels_m, panels_n, weights}),
    .strides_i({Still, b_panel, One}),
    .read_valid_o(memory_valid_o[1]),
    .read_ready_i(memory_ready_i[1]),
    .read_address_o(memory_address_o[AddressWidth +: AddressWidth]),
    .read_valid_i(memory_valid_i[1]),
    .read_data_i(memory_data_i[Width +: Width]),
    .valid_o(north_valid),
    .ready_i(north_ready),
    .data_o(north)
  );

  stream_reader #(
    .Levels(4),
    .AddressWidth(AddressWidth)
  ) u_sums (
    .clk_i,
    .rst_ni,
    .loops_valid_i(start & accumulate),
    .loops_ready_o(),
    .base_i(AddressWidth'(job_i[96 +: 16])),
    .counts_i(result_counts),
    .strides_i(result_strides),
    .read_valid_o(memory_valid_o[2]),
    .read_ready_i(memory_ready_i[2]),
    .read_address_o(memory_address_o[2*AddressWidth +: AddressWidth]),
    .read_valid_i(memory_valid_i[2]),
    .read_data_i(memory_data_i[2*Width +: Width]),
    .valid_o(sum_valid),
    .ready_i(sum_ready),
    .data_o(sum)
  );

  // Rows of results wait here, so that a whole fold's leave the array without stopping it.
  logic row_valid, row_ready, array_valid, array_ready, array_last;
  logic [Size*SumWidth-1:0] array_row, row;

  systolic_array #(
    .Rows(Size),
    .Cols(Size),
    .OperandWidth(OperandWidth),
    .AccWidth(SumWidth),
    .LengthWidth(CountWidth)
  ) u_array (
    .clk_i,
    .rst_ni,
    .job_valid_i(folds_q != '0),
    .job_ready_o(fold_ready),
    .job_output_stationary_i(output_stationary_q),
    .job_length_i(length_q),
    .west_valid_i(west_valid),
    .west_ready_o(west_ready),
    .west_data_i(west),
    .north_valid_i(north_valid),
    .north_ready_o(north_ready),
    .north_data_i(north),
    .result_valid_o(array_valid),
    .result_ready_i(array_ready),
    .result_data_o(array_row),
    .result_last_o(array_last)
  );
  logic unused_last;
  assign unused_last = array_last;

  fifo #(
    .Width(Size * SumWidth),
    .Depth(Size)
  ) u_rows (
    .clk_i,
    .rst_ni,
    .valid_i(array_valid),
    .ready_o(array_ready),
    .data_i(array_row),
    .free_o(),
    .valid_o(row_valid),
    .ready_i(row_ready),
    .data_o(row)
  );

  // A row leaves word by word.
  logic [WordIndexWidth-1:0] word_q;
  logic [Width-1:0] word, result;
  logic result_valid, result_ready;
  assign word = row[word_q*Width +: Width];
  assign result_valid = row_valid & (sum_valid | ~accumulate_q);
  assign sum_ready = result_valid & result_ready & accumulate_q;
  assign row_ready = result_ready & (word_q == WordIndexWidth'(RowWords - 1));
  always_comb begin
    result = word;
    for (int e = 0; e < Width / SumWidth; e++) begin
      if (accumulate_q) begin
        result[e*SumWidth +: SumWidth] = word[e*SumWidth +: SumWidth] + sum[e*SumWidth +: SumWidth];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) word_q <= '0;
    else if (result_ready) word_q <= row_ready ? '0 : word_q + WordIndexWidth'(1);
  end

  stream_writer #(
    .Levels(4),
    .AddressWidth(AddressWidth)
  ) u_results (
    .clk_i,
    .rst_ni,
    .loops_valid_i(start),
    .loops_ready_o(),
    .base_i(AddressWidth'(job_i[96 +: 16])),
    .counts_i(result_counts),
    .strides_i(result_strides),
    .valid_i(result_valid),
    .ready_o(result_ready),
    .data_i(result),
    .write_valid_o(memory_valid_o[3]),
    .write_ready_i(memory_ready_i[3]),
    .write_address_o(memory_address_o[3*AddressWidth +: AddressWidth]),
    .write_data_o(memory_data_o),
    .done_o
  );
endmodule
