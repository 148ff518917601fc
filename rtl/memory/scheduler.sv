// Chooses the commands of a cycle: first ready, first come, first served (FR-FCFS).
//
// Column command: the oldest request whose row is open and whose read or write is allowed. Row
// command: the oldest request that needs an activate, or a precharge, and may have it. A row that a
// waiting request hits is not closed.
//
// When the oldest request is urgent, its bank serves no row but its own, which closes the open one in
// spite of hits; and once its row is open, nobody goes in the other direction.
module scheduler #(
  /// Bank groups.
  parameter int BankGroups = 4,
  /// Banks of a group.
  parameter int BanksPerGroup = 4,
  /// Bits of a row number.
  parameter int RowWidth = 14,
  /// Bits of a column number.
  parameter int ColWidth = 5,
  /// Requests to choose from.
  parameter int Depth = 32,
  /// Banks; bank b of group g is number g BanksPerGroup + b.
  localparam int Banks = BankGroups * BanksPerGroup,
  /// Bits of a bank's number.
  localparam int BankWidth = $clog2(Banks),
  /// Bits of an address: row, bank, column, group from the high end.
  localparam int AddressWidth = BankWidth + RowWidth + ColWidth,
  /// Bits of a request's number.
  localparam int IndexWidth = $clog2(Depth)
) (
  /// Requests that wait, the oldest in bit 0.
  input  logic [Depth-1:0]              valid_i,
  /// They are writes.
  input  logic [Depth-1:0]              write_i,
  /// Their addresses.
  input  logic [Depth*AddressWidth-1:0] address_i,
  /// No older request has the same address.
  input  logic [Depth-1:0]              first_i,
  /// The oldest request has been passed often enough.
  input  logic                          urgent_i,
  /// No command may be chosen.
  input  logic                          halt_i,
  /// There is room for a response.
  input  logic                          room_i,
  /// Banks with an open row.
  input  logic [Banks-1:0]              open_i,
  /// Their rows.
  input  logic [Banks*RowWidth-1:0]     row_i,
  /// Banks that may be activated if closed.
  input  logic [Banks-1:0]              activate_ok_i,
  /// Banks that may be precharged.
  input  logic [Banks-1:0]              precharge_ok_i,
  /// Banks that may be read.
  input  logic [Banks-1:0]              read_ok_i,
  /// Banks that may be written.
  input  logic [Banks-1:0]              write_ok_i,
  /// A column command is given.
  output logic                          column_valid_o,
  /// The request that it serves.
  output logic [IndexWidth-1:0]         column_index_o,
  /// The bank that it goes to.
  output logic [BankWidth-1:0]          column_bank_o,
  /// A bank is activated.
  output logic                          activate_o,
  /// A bank is precharged.
  output logic                          precharge_o,
  /// The bank that is activated or precharged.
  output logic [BankWidth-1:0]          row_bank_o,
  /// The row that is opened; for a precharge, that which is waited for.
  output logic [RowWidth-1:0]           row_o
);
  localparam int GroupBits = $clog2(BankGroups);
  localparam int BankBits = $clog2(BanksPerGroup);

  logic [BankWidth-1:0] bank [Depth];
  logic [RowWidth-1:0] row [Depth];
  logic [RowWidth-1:0] open_row [Banks];
  logic [Depth-1:0] hit, serves, activates, precharges;
  // Banks whose open row somebody waits for.
  logic [Banks-1:0] wanted;

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    assign open_row[b] = row_i[b*RowWidth +: RowWidth];
  end

  for (genvar k = 0; k < Depth; k++) begin : gen_request
    localparam int Lsb = k * AddressWidth;
    logic same_bank, held, column_ok, free;

    assign bank[k] = {address_i[Lsb +: GroupBits], address_i[Lsb + GroupBits + ColWidth +: BankBits]};
    assign row[k] = address_i[Lsb + BankWidth + ColWidth +: RowWidth];
    assign hit[k] = valid_i[k] & open_i[bank[k]] & (open_row[bank[k]] == row[k]);

    // What an urgent oldest request forbids the others.
    assign same_bank = bank[k] == bank[0];
    assign held = urgent_i & ((same_bank & (row[k] != row[0])) | (hit[0] & (write_i[k] != write_i[0])));

    assign column_ok = write_i[k] ? write_ok_i[bank[k]] : read_ok_i[bank[k]];
    assign serves[k] = hit[k] & first_i[k] & column_ok & room_i & ~held & ~halt_i;
    assign activates[k] = valid_i[k] & ~open_i[bank[k]] & activate_ok_i[bank[k]] & ~halt_i;
    assign free = ~wanted[bank[k]] | (urgent_i & (k == 0));
    assign precharges[k] = valid_i[k] & open_i[bank[k]] & ~hit[k] & precharge_ok_i[bank[k]] & free
                           & ~halt_i;
  end

  always_comb begin
    wanted = '0;
    for (int k = 0; k < Depth; k++) if (hit[k]) wanted[bank[k]] = 1'b1;
  end

  // The oldest is looked at last and wins.
  always_comb begin
    column_index_o = '0;
    for (int k = Depth - 1; k >= 0; k--) if (serves[k]) column_index_o = IndexWidth'(k);
  end

  always_comb begin
    activate_o = 1'b0;
    precharge_o = 1'b0;
    row_bank_o = '0;
    row_o = '0;
    for (int k = Depth - 1; k >= 0; k--) begin
      if (activates[k] | precharges[k]) begin
        activate_o = activates[k];
        precharge_o = precharges[k];
        row_bank_o = bank[k];
        row_o = row[k];
      end
    end
  end

  assign column_valid_o = |serves;
  assign column_bank_o = bank[column_index_o];

  // The columns of the addresses decide nothing.
  logic unused_columns;
  assign unused_columns = ^address_i;
endmodule
