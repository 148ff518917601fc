// Fields of a flit's header; a field that is compiled out reads as zero.
module header #(
  /// Rows of the mesh.
  parameter int Rows = 4,
  /// Columns of the mesh.
  parameter int Cols = 4,
  /// Flits held by each input buffer.
  parameter int FifoDepth = 4,
  /// Bits of a flit's payload.
  parameter int PayloadWidth = 64,
  /// 1: the network forks multicasts.
  parameter int Multicast = 1,
  /// 1: the network combines reductions.
  parameter int Reduction = 1,
  /// 1: multicasts and reductions go by virtual cut-through.
  parameter int CutThrough = 1,
  /// Bits of a row index.
  localparam int RowWidth = noc_pkg::index_width(Rows),
  /// Bits of a column index.
  localparam int ColWidth = noc_pkg::index_width(Cols),
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(FifoDepth + 1),
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, PayloadWidth, Multicast,
                                                 Reduction, CutThrough)
) (
  /// A flit.
  input  logic [FlitWidth-1:0]  flit_i,
  /// Destination of a unicast, root of a reduction: its row.
  output logic [RowWidth-1:0]   row_o,
  /// Its column.
  output logic [ColWidth-1:0]   col_o,
  /// Marked rows: destinations of a multicast, operands of a reduction.
  output logic [Rows-1:0]       row_mask_o,
  /// Marked columns.
  output logic [Cols-1:0]       col_mask_o,
  /// Flits of a multicast's or reduction's packet.
  output logic [CountWidth-1:0] length_o,
  /// The packet is a multicast.
  output logic                  multicast_o,
  /// The packet is an operand of a reduction.
  output logic                  reduce_o,
  /// The reduction keeps the larger element, signed; else it adds.
  output logic                  maximum_o,
  /// Last flit of the packet.
  output logic                  last_o
);
  localparam int ColLsb = PayloadWidth;
  localparam int RowLsb = ColLsb + ColWidth;
  localparam int MaskLsb = RowLsb + RowWidth;
  localparam int LengthLsb = MaskLsb + noc_pkg::masks_width(Rows, Cols, Multicast, Reduction);
  localparam int KindLsb = LengthLsb
                         + noc_pkg::length_width(FifoDepth, Multicast, Reduction, CutThrough);

  assign col_o = flit_i[ColLsb +: ColWidth];
  assign row_o = flit_i[RowLsb +: RowWidth];
  assign last_o = flit_i[FlitWidth-1];

  if (Multicast != 0 || Reduction != 0) begin : gen_masks
    assign col_mask_o = flit_i[MaskLsb +: Cols];
    assign row_mask_o = flit_i[MaskLsb + Cols +: Rows];
  end else begin : gen_no_masks
    assign col_mask_o = '0;
    assign row_mask_o = '0;
  end

  if (CutThrough != 0 && (Multicast != 0 || Reduction != 0)) begin : gen_length
    assign length_o = flit_i[LengthLsb +: CountWidth];
  end else begin : gen_no_length
    assign length_o = '0;
  end

  if (Reduction != 0) begin : gen_reduce
    assign maximum_o = flit_i[KindLsb];
    assign reduce_o = flit_i[KindLsb+1];
  end else begin : gen_no_reduce
    assign maximum_o = 1'b0;
    assign reduce_o = 1'b0;
  end

  if (Multicast != 0) begin : gen_multicast
    assign multicast_o = flit_i[FlitWidth-2];
  end else begin : gen_no_multicast
    assign multicast_o = 1'b0;
  end

  logic unused_payload;
  assign unused_payload = ^flit_i[PayloadWidth-1:0];
endmodule
