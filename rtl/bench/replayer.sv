// Offers the packets of a plan to one node of a mesh, each as soon as its cycle has come and the
// packets before it have gone in.
//
// The plan is a text file in the working folder, `stimulus_<Node>.txt`, a packet a line:
// cycle, packet number, flits, multicast bit, row mask, column mask (decimal). A flit's payload is
// {packet number, flit number, check}, so that the recorder's reader can judge the data.
module replayer #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Bits of the header's length field.
  parameter int CountWidth = 3,
  /// The node that is driven.
  parameter int Node = 0,
  /// Bits of a flit.
  localparam int FlitWidth = 2 + CountWidth + Rows + Cols + 64
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
  /// Every packet of the plan has gone in.
  output logic                 done_o
);
  int file, fields;
  bit opened;
  logic active_q;
  logic [31:0] start_q, packet_q, flits_q, sent_q;
  logic multicast_q;
  logic [Rows-1:0] row_mask_q;
  logic [Cols-1:0] col_mask_q;
  logic last;

  assign last = sent_q == flits_q - 32'd1;
  assign valid_o = active_q && cycle_i >= start_q;
  assign done_o = !active_q;
  assign flit_o = {last, multicast_q, CountWidth'(flits_q), row_mask_q, col_mask_q,
                   packet_q, sent_q[15:0], packet_q[15:0] ^ {sent_q[7:0], sent_q[15:8]} ^ 16'hA5C3};

  // A file is read as the run goes; plans need no room in the model.
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q <= '0;
      if (!opened) begin
        opened = 1'b1;
        file = $fopen($sformatf("stimulus_%0d.txt", Node), "r");
        read_packet();
      end
    end else if (valid_o && ready_i) begin
      sent_q <= last ? '0 : sent_q + 32'd1;
      if (last) read_packet();
    end
  end

  task automatic read_packet;
    logic [31:0] start, packet, flits;
    logic multicast;
    logic [Rows-1:0] rows;
    logic [Cols-1:0] cols;
    fields = (file == 0) ? 0
           : $fscanf(file, "%d %d %d %d %d %d", start, packet, flits, multicast, rows, cols);
    active_q <= fields == 6;
    if (fields == 6) begin
      start_q <= start;
      packet_q <= packet;
      flits_q <= flits;
      multicast_q <= multicast;
      row_mask_q <= rows;
      col_mask_q <= cols;
    end
  endtask
endmodule
