// Packs the low bits of 32-bit elements: `PackedWords` words of a stream become one, the first in its low bits.
//
// While `pack_i` is low, words pass as they are.
module word_packer #(
  /// Bits that are kept of an element: 8 or 16.
  parameter int ElementWidth = 16,
  /// Bits of a word.
  parameter int Width = 64
) (
  /// Clock, rising edge.
  input  logic             clk_i,
  /// Reset, active low, synchronous.
  input  logic             rst_ni,
  /// Elements are packed; changes only between whole packed words.
  input  logic             pack_i,
  /// A word is offered.
  input  logic             valid_i,
  /// It is taken in this cycle if it is offered.
  output logic             ready_o,
  /// Its elements.
  input  logic [Width-1:0] data_i,
  /// A word is offered.
  output logic             valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic             ready_i,
  /// It.
  output logic [Width-1:0] data_o
);
  localparam int Elements = Width / 32;
  localparam int PartWidth = Elements * ElementWidth;
  localparam int PackedWords = Width / PartWidth;
  localparam int IndexWidth = $clog2(PackedWords);

  logic [IndexWidth-1:0] index_q;
  logic [Width-PartWidth-1:0] parts_q;
  logic [PartWidth-1:0] part;
  logic complete;

  always_comb begin
    for (int e = 0; e < Elements; e++) begin
      part[e*ElementWidth +: ElementWidth] = data_i[e*32 +: ElementWidth];
    end
  end

  assign complete = index_q == IndexWidth'(PackedWords - 1);
  assign valid_o = valid_i & (complete | ~pack_i);
  assign ready_o = (pack_i & ~complete) | ready_i;
  assign data_o = pack_i ? {part, parts_q} : data_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) index_q <= '0;
    else if (valid_i & ready_o & pack_i) index_q <= index_q + IndexWidth'(1);
  end
  always_ff @(posedge clk_i) begin
    if (valid_i & ready_o) parts_q <= (Width - PartWidth)'({part, parts_q} >> PartWidth);
  end
endmodule
