// A tile's memory: ports share banks of single-ported memory, over which words are interleaved.
//
// A bank serves one word a cycle, a read or a write alike. Ports that ask for the same bank take turns
// (round-robin, each bank by itself); no port waits for a bank that it does not ask. What is read
// comes a cycle later, in order, and must be taken then.
module scratchpad #(
  /// Ports; 1 to 32.
  parameter int Ports = 4,
  /// Banks; a power of two, 2 to 256.
  parameter int Banks = 4,
  /// Words of a bank; at least 2.
  parameter int Depth = 256,
  /// Bits of a word; at least 1.
  parameter int Width = 64,
  /// Bits of an address: the bank in the low bits, above it the word of the bank.
  localparam int AddressWidth = $clog2(Depth) + $clog2(Banks)
) (
  /// Clock, rising edge.
  input  logic                          clk_i,
  /// Reset of all but the memory, active low, synchronous.
  input  logic                          rst_ni,
  /// One bit a port: it asks for a word, until it is served.
  input  logic [Ports-1:0]              valid_i,
  /// One bit a port: it asks and is served in this cycle.
  output logic [Ports-1:0]              ready_o,
  /// One bit a port: the word is written.
  input  logic [Ports-1:0]              write_i,
  /// A port's address, in words; the word of the bank is below `Depth`.
  input  logic [Ports*AddressWidth-1:0] address_i,
  /// What a port writes.
  input  logic [Ports*Width-1:0]        data_i,
  /// One bit a port: the word that it read in the cycle before is here.
  output logic [Ports-1:0]              read_valid_o,
  /// What a port has read.
  output logic [Ports*Width-1:0]        read_data_o
);
  localparam int BankWidth = $clog2(Banks);
  localparam int RowWidth = $clog2(Depth);

  if (Ports < 1 || Ports > 32) begin : gen_illegal_ports
    $error("scratchpad: Ports is %0d, must be 1 to 32", Ports);
  end
  if (Banks < 2 || Banks > 256 || (Banks & (Banks - 1)) != 0) begin : gen_illegal_banks
    $error("scratchpad: Banks is %0d, must be a power of two, 2 to 256", Banks);
  end
  if (Depth < 2) begin : gen_illegal_depth
    $error("scratchpad: Depth is %0d, must be at least 2", Depth);
  end
  if (Width < 1) begin : gen_illegal_width
    $error("scratchpad: Width is %0d, must be at least 1", Width);
  end

  logic [Ports-1:0][BankWidth-1:0] bank, bank_q;
  logic [Ports-1:0][RowWidth-1:0] row;
  logic [Banks-1:0][Ports-1:0] grant;
  logic [Banks-1:0][Width-1:0] read;
  logic [Ports-1:0] read_valid_q;

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    assign {row[p], bank[p]} = address_i[p*AddressWidth +: AddressWidth];
    assign read_data_o[p*Width +: Width] = read[bank_q[p]];
  end

  always_comb begin
    ready_o = '0;
    for (int b = 0; b < Banks; b++) ready_o |= grant[b];
  end

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    logic asked, write;
    logic [Ports-1:0] request;
    logic [RowWidth-1:0] bank_row;
    logic [Width-1:0] written;

    for (genvar p = 0; p < Ports; p++) begin : gen_request
      assign request[p] = valid_i[p] & (bank[p] == BankWidth'(b));
    end

    // The line must not move in a cycle in which nobody asks.
    assign asked = request != '0;

    rr_arbiter #(
      .Requesters(Ports)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .request_i(request),
      .advance_i(asked),
      .grant_o(grant[b])
    );

    always_comb begin
      bank_row = '0;
      written = '0;
      for (int p = 0; p < Ports; p++) begin
        if (grant[b][p]) begin
          bank_row |= row[p];
          written |= data_i[p*Width +: Width];
        end
      end
    end

    assign write = (grant[b] & write_i) != '0;

    sram_bank #(
      .Depth(Depth),
      .Width(Width)
    ) u_bank (
      .clk_i,
      .enable_i(asked),
      .write_i(write),
      .row_i(bank_row),
      .data_i(written),
      .data_o(read[b])
    );
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) read_valid_q <= '0;
    else read_valid_q <= ready_o & ~write_i;
  end

  always_ff @(posedge clk_i) begin
    bank_q <= bank;
  end

  assign read_valid_o = read_valid_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    for (int p = 0; p < Ports; p++) begin
      if (rst_ni && valid_i[p] && 32'(row[p]) >= Depth) begin
        $fatal(1, "scratchpad: port %0d asks for address %0d, there are %0d words", p,
               address_i[p*AddressWidth +: AddressWidth], Banks * Depth);
      end
    end
  end
`endif
endmodule
