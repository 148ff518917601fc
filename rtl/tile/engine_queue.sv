// In-order queue of one engine: starts a descriptor when the engine is free and its tokens are there,
// and gives tokens and credits when it ends.
//
// A descriptor is eight words of 64 bits: tokens it takes, tokens it gives, four credits, a job of four
// words, four more credits (descriptors.md). A job of kind 0 is none: it occupies the queue itself for a number
// of cycles.
module engine_queue #(
  /// Descriptors held; at least 2.
  parameter int Depth = 256,
  /// Jobs that the engine may have at a time; at least 1.
  parameter int Outstanding = 1,
  /// Kind of the engine's jobs; 0 if there is no engine.
  parameter int Kind = 1,
  /// Bits of a job.
  localparam int JobWidth = 256,
  /// Bits of a credit: token, column, row, one spare, valid.
  localparam int CreditWidth = 16,
  /// Bits of the address of a descriptor's word.
  localparam int AddressWidth = $clog2(Depth) + 3
) (
  /// Clock, rising edge.
  input  logic                    clk_i,
  /// Reset, active low, synchronous.
  input  logic                    rst_ni,
  /// A word of a descriptor is loaded; with its last word the descriptor is in the queue.
  input  logic                    load_valid_i,
  /// Descriptor, and its word in the low three bits.
  input  logic [AddressWidth-1:0] load_address_i,
  /// The word.
  input  logic [63:0]             load_data_i,
  /// Tokens of which there is one.
  input  logic [63:0]             available_i,
  /// The next descriptor could start.
  output logic                    request_o,
  /// It starts in this cycle.
  input  logic                    start_i,
  /// Tokens that it takes.
  output logic [63:0]             takes_o,
  /// A job is offered to the engine; the engine takes what it is offered when it is ready.
  output logic                    job_valid_o,
  /// The engine is ready for a job.
  input  logic                    job_ready_i,
  /// The job.
  output logic [JobWidth-1:0]     job_o,
  /// The oldest job ends in this cycle.
  input  logic                    job_done_i,
  /// The oldest descriptor ends in this cycle.
  output logic                    end_o,
  /// Tokens given in this cycle.
  output logic [63:0]             gives_o,
  /// A credit is offered.
  output logic                    credit_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                    credit_ready_i,
  /// The credit: token, column and row.
  output logic [13:0]             credit_o,
  /// Nothing is left to be done.
  output logic                    idle_o,
  /// The queue itself is occupied by a descriptor.
  output logic                    waiting_o
);
  localparam int PointerWidth = $clog2(Depth);
  localparam int CountWidth = $clog2(Depth + 1);
  localparam int Credits = 8;
  localparam int EndsDepth = (Outstanding > 2) ? Outstanding : 2;
  localparam int EndsWidth = $clog2(EndsDepth + 1);
  localparam logic [3:0] Wait = 4'd0;

  if (Depth < 2 || Outstanding < 1) begin : gen_illegal_depth
    $error("engine_queue: Depth and Outstanding are %0d and %0d, must be at least 2 and 1", Depth,
           Outstanding);
  end

  // The descriptors, and the next one.
  logic [7:0][63:0] memory_q [Depth];
  logic [7:0][63:0] next_q;
  logic [CountWidth-1:0] loaded_q, fetched_q;
  logic next_valid_q, fetch;

  assign fetch = (~next_valid_q | start_i) && fetched_q != loaded_q;
  always_ff @(posedge clk_i) begin
    if (load_valid_i) memory_q[load_address_i[3 +: PointerWidth]][load_address_i[2:0]] <= load_data_i;
    if (fetch) next_q <= memory_q[fetched_q[PointerWidth-1:0]];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      loaded_q <= '0;
      fetched_q <= '0;
      next_valid_q <= 1'b0;
    end else begin
      if (load_valid_i && load_address_i[2:0] == 3'd7) begin
        loaded_q <= CountWidth'(load_address_i[3 +: PointerWidth]) + CountWidth'(1);
      end
      if (fetch) fetched_q <= fetched_q + CountWidth'(1);
      next_valid_q <= fetch | (next_valid_q & ~start_i);
    end
  end

  logic waits;
  assign waits = next_q[3][3:0] == Wait;
  assign takes_o = next_q[0];
  assign job_o = next_q[6:3];
  assign job_valid_o = start_i & ~waits;

  // What is given at the ends of the descriptors that have started.
  logic ends_ready, ends_valid;
  logic [EndsWidth-1:0] ends_free, finished_q;
  logic [63:0] gives;
  logic [Credits-1:0][CreditWidth-1:0] credits, credits_q;
  fifo #(
    .Width(64 + Credits * CreditWidth),
    .Depth(EndsDepth)
  ) u_ends (
    .clk_i,
    .rst_ni,
    .valid_i(start_i),
    .ready_o(ends_ready),
    .data_i({next_q[7], next_q[2], next_q[1]}),
    .free_o(ends_free),
    .valid_o(ends_valid),
    .ready_i(end_o),
    .data_o({credits, gives})
  );

  // A descriptor without a job is alone: neither does it overtake one, nor is it overtaken.
  logic waiting_q, wait_over, free;
  logic [31:0] cycles_q;
  assign free = waits ? ~ends_valid : ends_ready & (EndsWidth'(EndsDepth) - ends_free
                                                    < EndsWidth'(Outstanding)) & ~waiting_q;
  assign request_o = next_valid_q & free & (waits | job_ready_i) & ((takes_o & ~available_i) == '0);
  assign wait_over = waiting_q & (cycles_q <= 32'd2);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) waiting_q <= 1'b0;
    else waiting_q <= (start_i & waits) | (waiting_q & ~end_o);
  end
  always_ff @(posedge clk_i) begin
    if (start_i & waits) cycles_q <= next_q[3][63:32];
    else if (!wait_over) cycles_q <= cycles_q - 32'd1;
  end

  // An end waits while credits of the one before are on their way out.
  logic [Credits-1:0] owed;
  logic credits_leave, job_ends;
  assign end_o = (wait_over | job_done_i || finished_q != '0) & (owed == '0 || credits_leave);
  assign job_ends = end_o & ~waiting_q;
  assign gives_o = end_o ? gives : '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) finished_q <= '0;
    else finished_q <= finished_q + EndsWidth'(job_done_i) - EndsWidth'(job_ends);
  end

  logic [Credits-1:0] first;
  always_comb begin
    for (int c = 0; c < Credits; c++) owed[c] = credits_q[c][CreditWidth-1];
    first = owed & (~owed + Credits'(1));
    credit_o = '0;
    for (int c = 0; c < Credits; c++) begin
      if (first[c]) credit_o |= credits_q[c][13:0];
    end
  end
  assign credit_valid_o = owed != '0;
  assign credits_leave = credit_ready_i && owed == first;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      credits_q <= '0;
    end else if (end_o) begin
      credits_q <= credits;
    end else if (credit_valid_o & credit_ready_i) begin
      for (int c = 0; c < Credits; c++) begin
        if (first[c]) credits_q[c][CreditWidth-1] <= 1'b0;
      end
    end
  end
  logic unused_credits;
  always_comb begin
    unused_credits = 1'b0;
    for (int c = 0; c < Credits; c++) unused_credits ^= credits_q[c][14];
  end

  assign idle_o = ~next_valid_q && fetched_q == loaded_q && ~ends_valid && ~credit_valid_o;
  assign waiting_o = waiting_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!start_i || request_o) else $error("engine_queue: started what could not start");
      assert (!start_i || waits || next_q[3][3:0] == 4'(Kind))
      else $error("engine_queue: a job of kind %0d in a queue of kind %0d", next_q[3][3:0], Kind);
      assert (!job_done_i || (ends_valid && !waiting_q)) else $error("engine_queue: an end of nothing");
    end
  end
`endif
endmodule
