// Router of five inputs and outputs: 0 north, 1 east, 2 south, 3 west, 4 local.
//
// Flits go one by one; what keeps those of a message together are the locks of the outputs.
module locked_router
  import locked_pkg::*;
#(
  /// Flits held by each input.
  parameter int InDepth = 2,
  /// Flits held by each output.
  parameter int OutDepth = 2,
  /// Registers in front of each input, of two flits each.
  parameter int ExtraStages = 0,
  /// Cycles from one flit on a link to the next, at least; the local ports take one a cycle.
  parameter int LinkInterval = 1,
  /// 0: round-robin, 1: lowest port first.
  parameter int Arbiter = 0,
  /// 0: outputs are locked for a message; 1: for its receiver.
  parameter int ByReceiver = 0,
  /// Messages that may hold an output at once.
  parameter int Messages = 16
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
  flit_t [Ports-1:0] front;
  // Who asks for an output and whom it takes: [output][input].
  logic [Ports-1:0][Ports-1:0] asks, taken;

  for (genvar i = 0; i < Ports; i++) begin : gen_input
    logic [ExtraStages+1:0] valid, ready;
    flit_t [ExtraStages+1:0] flit;
    assign valid[0] = in_valid[i];
    assign flit[0] = in_flit[i];
    assign in_ready[i] = ready[0];
    for (genvar s = 0; s <= ExtraStages; s++) begin : gen_stage
      locked_fifo #(
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
    assign front[i] = flit[ExtraStages+1];

    ports_t needed, leaves;
    assign needed = output_of(front[i].to, at);
    for (genvar o = 0; o < Ports; o++) begin : gen_output
      assign asks[o][i] = valid[ExtraStages+1] && needed[o];
      assign leaves[o] = taken[o][i];
    end
    assign ready[ExtraStages+1] = leaves != '0;
  end

  for (genvar o = 0; o < Ports; o++) begin : gen_output
    locked_output #(
      .Depth(OutDepth),
      .Interval((o == Local) ? 1 : LinkInterval),
      .Arbiter(Arbiter),
      .ByReceiver(ByReceiver),
      .Messages(Messages)
    ) u_output (
      .clk,
      .rst,
      .in_valid(asks[o]),
      .in_flit(front),
      .in_taken(taken[o]),
      .out_valid(out_valid[o]),
      .out_ready(out_ready[o]),
      .out_flit(out_flit[o])
    );
  end
endmodule
