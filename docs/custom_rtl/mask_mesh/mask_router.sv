// Router of five inputs and outputs: 0 north, 1 east, 2 south, 3 west, 4 local.
//
// Wormhole. A multicast is forked flit by flit: each output takes its copy when it can, and the flit
// leaves its input when the last one has. A branch is thus at most one flit ahead of its sisters, and
// two multicasts that are longer than the buffers can wait for each other for ever.
module mask_router
  import mask_pkg::*;
#(
  /// Flits held by each input.
  parameter int InDepth = 2,
  /// Flits held by each output.
  parameter int OutDepth = 2,
  /// Cycles of an addition.
  parameter int AddCycles = 3,
  /// Registers in front of each input, of two flits each.
  parameter int ExtraStages = 0,
  /// Cycles from one flit on a link to the next, at least; the local ports take one a cycle.
  parameter int LinkInterval = 1,
  /// 0: round-robin, 1: lowest port first.
  parameter int Arbiter = 0,
  /// 1: a sender among the destinations of its multicast gets a copy.
  parameter int Loopback = 1
) (
  /// Clock, rising edge.
  input  logic               clk,
  /// Reset, active high, synchronous.
  input  logic               rst,
  /// Place of this router.
  input  place_t             at,
  /// An input is offered a flit.
  input  ports_t             in_valid,
  /// It is taken in this cycle if it is offered.
  output ports_t             in_ready,
  /// The offered flits.
  input  flit_t  [Ports-1:0] in_flit,
  /// An output offers a flit.
  output ports_t             out_valid,
  /// It is taken in this cycle if it is offered.
  input  ports_t             out_ready,
  /// The offered flits.
  output flit_t  [Ports-1:0] out_flit
);
  // The adder asks for outputs like a sixth input.
  localparam int Adder = Ports;

  flit_t [Ports-1:0] front;
  flit_t sum;
  ports_t front_valid, adds, add_taken, sum_valid;
  logic sum_taken;
  // Who asks for an output and whom it takes: [output][requester].
  logic [Ports-1:0][Ports:0] asks, taken;

  for (genvar i = 0; i < Ports; i++) begin : gen_input
    logic [ExtraStages+1:0] valid, ready;
    flit_t [ExtraStages+1:0] flit;
    assign valid[0] = in_valid[i];
    assign flit[0] = in_flit[i];
    assign in_ready[i] = ready[0];
    for (genvar s = 0; s <= ExtraStages; s++) begin : gen_stage
      mask_fifo #(
        .Depth((s < ExtraStages) ? 2 : InDepth)
      ) u_fifo (
        .clk,
        .rst,
        .in_valid(valid[s]),
        .in_ready(ready[s]),
        .in_flit(flit[s]),
        .out_valid(valid[s+1]),
        .out_ready(ready[s+1]),
        .out_flit(flit[s+1])
      );
    end
    assign front_valid[i] = valid[ExtraStages+1];
    assign front[i] = flit[ExtraStages+1];

    // A lone operand passes by; it needs the adder where others come in.
    localparam ports_t Self = ports_t'(1 << i);
    assign adds[i] = front_valid[i] && (operands(front[i].header, at) & ~Self) != '0;

    // Outputs that the flit at the front goes to, and those that have it already.
    ports_t needed, done_q, done;
    logic own;
    assign own = Loopback == 0 && i == Local && front[i].header.operation == Multicast;
    assign needed = outputs(front[i].header, at, i) & ~(ports_t'(own) << Local);
    for (genvar o = 0; o < Ports; o++) begin : gen_output
      assign asks[o][i] = front_valid[i] && !adds[i] && needed[o] && !done_q[o];
      assign done[o] = done_q[o] || taken[o][i];
    end
    assign ready[ExtraStages+1] = adds[i] ? add_taken[i] : (needed & ~done) == '0;

    always_ff @(posedge clk) begin
      if (rst || ready[ExtraStages+1]) done_q <= '0;
      else done_q <= done;
    end
  end

  mask_adder #(
    .AddCycles(AddCycles)
  ) u_adder (
    .clk,
    .rst,
    .at,
    .in_valid(adds),
    .in_flit(front),
    .in_taken(add_taken),
    .out_valid(sum_valid),
    .out_taken(sum_taken),
    .out_flit(sum)
  );

  ports_t sum_leaves;
  assign sum_taken = sum_leaves != '0;
  for (genvar o = 0; o < Ports; o++) begin : gen_output
    assign asks[o][Adder] = sum_valid[o];
    assign sum_leaves[o] = taken[o][Adder];
    mask_output #(
      .Requesters(Ports + 1),
      .Depth(OutDepth),
      .Interval((o == Local) ? 1 : LinkInterval),
      .Arbiter(Arbiter)
    ) u_output (
      .clk,
      .rst,
      .in_valid(asks[o]),
      .in_flit({sum, front}),
      .in_taken(taken[o]),
      .out_valid(out_valid[o]),
      .out_ready(out_ready[o]),
      .out_flit(out_flit[o])
    );
  end
endmodule
