// Reads words of a scratchpad at the addresses of nested loops and offers them as a stream.
//
// It asks only for words that it has room for, so a stream that is not taken stops nothing else.
module stream_reader #(
  /// Nested loops of the addresses; at least 1.
  parameter int Levels = 2,
  /// Bits of an address.
  parameter int AddressWidth = 12,
  /// Bits of a count of the loops.
  parameter int CountWidth = 16,
  /// Bits of a word.
  parameter int Width = 64
) (
  /// Clock, rising edge.
  input  logic                           clk_i,
  /// Reset, active low, synchronous.
  input  logic                           rst_ni,
  /// Loops are offered; see address_loop.sv.
  input  logic                           loops_valid_i,
  /// They are taken in this cycle if they are offered.
  output logic                           loops_ready_o,
  /// The first address.
  input  logic [AddressWidth-1:0]        base_i,
  /// How often each level goes round.
  input  logic [Levels*CountWidth-1:0]   counts_i,
  /// By how much each level moves the address.
  input  logic [Levels*AddressWidth-1:0] strides_i,
  /// The scratchpad is asked for a word.
  output logic                           read_valid_o,
  /// It grants it in this cycle.
  input  logic                           read_ready_i,
  /// The word's address.
  output logic [AddressWidth-1:0]        read_address_o,
  /// The word granted in the cycle before is here.
  input  logic                           read_valid_i,
  /// The word.
  input  logic [Width-1:0]               read_data_i,
  /// A word is offered to the stream.
  output logic                           valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                           ready_i,
  /// The word.
  output logic [Width-1:0]               data_o
);
  // A word a cycle needs three places: one read, one on its way, one offered.
  localparam int Depth = 4;
  localparam int FreeWidth = $clog2(Depth + 1);

  logic address_valid;
  logic [FreeWidth-1:0] free;

  // What arrives in this cycle has its place already.
  assign read_valid_o = address_valid & (free > FreeWidth'(read_valid_i));

  address_loop #(
    .Levels(Levels),
    .AddressWidth(AddressWidth),
    .CountWidth(CountWidth)
  ) u_addresses (
    .clk_i,
    .rst_ni,
    .loops_valid_i,
    .loops_ready_o,
    .base_i,
    .counts_i,
    .strides_i,
    .valid_o(address_valid),
    .ready_i(read_valid_o & read_ready_i),
    .address_o(read_address_o),
    .last_o()
  );

  fifo #(
    .Width(Width),
    .Depth(Depth)
  ) u_words (
    .clk_i,
    .rst_ni,
    .valid_i(read_valid_i),
    .ready_o(),
    .data_i(read_data_i),
    .free_o(free),
    .valid_o,
    .ready_i,
    .data_o
  );
endmodule
