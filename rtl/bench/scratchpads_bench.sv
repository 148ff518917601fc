// Scratchpads side by side, of 1 to `MaxPorts` ports and 2 to 2^`MaxLogBanks` banks: one model to verify all.
//
// Scratchpad s has s / MaxLogBanks + 1 ports and 2^(s % MaxLogBanks + 1) banks. It stands at bit, or
// element, s * MaxPorts of each vector; ports that it lacks do nothing. All hold 256 words.
module scratchpads_bench #(
  /// Ports of the largest.
  parameter int MaxPorts = 8,
  /// Logarithm of the banks of the largest; at most 7.
  parameter int MaxLogBanks = 4,
  /// Bits of a word.
  parameter int Width = 16,
  /// Bits of an address.
  localparam int AddressWidth = 8,
  /// Ports of all.
  localparam int Places = MaxPorts * MaxLogBanks * MaxPorts
) (
  /// Clock, rising edge.
  input  logic                           clk_i,
  /// Reset, active low, synchronous.
  input  logic                           rst_ni,

  /// See scratchpad.sv.
  input  logic [Places-1:0]              valid_i,
  output logic [Places-1:0]              ready_o,
  input  logic [Places-1:0]              write_i,
  input  logic [Places*AddressWidth-1:0] address_i,
  input  logic [Places*Width-1:0]        data_i,
  output logic [Places-1:0]              read_valid_o,
  output logic [Places*Width-1:0]        read_data_o
);
  for (genvar s = 0; s < MaxPorts * MaxLogBanks; s++) begin : gen_scratchpad
    localparam int Ports = s / MaxLogBanks + 1;
    localparam int Banks = 2 << (s % MaxLogBanks);
    localparam int First = s * MaxPorts;

    scratchpad #(
      .Ports(Ports),
      .Banks(Banks),
      .Depth((1 << AddressWidth) / Banks),
      .Width(Width)
    ) u_scratchpad (
      .clk_i,
      .rst_ni,
      .valid_i(valid_i[First +: Ports]),
      .ready_o(ready_o[First +: Ports]),
      .write_i(write_i[First +: Ports]),
      .address_i(address_i[First*AddressWidth +: Ports*AddressWidth]),
      .data_i(data_i[First*Width +: Ports*Width]),
      .read_valid_o(read_valid_o[First +: Ports]),
      .read_data_o(read_data_o[First*Width +: Ports*Width])
    );

    if (Ports < MaxPorts) begin : gen_lacking
      localparam int Lacking = MaxPorts - Ports;
      localparam int FirstLacking = First + Ports;
      logic unused_inputs;

      assign ready_o[FirstLacking +: Lacking] = '0;
      assign read_valid_o[FirstLacking +: Lacking] = '0;
      assign read_data_o[FirstLacking*Width +: Lacking*Width] = '0;
      assign unused_inputs = ^{
        valid_i[FirstLacking +: Lacking],
        write_i[FirstLacking +: Lacking],
        address_i[FirstLacking*AddressWidth +: Lacking*AddressWidth],
        data_i[FirstLacking*Width +: Lacking*Width]
      };
    end
  end
endmodule
