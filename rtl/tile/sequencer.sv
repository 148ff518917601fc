// Four in-order queues, one an engine, and the counting tokens by which they wait for each other.
//
// In a cycle at most one descriptor starts, lest two take the same unit; engines that could start
// together take turns. Tokens given in a cycle are there in the next.
module sequencer #(
  /// Rows of the mesh; at most 16.
  parameter int Rows = 2,
  /// Columns of the mesh; at most 16.
  parameter int Cols = 2,
  /// Descriptors held by each queue.
  parameter int QueueDepth = 256,
  /// Jobs that the network interface may have at a time.
  parameter int Outstanding = 2,
  /// Bits of a job.
  localparam int JobWidth = 256,
  /// Queues: matrix, vector, transfer, control. Control has no engine, it waits only.
  localparam int Queues = 4,
  /// Bits of an address to be loaded: queue in the highest two, or a token's number.
  localparam int LoadWidth = $clog2(QueueDepth) + 5,
  /// Bits of a credit's flit: token, column, row, last.
  localparam int CreditWidth = 6 + noc_pkg::index_width(Cols) + noc_pkg::index_width(Rows) + 1
) (
  /// Clock, rising edge.
  input  logic                       clk_i,
  /// Reset, active low, synchronous.
  input  logic                       rst_ni,
  /// Descriptors may start.
  input  logic                       run_i,
  /// A word of a descriptor is loaded.
  input  logic                       load_descriptor_i,
  /// A token's units are loaded.
  input  logic                       load_token_i,
  /// Where to.
  input  logic [LoadWidth-1:0]       load_address_i,
  /// The word, or the units.
  input  logic [63:0]                load_data_i,
  /// A job is offered to the matrix, vector or transfer engine; only when it is ready.
  output logic [Queues-2:0]          job_valid_o,
  /// The engine is ready.
  input  logic [Queues-2:0]          job_ready_i,
  /// The jobs.
  output logic [(Queues-1)*JobWidth-1:0] job_o,
  /// An engine's oldest job ends in this cycle.
  input  logic [Queues-2:0]          job_done_i,
  /// Tokens that a transfer which has arrived gives.
  input  logic [63:0]                arrived_i,
  /// A credit's flit is offered to the network of credits.
  output logic                       credit_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                       credit_ready_i,
  /// The flit.
  output logic [CreditWidth-1:0]     credit_flit_o,
  /// A credit has come; always taken.
  input  logic                       credit_valid_i,
  /// Its flit.
  input  logic [CreditWidth-1:0]     credit_flit_i,
  /// A queue's descriptor starts in this cycle.
  output logic [Queues-1:0]          start_o,
  /// A queue's oldest descriptor ends in this cycle.
  output logic [Queues-1:0]          end_o,
  /// A queue is occupied by a descriptor without a job.
  output logic [Queues-1:0]          waiting_o,
  /// Nothing is left to be done.
  output logic                       idle_o
);
  localparam int Tokens = 64;
  localparam int UnitsWidth = 8;
  localparam int RowWidth = noc_pkg::index_width(Rows);
  localparam int ColWidth = noc_pkg::index_width(Cols);
  localparam int WordWidth = $clog2(QueueDepth) + 3;

  logic [Queues-1:0] request, credit_valid, credit_ready, idle, ready, job_valid, job_done;
  logic [Queues-1:0][Tokens-1:0] takes, gives;
  logic [Queues-1:0][JobWidth-1:0] job;
  logic [Queues-1:0][13:0] credit;
  logic [Tokens-1:0] available;

  // Control is always ready for what it never gets.
  assign ready = {1'b1, job_ready_i};
  assign job_done = {1'b0, job_done_i};
  assign job_valid_o = job_valid[Queues-2:0];
  assign job_o = job[Queues-2:0];
  assign idle_o = &idle;
  logic unused_control;
  assign unused_control = ^{job_valid[Queues-1], job[Queues-1]};

  for (genvar q = 0; q < Queues; q++) begin : gen_queue
    engine_queue #(
      .Depth(QueueDepth),
      .Outstanding((q == 2) ? Outstanding : 1),
      .Kind((q == Queues - 1) ? 0 : q + 1)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .load_valid_i(load_descriptor_i && load_address_i[WordWidth +: 2] == 2'(q)),
      .load_address_i(load_address_i[WordWidth-1:0]),
      .load_data_i,
      .available_i(available),
      .request_o(request[q]),
      .start_i(start_o[q]),
      .takes_o(takes[q]),
      .job_valid_o(job_valid[q]),
      .job_ready_i(ready[q]),
      .job_o(job[q]),
      .job_done_i(job_done[q]),
      .end_o(end_o[q]),
      .gives_o(gives[q]),
      .credit_valid_o(credit_valid[q]),
      .credit_ready_i(credit_ready[q]),
      .credit_o(credit[q]),
      .idle_o(idle[q]),
      .waiting_o(waiting_o[q])
    );
  end

  rr_arbiter #(
    .Requesters(Queues)
  ) u_starts (
    .clk_i,
    .rst_ni,
    .request_i(run_i ? request : '0),
    .advance_i(start_o != '0),
    .grant_o(start_o)
  );

  // Credits leave one a cycle; the one that is offered stands until it is taken.
  logic [Queues-1:0] sender, offered_q;
  rr_arbiter #(
    .Requesters(Queues)
  ) u_credits (
    .clk_i,
    .rst_ni,
    .request_i((offered_q != '0) ? offered_q : credit_valid),
    .advance_i(credit_valid_o & credit_ready_i),
    .grant_o(sender)
  );
  assign credit_valid_o = credit_valid != '0;
  assign credit_ready = credit_ready_i ? sender : '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) offered_q <= '0;
    else offered_q <= credit_ready_i ? '0 : sender;
  end

  logic [13:0] sent;
  always_comb begin
    sent = '0;
    for (int q = 0; q < Queues; q++) begin
      if (sender[q]) sent |= credit[q];
    end
  end
  assign credit_flit_o = {1'b1, sent[10 +: RowWidth], sent[6 +: ColWidth], sent[5:0]};
  logic unused_credits;
  assign unused_credits = ^{sent[13:6], credit_flit_i[CreditWidth-1:6]};

  // Units of each token.
  logic [Tokens-1:0][UnitsWidth-1:0] units_q;
  logic [Tokens-1:0] taken, returned;
  logic changed;
  always_comb begin
    taken = '0;
    for (int q = 0; q < Queues; q++) begin
      if (start_o[q]) taken |= takes[q];
    end
    returned = credit_valid_i ? Tokens'(1) << credit_flit_i[5:0] : '0;
    for (int t = 0; t < Tokens; t++) available[t] = units_q[t] != '0;
  end
  assign changed = (start_o | end_o) != '0 || arrived_i != '0 || credit_valid_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      units_q <= '0;
    end else if (load_token_i) begin
      units_q[load_address_i[5:0]] <= load_data_i[UnitsWidth-1:0];
    end else if (changed) begin
      for (int t = 0; t < Tokens; t++) begin
        units_q[t] <= units_q[t] + UnitsWidth'(gives[0][t]) + UnitsWidth'(gives[1][t])
                    + UnitsWidth'(gives[2][t]) + UnitsWidth'(gives[3][t]) + UnitsWidth'(arrived_i[t])
                    + UnitsWidth'(returned[t]) - UnitsWidth'(taken[t]);
      end
    end
  end

`ifndef SYNTHESIS
  logic [Tokens-1:0] given;
  always_comb begin
    given = arrived_i | returned;
    for (int q = 0; q < Queues; q++) given |= gives[q];
  end
  for (genvar t = 0; t < Tokens; t++) begin : gen_bound
    always_ff @(posedge clk_i) begin
      assert (!rst_ni || units_q[t] < 8'd250 || !given[t])
      else $error("sequencer: token %0d has more units than are counted", t);
    end
  end
`endif
endmodule
