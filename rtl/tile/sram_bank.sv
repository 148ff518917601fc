// A single-ported memory: in a cycle one word is read or written. A read shows its word a cycle later.
//
// It has no reset; a word has no value until it is written. This file is what an SRAM macro replaces.
module sram_bank #(
  /// Words; at least 2.
  parameter int Depth = 256,
  /// Bits of a word.
  parameter int Width = 64,
  /// Bits of a word's number.
  localparam int RowWidth = $clog2(Depth)
) (
  /// Clock, rising edge.
  input  logic                clk_i,
  /// A word is read or written in this cycle.
  input  logic                enable_i,
  /// It is written.
  input  logic                write_i,
  /// Which word; below `Depth`.
  input  logic [RowWidth-1:0] row_i,
  /// What is written.
  input  logic [Width-1:0]    data_i,
  /// The word that was last read; not valid after a write.
  output logic [Width-1:0]    data_o
);
  logic [Width-1:0] memory_q [Depth];

  always_ff @(posedge clk_i) begin
    if (enable_i) begin
      if (write_i) memory_q[row_i] <= data_i;
      else data_o <= memory_q[row_i];
    end
  end
endmodule
