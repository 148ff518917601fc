// Operations on rows that lie in the scratchpad: the vector unit between two readers and a writer.
//
//   job_i, 64-bit words from the low end (descriptors.md):
//   0  bits 6:4 operation, 7 pack, 13:8 shift, 31:16 multiplier, 47:32 words a row, 63:48 rows
//   1  address of A, distance of its rows, address of B, distance of its rows; 16 bits each
//   2  address of the results, distance of their rows, words of a row of them, distance of B's words
module vector_engine #(
  /// Bits to which elements are quantized and packed: 8 or 16.
  parameter int OperandWidth = 16,
  /// Bits of a scratchpad's address; at most 16.
  parameter int AddressWidth = 12,
  /// Bits of a job.
  localparam int JobWidth = 256,
  /// Bits of a word.
  localparam int Width = 64,
  /// Ports of the scratchpad: A and B, which are read, and the results.
  localparam int Ports = 3
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
  localparam int CountWidth = 16;
  localparam logic [AddressWidth-1:0] One = AddressWidth'(1);

  logic [CountWidth-1:0] words, rows;
  logic two_operands;
  assign {rows, words} = job_i[32 +: 32];
  assign two_operands = job_i[6:5] == 2'd0 || job_i[6:4] == 3'd5;

  logic unused_job;
  assign unused_job = ^{job_i[3:0], job_i[15:14], job_i[191:64], job_i[255:192]};

  logic busy_q, pack_q, start;
  assign job_ready_o = ~busy_q;
  assign start = job_valid_i & job_ready_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else busy_q <= start | (busy_q & ~done_o);
  end
  always_ff @(posedge clk_i) begin
    if (start) pack_q <= job_i[7];
  end

  logic a_valid, a_ready, b_valid, b_ready, unit_valid, unit_ready, unit_last;
  logic result_valid, result_ready;
  logic [Width-1:0] a, b, unit_result, result;

  stream_reader #(
    .Levels(2),
    .AddressWidth(AddressWidth)
  ) u_a (
    .clk_i,
    .rst_ni,
    .loops_valid_i(start),
    .loops_ready_o(),
    .base_i(AddressWidth'(job_i[64 +: 16])),
    .counts_i({rows, words}),
    .strides_i({AddressWidth'(job_i[80 +: 16]), One}),
    .read_valid_o(memory_valid_o[0]),
    .read_ready_i(memory_ready_i[0]),
    .read_address_o(memory_address_o[0 +: AddressWidth]),
    .read_valid_i(memory_valid_i[0]),
    .read_data_i(memory_data_i[0 +: Width]),
    .valid_o(a_valid),
    .ready_i(a_ready),
    .data_o(a)
  );

  stream_reader #(
    .Levels(2),
    .AddressWidth(AddressWidth)
  ) u_b (
    .clk_i,
    .rst_ni,
    .loops_valid_i(start & two_operands),
    .loops_ready_o(),
    .base_i(AddressWidth'(job_i[96 +: 16])),
    .counts_i({rows, words}),
    .strides_i({AddressWidth'(job_i[112 +: 16]), AddressWidth'(job_i[176 +: 16])}),
    .read_valid_o(memory_valid_o[1]),
    .read_ready_i(memory_ready_i[1]),
    .read_address_o(memory_address_o[AddressWidth +: AddressWidth]),
    .read_valid_i(memory_valid_i[1]),
    .read_data_i(memory_data_i[Width +: Width]),
    .valid_o(b_valid),
    .ready_i(b_ready),
    .data_o(b)
  );

  // One job at a time: the unit is free when the engine is.
  vector_unit #(
    .Lanes(Width / 32),
    .OperandWidth(OperandWidth),
    .LengthWidth(CountWidth)
  ) u_unit (
    .clk_i,
    .rst_ni,
    .job_valid_i(start),
    .job_ready_o(),
    .job_operation_i(job_i[6:4]),
    .job_words_i(words),
    .job_rows_i(rows),
    .job_multiplier_i(job_i[31:16]),
    .job_shift_i(job_i[13:8]),
    .a_valid_i(a_valid),
    .a_ready_o(a_ready),
    .a_data_i(a),
    .b_valid_i(b_valid),
    .b_ready_o(b_ready),
    .b_data_i(b),
    .result_valid_o(unit_valid),
    .result_ready_i(unit_ready),
    .result_data_o(unit_result),
    .result_last_o(unit_last)
  );
  word_packer #(
    .ElementWidth(OperandWidth),
    .Width(Width)
  ) u_packer (
    .clk_i,
    .rst_ni,
    .pack_i(pack_q),
    .valid_i(unit_valid),
    .ready_o(unit_ready),
    .data_i(unit_result),
    .valid_o(result_valid),
    .ready_i(result_ready),
    .data_o(result)
  );

  stream_writer #(
    .Levels(2),
    .AddressWidth(AddressWidth)
  ) u_results (
    .clk_i,
    .rst_ni,
    .loops_valid_i(start),
    .loops_ready_o(),
    .base_i(AddressWidth'(job_i[128 +: 16])),
    .counts_i({rows, job_i[160 +: 16]}),
    .strides_i({AddressWidth'(job_i[144 +: 16]), One}),
    .valid_i(result_valid),
    .ready_o(result_ready),
    .data_i(result),
    .write_valid_o(memory_valid_o[2]),
    .write_ready_i(memory_ready_i[2]),
    .write_address_o(memory_address_o[2*AddressWidth +: AddressWidth]),
    .write_data_o(memory_data_o),
    .done_o
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!rst_ni || !done_o || unit_last) else $error("vector_engine: a job ends with results left");
  end
`endif
endmodule
