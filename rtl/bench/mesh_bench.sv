// A mesh with a replayer and a recorder at every node: cycles cost no Python.
//
// Every handshake at the tiles' ports is written to `handshakes.bin` in the working folder as four
// 32-bit words: {node, last, 1 for ejection}, cycle, high and low half of the payload.
module mesh_bench #(
  /// Rows of the mesh; at most 64.
  parameter int Rows = 4,
  /// Columns of the mesh; at most 64.
  parameter int Cols = 4,
  /// Flits held by each input buffer of a router.
  parameter int FifoDepth = 4,
  /// Flits held by each output of a router: 0, or at least 2.
  parameter int OutputDepth = 0,
  /// Cycles in which a flit passes a router, without output buffers: 1 or 2.
  parameter int Stages = 1,
  /// 0: along the row first, 1: along the column first.
  parameter int YFirst = 0,
  /// 1: the network forks multicasts.
  parameter int Multicast = 1,
  /// 1: the network combines reductions.
  parameter int Reduction = 1,
  /// 1: multicasts and reductions go by virtual cut-through; 0: by wormhole, and may hang.
  parameter int CutThrough = 1,
  /// 1: a sender among the destinations of its multicast gets a copy.
  parameter int Loopback = 1,
  /// Registers on the way of a reduction's result.
  parameter int ReduceStages = 1,
  /// Nodes.
  localparam int Nodes = Rows * Cols
) (
  /// Clock, rising edge.
  input  logic             clk_i,
  /// Reset, active low, synchronous.
  input  logic             rst_ni,
  /// Flits that the plan will eject in all.
  input  logic [31:0]      expected_flits_i,
  /// Cycles before which each node ejects nothing.
  input  logic [31:0]      hold_cycles_i,
  /// Out of 256: how often a node refuses a flit at random.
  input  logic [7:0]       stall_i,
  /// Seed of the refusals.
  input  logic [31:0]      stall_seed_i,
  /// Cycles without a handshake after which the run counts as hung.
  input  logic [31:0]      patience_cycles_i,
  /// Cycle from which a model with waves records one.
  input  logic [31:0]      wave_from_i,
  /// Cycles since reset.
  output logic [31:0]      cycle_o,
  /// Everything expected has been ejected, and nothing more for `patience_cycles_i`.
  output logic             done_o,
  /// Nothing has moved for `patience_cycles_i` though flits are waiting.
  output logic             hung_o
);
  localparam int PayloadWidth = 64;
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, PayloadWidth, Multicast,
                                                 Reduction, CutThrough);

  logic [Nodes-1:0] inject_valid, inject_ready, eject_valid, eject_ready, replayed;
  logic [Nodes*FlitWidth-1:0] inject_flit, eject_flit;
  logic [31:0] cycle_q, ejected_q, idle_q, random_q [Nodes];
  logic pending, moving;
  int log_file;
  bit opened;

  assign cycle_o = cycle_q;

  mesh #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .OutputDepth(OutputDepth),
    .PayloadWidth(PayloadWidth),
    .Stages(Stages),
    .YFirst(YFirst),
    .Multicast(Multicast),
    .Reduction(Reduction),
    .CutThrough(CutThrough),
    .Loopback(Loopback),
    .ElementWidth(32),
    .ReduceStages(ReduceStages)
  ) u_mesh (
    .clk_i,
    .rst_ni,
    .inject_valid_i(inject_valid),
    .inject_ready_o(inject_ready),
    .inject_flit_i(inject_flit),
    .eject_valid_o(eject_valid),
    .eject_ready_i(eject_ready),
    .eject_flit_o(eject_flit)
  );

  for (genvar n = 0; n < Nodes; n++) begin : gen_node
    replayer #(
      .Rows(Rows),
      .Cols(Cols),
      .FifoDepth(FifoDepth),
      .Multicast(Multicast),
      .Reduction(Reduction),
      .CutThrough(CutThrough),
      .Node(n)
    ) u_replayer (
      .clk_i,
      .rst_ni,
      .cycle_i(cycle_q),
      .valid_o(inject_valid[n]),
      .ready_i(inject_ready[n]),
      .flit_o(inject_flit[n*FlitWidth +: FlitWidth]),
      .done_o(replayed[n])
    );

    // A 32-bit xorshift a node decides on refusals.
    always @(posedge clk_i) begin
      if (!rst_ni) random_q[n] <= stall_seed_i ^ (32'h9E3779B9 * 32'(n + 1)) | 32'd1;
      else random_q[n] <= shuffled(random_q[n]);
    end
    assign eject_ready[n] = cycle_q >= hold_cycles_i && random_q[n][15:8] >= stall_i;
  end

  function automatic logic [31:0] shuffled(input logic [31:0] value);
    logic [31:0] x;
    x = value ^ (value << 13);
    x = x ^ (x >> 17);
    return x ^ (x << 5);
  endfunction

  // A flit that waits for its cycle is no sign of a hang; one that is offered and not taken is.
  assign moving = (inject_valid & inject_ready) != '0 || (eject_valid & eject_ready) != '0;
  assign pending = inject_valid != '0 || ejected_q < expected_flits_i;
  assign done_o = (&replayed) && ejected_q >= expected_flits_i && idle_q >= patience_cycles_i;
  assign hung_o = pending && idle_q >= patience_cycles_i && cycle_q > hold_cycles_i
                  && ((&replayed) || (inject_valid & ~inject_ready) != '0);

  always @(posedge clk_i) begin
    if (!rst_ni) begin
      cycle_q <= '0;
      ejected_q <= '0;
      idle_q <= '0;
    end else begin
      cycle_q <= cycle_q + 32'd1;
      ejected_q <= ejected_q + 32'($countones(eject_valid & eject_ready));
      // While the tiles take nothing by order, standing still is no sign of a hang.
      idle_q <= (moving || cycle_q < hold_cycles_i) ? '0 : idle_q + 32'd1;
    end
  end

  always @(posedge clk_i) begin
    if (!rst_ni && !opened) begin
      opened = 1'b1;
      log_file = $fopen("handshakes.bin", "wb");
    end
    if (rst_ni && cycle_q == wave_from_i) begin
      $dumpfile("dump.vcd");
      $dumpvars;
    end
    if (rst_ni && moving) begin
      for (int n = 0; n < Nodes; n++) begin
        if (inject_valid[n] && inject_ready[n]) begin
          record(30'(n), 1'b0, inject_flit[n*FlitWidth +: FlitWidth]);
        end
        if (eject_valid[n] && eject_ready[n]) begin
          record(30'(n), 1'b1, eject_flit[n*FlitWidth +: FlitWidth]);
        end
      end
    end
    if (rst_ni && (done_o || hung_o)) $fflush(log_file);
  end

  task automatic record(input logic [29:0] node, input logic ejected, input logic [FlitWidth-1:0] flit);
    logic unused_header;
    unused_header = ^flit[FlitWidth-2:PayloadWidth];
    $fwrite(log_file, "%u%u%u%u", {node, flit[FlitWidth-1], ejected}, cycle_q, flit[63:32],
            flit[31:0]);
  endtask
endmodule
