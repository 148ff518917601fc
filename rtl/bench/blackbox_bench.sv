// Any mesh with a replayer and a recorder at every node; what a flit's header means is known to neither.
//
// The mesh is the module `blackbox_dut`, which cosim/spec/adapter.py writes for each mesh. Every
// handshake at the tiles' ports is written to `handshakes.bin` as by mesh_bench.sv.
module blackbox_bench #(
  /// Nodes of the mesh.
  parameter int Nodes = 16,
  /// Bits of a flit.
  parameter int FlitWidth = 72,
  /// Lowest bit of a flit's payload, whose low 64 bits are recorded.
  parameter int PayloadLsb = 0,
  /// Bit that marks a packet's last flit.
  parameter int LastBit = 71
) (
  /// Clock, rising edge.
  input  logic             clk_i,
  /// Reset of the mesh, active low.
  input  logic             mesh_rst_ni,
  /// Reset of all else, active low, synchronous; released when the mesh is ready.
  input  logic             rst_ni,
  /// Nodes that eject nothing before `hold_until_cycle_i`.
  input  logic [Nodes-1:0] hold_i,
  /// Cycle from which they eject again; all ones: never.
  input  logic [31:0]      hold_until_cycle_i,
  /// Cycles without a handshake after which the mesh counts as quiet.
  input  logic [31:0]      patience_cycles_i,
  /// Cycles after which the run ends.
  input  logic [31:0]      most_cycles_i,
  /// Ejected flits after which the run ends.
  input  logic [31:0]      most_flits_i,
  /// Cycle from which a model with waves records one.
  input  logic [31:0]      wave_from_i,
  /// Cycles since reset.
  output logic [31:0]      cycle_o,
  /// Nothing has moved for `patience_cycles_i`, and nothing waits for its time.
  output logic             quiet_o,
  /// The run is at its end.
  output logic             done_o
);
  logic [Nodes-1:0] inject_valid, inject_ready, eject_valid, eject_ready, waiting;
  logic [Nodes*FlitWidth-1:0] inject_flit, eject_flit;
  logic [31:0] cycle_q, ejected_q, idle_q;
  logic moving, holding, records;
  int log_file;
  bit opened;

  assign cycle_o = cycle_q;

  blackbox_dut u_dut (
    .clk_i,
    .rst_ni(mesh_rst_ni),
    .inject_valid_i(inject_valid),
    .inject_ready_o(inject_ready),
    .inject_flit_i(inject_flit),
    .eject_valid_o(eject_valid),
    .eject_ready_i(eject_ready),
    .eject_flit_o(eject_flit)
  );

  for (genvar n = 0; n < Nodes; n++) begin : gen_node
    flit_replayer #(
      .Node(n),
      .FlitWidth(FlitWidth)
    ) u_replayer (
      .clk_i,
      .rst_ni,
      .cycle_i(cycle_q),
      .valid_o(inject_valid[n]),
      .ready_i(inject_ready[n]),
      .flit_o(inject_flit[n*FlitWidth +: FlitWidth]),
      .waiting_o(waiting[n])
    );
    assign eject_ready[n] = rst_ni && !(hold_i[n] && cycle_q < hold_until_cycle_i);
  end

  assign moving = (inject_valid & inject_ready) != '0 || (eject_valid & eject_ready) != '0;
  assign holding = hold_i != '0 && cycle_q < hold_until_cycle_i && hold_until_cycle_i != '1;
  assign quiet_o = idle_q >= patience_cycles_i;
  assign done_o = quiet_o || cycle_q >= most_cycles_i || ejected_q > most_flits_i;

  always @(posedge clk_i) begin
    if (!rst_ni) begin
      cycle_q <= '0;
      ejected_q <= '0;
      idle_q <= '0;
    end else begin
      cycle_q <= cycle_q + 32'd1;
      ejected_q <= ejected_q + 32'($countones(eject_valid & eject_ready));
      idle_q <= (moving || holding || waiting != '0) ? '0 : idle_q + 32'd1;
    end
  end

  // From cycle 0 on is from the reset on: what stops the run in that cycle is seen.
  assign records = (wave_from_i == '0) ? !rst_ni && !opened : rst_ni && cycle_q == wave_from_i;

  always @(posedge clk_i) begin
    if (records) begin
      $dumpfile("dump.vcd");
      $dumpvars;
    end
    if (!rst_ni && !opened) begin
      opened = 1'b1;
      log_file = $fopen("handshakes.bin", "wb");
    end
    if (rst_ni && moving && !done_o) begin
      for (int n = 0; n < Nodes; n++) begin
        if (inject_valid[n] && inject_ready[n]) begin
          record(30'(n), 1'b0, inject_flit[n*FlitWidth +: FlitWidth]);
        end
        if (eject_valid[n] && eject_ready[n]) begin
          record(30'(n), 1'b1, eject_flit[n*FlitWidth +: FlitWidth]);
        end
      end
    end
    if (rst_ni && done_o) $fflush(log_file);
  end

  task automatic record(input logic [29:0] node, input logic ejected, input logic [FlitWidth-1:0] flit);
    logic unused_fields;
    unused_fields = ^flit;
    $fwrite(log_file, "%u%u%u%u", {node, flit[LastBit], ejected}, cycle_q,
            flit[PayloadLsb+32 +: 32], flit[PayloadLsb +: 32]);
  endtask
endmodule
