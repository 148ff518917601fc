// The cells: one burst read or written a cycle, what is read shown in the next.
module row_storage #(
  /// Bits of an address.
  parameter int AddressWidth = 23,
  /// Bits of a burst.
  parameter int DataWidth = 256
) (
  /// Clock, rising edge.
  input  logic                    clk_i,
  /// A burst is read.
  input  logic                    read_i,
  /// A burst is written.
  input  logic                    write_i,
  /// Which.
  input  logic [AddressWidth-1:0] address_i,
  /// What is written.
  input  logic [DataWidth-1:0]    data_i,
  /// What was read last.
  output logic [DataWidth-1:0]    data_o
);
  logic [DataWidth-1:0] cells_q [2**AddressWidth];
  logic [DataWidth-1:0] data_q;

  assign data_o = data_q;

  always_ff @(posedge clk_i) begin
    if (write_i) cells_q[address_i] <= data_i;
    if (read_i) data_q <= cells_q[address_i];
  end
endmodule
