// Offers the flits of a plan to one node of a mesh, without knowing what is in them.
//
// The plan is a text file in the working folder, `stimulus_<Node>.txt`, a flit a line: the cycle before
// which it is not offered, decimal, and the flit, hexadecimal. An offer stands until it is taken; the
// next flit follows in the cycle after.
module flit_replayer #(
  /// The node that is driven.
  parameter int Node = 0,
  /// Bits of a flit.
  parameter int FlitWidth = 72
) (
  /// Clock, rising edge.
  input  logic                 clk_i,
  /// Reset, active low, synchronous; the plan is opened in it.
  input  logic                 rst_ni,
  /// Cycles since reset.
  input  logic [31:0]          cycle_i,
  /// A flit is offered.
  output logic                 valid_o,
  /// It is taken.
  input  logic                 ready_i,
  /// The offered flit.
  output logic [FlitWidth-1:0] flit_o,
  /// The next flit waits for its cycle.
  output logic                 waiting_o
);
  int file;
  bit opened;
  logic active_q;
  logic [31:0] start_q;

  assign valid_o = rst_ni && active_q && cycle_i >= start_q;
  assign waiting_o = active_q && cycle_i < start_q;

  // A file is read as the run goes; plans need no room in the model.
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      if (!opened) begin
        opened = 1'b1;
        file = $fopen($sformatf("stimulus_%0d.txt", Node), "r");
        read_flit();
      end
    end else if (valid_o && ready_i) begin
      read_flit();
    end
  end

  task automatic read_flit;
    logic [31:0] start;
    logic [FlitWidth-1:0] flit;
    int fields;
    fields = (file == 0) ? 0 : $fscanf(file, "%d %h", start, flit);
    active_q <= fields == 2;
    if (fields == 2) begin
      start_q <= start;
      flit_o <= flit;
    end
  endtask
endmodule
