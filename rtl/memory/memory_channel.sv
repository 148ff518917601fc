// A DRAM channel: a controller with one queue, the banks' timing and their cells.
//
// A request is taken by valid/ready and answered by valid/ready, a read when its last beat has come, a
// write when its data are in the row buffer. Addresses count bursts; from the low end their bits are
// bank group, column, bank, row. A row command and a column command can be given in one cycle: the two
// have a bus each. Defaults are HBM2's, see rtl/memory/README.md.
module memory_channel #(
  /// Bank groups; a power of two, 2 to 16.
  parameter int BankGroups = 4,
  /// Banks of a group; a power of two, 2 to 16.
  parameter int BanksPerGroup = 4,
  /// Bits of a row number; 1 to 18.
  parameter int RowWidth = 14,
  /// Bits of a column number, a column being a burst; 1 to 10.
  parameter int ColWidth = 5,
  /// Bits of a burst, which is a request; at least 1.
  parameter int DataWidth = 256,
  /// Bits of a request's name; at least 1.
  parameter int IdWidth = 8,
  /// Requests that wait; at least 2.
  parameter int QueueDepth = 32,
  /// Responses that wait or are under way; at least 2.
  parameter int ResponseDepth = 16,
  /// Requests served before the oldest after which it becomes urgent; at least 1.
  parameter int PassLimit = 32,
  /// Activate to read, cycles; as all that follow.
  parameter int TRcdRd = 15,
  /// Activate to write.
  parameter int TRcdWr = 13,
  /// Precharge to activate and to refresh.
  parameter int TRp = 13,
  /// Activate to precharge.
  parameter int TRas = 35,
  /// Activate to activate of a bank.
  parameter int TRc = 48,
  /// Activate to activate of any bank.
  parameter int TRrdS = 4,
  /// Activate to activate in a group.
  parameter int TRrdL = 4,
  /// Window that sees four activates at most.
  parameter int TFaw = 15,
  /// Read to read and write to write of any bank.
  parameter int TCcdS = 2,
  /// Read to read and write to write in a group.
  parameter int TCcdL = 4,
  /// Read to write of any bank.
  parameter int TRtw = 13,
  /// Write to read of any bank.
  parameter int TWtrS = 13,
  /// Write to read in a group.
  parameter int TWtrL = 15,
  /// Read to precharge.
  parameter int TRtp = 5,
  /// Write to precharge.
  parameter int TWtp = 23,
  /// Refresh to activate.
  parameter int TRfc = 349,
  /// Refresh to refresh, on average.
  parameter int TRefi = 3900,
  /// Read to its first beat.
  parameter int Rl = 14,
  /// Write to its first beat.
  parameter int Wl = 5,
  /// Cycles of a burst.
  parameter int Bl = 2,
  /// Bits of a group's number.
  localparam int GroupBits = $clog2(BankGroups),
  /// Bits of a bank's number within its group.
  localparam int BankBits = $clog2(BanksPerGroup),
  /// Bits of an address.
  localparam int AddressWidth = GroupBits + ColWidth + BankBits + RowWidth
) (
  /// Clock, rising edge.
  input  logic                    clk_i,
  /// Reset, active low, synchronous; the cells keep what they hold.
  input  logic                    rst_ni,

  /// A request is offered.
  input  logic                    req_valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                    req_ready_o,
  /// It is a write.
  input  logic                    req_write_i,
  /// Its address, in bursts.
  input  logic [AddressWidth-1:0] req_address_i,
  /// What a write writes.
  input  logic [DataWidth-1:0]    req_data_i,
  /// Its name, which the response carries.
  input  logic [IdWidth-1:0]      req_id_i,

  /// A response is offered.
  output logic                    resp_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                    resp_ready_i,
  /// It answers a write.
  output logic                    resp_write_o,
  /// The name of its request.
  output logic [IdWidth-1:0]      resp_id_o,
  /// What was read; zero for a write.
  output logic [DataWidth-1:0]    resp_data_o,

  /// To observe: a row command is given.
  output logic                    row_valid_o,
  /// 0 activate, 1 precharge, 2 precharge all, 3 refresh.
  output logic [1:0]              row_kind_o,
  /// Its group; of an activate or a precharge.
  output logic [GroupBits-1:0]    row_group_o,
  /// Its bank; of an activate or a precharge.
  output logic [BankBits-1:0]     row_bank_o,
  /// Its row; of an activate.
  output logic [RowWidth-1:0]     row_row_o,
  /// To observe: a column command is given.
  output logic                    column_valid_o,
  /// It is a write.
  output logic                    column_write_o,
  /// Its group.
  output logic [GroupBits-1:0]    column_group_o,
  /// Its bank.
  output logic [BankBits-1:0]     column_bank_o,
  /// The row that its request means.
  output logic [RowWidth-1:0]     column_row_o,
  /// Its column.
  output logic [ColWidth-1:0]     column_column_o,
  /// The name of its request.
  output logic [IdWidth-1:0]      column_id_o
);
  localparam int Banks = BankGroups * BanksPerGroup;
  localparam int BankWidth = GroupBits + BankBits;
  localparam int IndexWidth = $clog2(QueueDepth);
  localparam int TimerWidth = 12;
  localparam int Longest = 2**TimerWidth - 1;
  localparam int Activate = 0;
  localparam int Precharge = 1;
  localparam int PrechargeAll = 2;
  localparam int Refresh = 3;

  if (BankGroups < 2 || BankGroups > 16 || 2**GroupBits != BankGroups) begin : gen_illegal_groups
    $error("memory_channel: BankGroups must be a power of two, 2 to 16");
  end
  if (BanksPerGroup < 2 || BanksPerGroup > 16 || 2**BankBits != BanksPerGroup)
  begin : gen_illegal_banks
    $error("memory_channel: BanksPerGroup must be a power of two, 2 to 16");
  end
  if (RowWidth < 1 || RowWidth > 18 || ColWidth < 1 || ColWidth > 10) begin : gen_illegal_rows
    $error("memory_channel: RowWidth must be 1 to 18, ColWidth 1 to 10");
  end
  if (DataWidth < 1 || IdWidth < 1) begin : gen_illegal_widths
    $error("memory_channel: DataWidth and IdWidth must be at least 1");
  end
  if (TRcdRd < 1 || TRcdWr < 1 || TRp < 1 || TRas < 1 || TRrdS < 1 || TFaw < 1 || TRtw < 1
      || TWtrS < 1 || TRtp < 1 || TWtp < 1 || TRfc < 1 || Rl < 1 || Wl < 1 || Bl < 1) begin : gen_illegal_times
    $error("memory_channel: times must be at least 1 cycle");
  end
  if (TRcdRd > Longest || TRcdWr > Longest || TRp > Longest || TRas > Longest || TRc > Longest
      || TRrdL > Longest || TFaw > Longest || TCcdL > Longest || TRtw > Longest || TWtrL > Longest
      || TRtp > Longest || TWtp > Longest || TRfc > Longest || Rl > Longest || Wl > Longest
      || Bl > Longest) begin : gen_illegal_long_times
    $error("memory_channel: times but TRefi must be at most 4095 cycles");
  end
  if (TRc < TRas || TRrdL < TRrdS || TCcdL < TCcdS || TWtrL < TWtrS) begin : gen_illegal_order
    $error("memory_channel: TRc must be at least TRas, and a time in a group that of any bank");
  end
  if (TCcdS < Bl || TRtw + Wl < Rl + Bl || TWtrS + Rl < Wl + Bl) begin : gen_illegal_bus
    $error("memory_channel: TCcdS, TRtw and TWtrS must keep two bursts from the bus at once");
  end
  // Until a refresh: rows are closed (TRas, TRtp or TWtp), then TRp or the rest of TRc.
  if (TRefi > 65535 || TRefi <= TRfc + TRc + TRas + TRtp + TWtp + TRp) begin : gen_illegal_refresh
    $error("memory_channel: TRefi must be at most 65535, and leave time to close rows and refresh");
  end

  logic [QueueDepth-1:0] waiting, waiting_write, waiting_first;
  logic [QueueDepth*AddressWidth-1:0] waiting_address;
  logic urgent, halt, room, last;
  logic [Banks-1:0] open, activate_ok, precharge_ok, read_ok, write_ok;
  logic [Banks*RowWidth-1:0] open_row;
  logic [BankGroups-1:0] group_activate, group_read, group_write;
  logic [BankGroups-1:0] group_activate_ok, group_read_ok, group_write_ok;
  logic column, write, activate, precharge, precharge_all, refresh, refreshed;
  logic [IndexWidth-1:0] index;
  logic [BankWidth-1:0] column_bank, row_bank;
  logic [RowWidth-1:0] row;
  logic [AddressWidth-1:0] address;
  logic [DataWidth-1:0] write_data, read_data;
  logic [IdWidth-1:0] id;

  request_queue #(
    .AddressWidth(AddressWidth),
    .DataWidth(DataWidth),
    .IdWidth(IdWidth),
    .Depth(QueueDepth),
    .PassLimit(PassLimit)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .push_valid_i(req_valid_i),
    .push_ready_o(req_ready_o),
    .push_write_i(req_write_i),
    .push_address_i(req_address_i),
    .push_data_i(req_data_i),
    .push_id_i(req_id_i),
    .pop_i(column),
    .pop_index_i(index),
    .pop_write_o(write),
    .pop_address_o(address),
    .pop_data_o(write_data),
    .pop_id_o(id),
    .valid_o(waiting),
    .write_o(waiting_write),
    .address_o(waiting_address),
    .first_o(waiting_first),
    .urgent_o(urgent)
  );

  // What bank, group and channel allow together.
  logic [Banks-1:0] may_activate, may_read, may_write;
  always_comb begin
    for (int b = 0; b < Banks; b++) begin
      may_activate[b] = activate_ok[b] & group_activate_ok[b/BanksPerGroup] & refreshed;
      may_read[b] = read_ok[b] & group_read_ok[b/BanksPerGroup];
      may_write[b] = write_ok[b] & group_write_ok[b/BanksPerGroup];
    end
  end

  scheduler #(
    .BankGroups(BankGroups),
    .BanksPerGroup(BanksPerGroup),
    .RowWidth(RowWidth),
    .ColWidth(ColWidth),
    .Depth(QueueDepth)
  ) u_scheduler (
    .valid_i(waiting),
    .write_i(waiting_write),
    .address_i(waiting_address),
    .first_i(waiting_first),
    .urgent_i(urgent),
    .halt_i(halt),
    .room_i(room),
    .open_i(open),
    .row_i(open_row),
    .activate_ok_i(may_activate),
    .precharge_ok_i(precharge_ok),
    .read_ok_i(may_read),
    .write_ok_i(may_write),
    .column_valid_o(column),
    .column_index_o(index),
    .column_bank_o(column_bank),
    .activate_o(activate),
    .precharge_o(precharge),
    .row_bank_o(row_bank),
    .row_o(row)
  );

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    logic row_here, column_here;

    assign row_here = row_bank == BankWidth'(b);
    assign column_here = column & (column_bank == BankWidth'(b));

    bank_timing #(
      .RowWidth(RowWidth),
      .TimerWidth(TimerWidth),
      .TRcdRd(TRcdRd),
      .TRcdWr(TRcdWr),
      .TRp(TRp),
      .TRas(TRas),
      .TRc(TRc),
      .TRtp(TRtp),
      .TWtp(TWtp)
    ) u_bank (
      .clk_i,
      .rst_ni,
      .activate_i(activate & row_here),
      .row_i(row),
      .precharge_i((precharge & row_here) | (precharge_all & open[b])),
      .read_i(column_here & ~write),
      .write_i(column_here & write),
      .open_o(open[b]),
      .row_o(open_row[b*RowWidth +: RowWidth]),
      .activate_ok_o(activate_ok[b]),
      .precharge_ok_o(precharge_ok[b]),
      .read_ok_o(read_ok[b]),
      .write_ok_o(write_ok[b])
    );
  end

  for (genvar g = 0; g < BankGroups; g++) begin : gen_group
    assign group_activate[g] = activate & (row_bank[BankBits +: GroupBits] == GroupBits'(g));
    assign group_read[g] = column & ~write & (column_group_o == GroupBits'(g));
    assign group_write[g] = column & write & (column_group_o == GroupBits'(g));
  end

  channel_timing #(
    .BankGroups(BankGroups),
    .TimerWidth(TimerWidth),
    .TRrdS(TRrdS),
    .TRrdL(TRrdL),
    .TFaw(TFaw),
    .TCcdS(TCcdS),
    .TCcdL(TCcdL),
    .TRtw(TRtw),
    .TWtrS(TWtrS),
    .TWtrL(TWtrL)
  ) u_channel (
    .clk_i,
    .rst_ni,
    .activate_i(group_activate),
    .read_i(group_read),
    .write_i(group_write),
    .activate_ok_o(group_activate_ok),
    .read_ok_o(group_read_ok),
    .write_ok_o(group_write_ok)
  );

  refresh_timer #(
    .TimerWidth(TimerWidth),
    .TRfc(TRfc),
    .TRefi(TRefi)
  ) u_refresh (
    .clk_i,
    .rst_ni,
    .open_i(|open),
    .precharge_ok_i(&(precharge_ok | ~open)),
    .activate_ok_i(&activate_ok),
    .halt_o(halt),
    .precharge_all_o(precharge_all),
    .refresh_o(refresh),
    .activate_ok_o(refreshed)
  );

  // A read sees every write whose command came before: the order on the data bus is the same.
  row_storage #(
    .AddressWidth(AddressWidth),
    .DataWidth(DataWidth)
  ) u_storage (
    .clk_i,
    .read_i(column & ~write),
    .write_i(column & write),
    .address_i(address),
    .data_i(write_data),
    .data_o(read_data)
  );

  burst_timer #(
    .Rl(Rl),
    .Wl(Wl),
    .Bl(Bl)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .read_i(column & ~write),
    .write_i(column & write),
    .last_o(last)
  );

  response_fifo #(
    .DataWidth(DataWidth),
    .IdWidth(IdWidth),
    .Depth(ResponseDepth)
  ) u_responses (
    .clk_i,
    .rst_ni,
    .room_o(room),
    .reserve_i(column),
    .write_i(write),
    .id_i(id),
    .data_i(read_data),
    .last_i(last),
    .valid_o(resp_valid_o),
    .ready_i(resp_ready_i),
    .write_o(resp_write_o),
    .id_o(resp_id_o),
    .data_o(resp_data_o)
  );

  assign row_valid_o = activate | precharge | precharge_all | refresh;
  assign {row_group_o, row_bank_o} = row_bank;
  assign row_row_o = row;
  always_comb begin
    row_kind_o = 2'(Activate);
    if (precharge) row_kind_o = 2'(Precharge);
    if (precharge_all) row_kind_o = 2'(PrechargeAll);
    if (refresh) row_kind_o = 2'(Refresh);
  end

  assign column_valid_o = column;
  assign column_write_o = write;
  assign {column_row_o, column_bank_o, column_column_o, column_group_o} = address;
  assign column_id_o = id;

`ifndef SYNTHESIS
  logic refused_q;
  logic [AddressWidth+DataWidth+IdWidth:0] offer, offer_q;
  assign offer = {req_write_i, req_address_i, req_data_i, req_id_i};

  always @(posedge clk_i) begin
    refused_q <= rst_ni & req_valid_i & ~req_ready_o;
    offer_q <= offer;
    if (rst_ni) begin
      assert (!refused_q || (req_valid_i && offer == offer_q))
        else $error("memory_channel: a refused request changed");
      assert (!column || (open[column_bank]
                          && open_row[column_bank*RowWidth +: RowWidth] == column_row_o))
        else $error("memory_channel: a column command to a row that is not open");
      assert ($onehot0({activate, precharge, precharge_all, refresh}))
        else $error("memory_channel: two row commands at once");
      assert (!refresh || open == '0) else $error("memory_channel: refresh of an open row");
      assert (!halt || !(column | activate | precharge)) else $error("memory_channel: no halt");
    end
  end
`endif
endmodule
