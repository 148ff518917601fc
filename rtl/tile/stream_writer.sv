// Writes the words of a stream into a scratchpad, at the addresses of nested loops.
module stream_writer #(
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
  /// A word of the stream is offered.
  input  logic                           valid_i,
  /// It is taken, and written, in this cycle if it is offered.
  output logic                           ready_o,
  /// The word.
  input  logic [Width-1:0]               data_i,
  /// The scratchpad is asked to write a word.
  output logic                           write_valid_o,
  /// It writes it in this cycle.
  input  logic                           write_ready_i,
  /// The word's address.
  output logic [AddressWidth-1:0]        write_address_o,
  /// The word.
  output logic [Width-1:0]               write_data_o,
  /// The last word of the loops is written in this cycle.
  output logic                           done_o
);
  logic address_valid, last;

  assign write_valid_o = address_valid & valid_i;
  assign write_data_o = data_i;
  assign ready_o = write_valid_o & write_ready_i;
  assign done_o = ready_o & last;

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
    .ready_i(ready_o),
    .address_o(write_address_o),
    .last_o(last)
  );
endmodule
