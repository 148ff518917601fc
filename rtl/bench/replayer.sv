// Offers the packets of a plan to one node of a mesh, each as soon as its cycle has come and the
// packets before it have gone in.
//
// The plan is a text file in the working folder, `stimulus_<Node>.txt`, a packet a line, decimal:
// cycle, packet number, flits, kind (0 unicast, 1 multicast, 2 sum, 3 maximum), row, column, row mask,
// column mask, joint number. A flit's payload is {packet number, flit number, check}, so that the
// recorder's reader can judge the data. Of an operand it is {joint number, arbitrary}, with a zero for
// the number in all operands of a reduction but one: sum and maximum then carry the number too.
module replayer #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Flits held by each input buffer of a router.
  parameter int FifoDepth = 4,
  /// 1: the network forks multicasts.
  parameter int Multicast = 1,
  /// 1: the network combines reductions.
  parameter int Reduction = 1,
  /// 1: multicasts and reductions go by virtual cut-through.
  parameter int CutThrough = 1,
  /// The node that is driven.
  parameter int Node = 0,
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, 64, Multicast, Reduction,
                                                 CutThrough)
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
  localparam int RowWidth = noc_pkg::index_width(Rows);
  localparam int ColWidth = noc_pkg::index_width(Cols);
  localparam int MasksWidth = noc_pkg::masks_width(Rows, Cols, Multicast, Reduction);
  localparam int LengthWidth = noc_pkg::length_width(FifoDepth, Multicast, Reduction, CutThrough);
  localparam int ColLsb = 64;
  localparam int RowLsb = ColLsb + ColWidth;
  localparam int MaskLsb = RowLsb + RowWidth;
  localparam int LengthLsb = MaskLsb + MasksWidth;
  localparam int KindLsb = LengthLsb + LengthWidth;

  int file, fields;
  bit opened;
  logic active_q;
  logic [31:0] start_q, packet_q, flits_q, joint_q, sent_q;
  logic [1:0] kind_q;
  logic [RowWidth-1:0] row_q;
  logic [ColWidth-1:0] col_q;
  logic [Rows-1:0] row_mask_q;
  logic [Cols-1:0] col_mask_q;
  logic last, operand;

  assign last = sent_q == flits_q - 32'd1;
  assign operand = kind_q[1];
  assign valid_o = active_q && cycle_i >= start_q;
  assign done_o = !active_q;

  assign flit_o[FlitWidth-1] = last;
  assign flit_o[63:0] = operand ? {joint_q, arbitrary(packet_q, sent_q)}
      : {packet_q, sent_q[15:0], packet_q[15:0] ^ {sent_q[7:0], sent_q[15:8]} ^ 16'hA5C3};
  assign flit_o[ColLsb +: ColWidth] = col_q;
  assign flit_o[RowLsb +: RowWidth] = row_q;
  if (MasksWidth != 0) begin : gen_masks
    assign flit_o[MaskLsb +: Cols] = col_mask_q;
    assign flit_o[MaskLsb + Cols +: Rows] = row_mask_q;
  end
  if (LengthWidth != 0) begin : gen_length
    assign flit_o[LengthLsb +: LengthWidth] = LengthWidth'(flits_q);
  end
  if (Reduction != 0) begin : gen_reduce
    assign flit_o[KindLsb +: 2] = {operand, operand & kind_q[0]};
  end
  if (Multicast != 0) begin : gen_multicast
    assign flit_o[FlitWidth-2] = kind_q == 2'd1;
  end

  // Bits that depend on the packet and the flit in no simple way.
  function automatic logic [31:0] arbitrary(input logic [31:0] packet, input logic [31:0] flit);
    logic [31:0] x;
    x = (packet * 32'h9E3779B1) ^ (flit * 32'h85EBCA77);
    x = (x ^ (x >> 15)) * 32'h2C1B3C6D;
    return x ^ (x >> 12);
  endfunction

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
    logic [31:0] start, packet, flits, joint;
    logic [1:0] kind;
    logic [RowWidth-1:0] row;
    logic [ColWidth-1:0] col;
    logic [Rows-1:0] rows;
    logic [Cols-1:0] cols;
    fields = (file == 0) ? 0
           : $fscanf(file, "%d %d %d %d %d %d %d %d %d", start, packet, flits, kind, row, col, rows,
                     cols, joint);
    active_q <= fields == 9;
    if (fields == 9) begin
      start_q <= start;
      packet_q <= packet;
      flits_q <= flits;
      kind_q <= kind;
      row_q <= row;
      col_q <= col;
      row_mask_q <= rows;
      col_mask_q <= cols;
      joint_q <= joint;
    end
  endtask
endmodule
