// A memory channel with a replayer and a recorder: cycles cost no Python.
//
// The replayer offers the requests of the plan, `requests.txt` in the working folder, one a line:
// cycle, 1 for a write, address, data (the last two hexadecimal). Each is offered once its cycle has
// come, those before it have been taken, and fewer requests than allowed wait for their answers. A
// request's name is its number in the plan.
//
// `handshakes.txt` gets a line a phase: 0 request offered, 1 request taken, 2 response offered or 3
// response taken; cycle, number, 1 for a write, data (hexadecimal). `commands.txt` gets a line a command:
// cycle, kind (0 activate, 1 precharge, 2 precharge all, 3 refresh, 4 read, 5 write), group, bank, row,
// column, number of the request; what a command does not have is -1.
module memory_bench #(
  /// See memory_channel.sv, as for all that follow.
  parameter int BankGroups = 4,
  parameter int BanksPerGroup = 4,
  parameter int RowWidth = 8,
  parameter int ColWidth = 5,
  parameter int DataWidth = 256,
  parameter int QueueDepth = 32,
  parameter int ResponseDepth = 16,
  parameter int PassLimit = 32,
  parameter int TRcdRd = 15,
  parameter int TRcdWr = 13,
  parameter int TRp = 13,
  parameter int TRas = 35,
  parameter int TRc = 48,
  parameter int TRrdS = 4,
  parameter int TRrdL = 4,
  parameter int TFaw = 15,
  parameter int TCcdS = 2,
  parameter int TCcdL = 4,
  parameter int TRtw = 13,
  parameter int TWtrS = 13,
  parameter int TWtrL = 15,
  parameter int TRtp = 5,
  parameter int TWtp = 23,
  parameter int TRfc = 349,
  parameter int TRefi = 3900,
  parameter int Rl = 14,
  parameter int Wl = 5,
  parameter int Bl = 2
) (
  /// Clock, rising edge.
  input  logic        clk_i,
  /// Reset, active low, synchronous; the plan is opened in it.
  input  logic        rst_ni,
  /// Requests in the plan.
  input  logic [31:0] requests_i,
  /// Most requests that are taken and not answered.
  input  logic [31:0] outstanding_i,
  /// Cycles before which every response is refused.
  input  logic [31:0] hold_cycles_i,
  /// Out of 256: how often a response is refused at random.
  input  logic [7:0]  stall_i,
  /// Seed of the refusals.
  input  logic [31:0] stall_seed_i,
  /// Cycles that the run lasts at least.
  input  logic [31:0] least_cycles_i,
  /// Cycles without a handshake after which a run with requests left counts as hung.
  input  logic [31:0] patience_cycles_i,
  /// Cycles since reset.
  output logic [31:0] cycle_o,
  /// Every request has been answered, and the run has lasted long enough.
  output logic        done_o,
  /// Requests are left, and nothing moves.
  output logic        hung_o
);
  localparam int IdWidth = 32;
  localparam int GroupBits = $clog2(BankGroups);
  localparam int BankBits = $clog2(BanksPerGroup);
  localparam int AddressWidth = GroupBits + BankBits + RowWidth + ColWidth;
  // A response has come to rest some cycles after the last: nothing may follow it.
  localparam int Rest = 64;

  logic req_valid, req_ready, req_write_q, resp_valid, resp_ready, resp_write;
  logic [AddressWidth-1:0] req_address_q;
  logic [DataWidth-1:0] req_data_q, resp_data;
  logic [IdWidth-1:0] resp_id;
  logic row_valid, column_valid, column_write;
  logic [1:0] row_kind;
  logic [GroupBits-1:0] row_group, column_group;
  logic [BankBits-1:0] row_bank, column_bank;
  logic [RowWidth-1:0] row_row, column_row;
  logic [ColWidth-1:0] column_column;
  logic [IdWidth-1:0] column_id;

  logic [31:0] cycle_q, start_q, taken_q, answered_q, idle_q, random_q;
  logic active_q, offered_q, shown_q, take, answer, early;
  int plan_file, handshake_file, command_file;
  bit opened;

  memory_channel #(
    .BankGroups(BankGroups),
    .BanksPerGroup(BanksPerGroup),
    .RowWidth(RowWidth),
    .ColWidth(ColWidth),
    .DataWidth(DataWidth),
    .IdWidth(IdWidth),
    .QueueDepth(QueueDepth),
    .ResponseDepth(ResponseDepth),
    .PassLimit(PassLimit),
    .TRcdRd(TRcdRd),
    .TRcdWr(TRcdWr),
    .TRp(TRp),
    .TRas(TRas),
    .TRc(TRc),
    .TRrdS(TRrdS),
    .TRrdL(TRrdL),
    .TFaw(TFaw),
    .TCcdS(TCcdS),
    .TCcdL(TCcdL),
    .TRtw(TRtw),
    .TWtrS(TWtrS),
    .TWtrL(TWtrL),
    .TRtp(TRtp),
    .TWtp(TWtp),
    .TRfc(TRfc),
    .TRefi(TRefi),
    .Rl(Rl),
    .Wl(Wl),
    .Bl(Bl)
  ) u_channel (
    .clk_i,
    .rst_ni,
    .req_valid_i(req_valid),
    .req_ready_o(req_ready),
    .req_write_i(req_write_q),
    .req_address_i(req_address_q),
    .req_data_i(req_data_q),
    .req_id_i(taken_q),
    .resp_valid_o(resp_valid),
    .resp_ready_i(resp_ready),
    .resp_write_o(resp_write),
    .resp_id_o(resp_id),
    .resp_data_o(resp_data),
    .row_valid_o(row_valid),
    .row_kind_o(row_kind),
    .row_group_o(row_group),
    .row_bank_o(row_bank),
    .row_row_o(row_row),
    .column_valid_o(column_valid),
    .column_write_o(column_write),
    .column_group_o(column_group),
    .column_bank_o(column_bank),
    .column_row_o(column_row),
    .column_column_o(column_column),
    .column_id_o(column_id)
  );

  // Nothing that an offer depends on can take it back.
  assign req_valid = active_q && cycle_q >= start_q && taken_q - answered_q < outstanding_i;
  assign take = req_valid & req_ready;
  assign answer = resp_valid & resp_ready;
  assign resp_ready = cycle_q >= hold_cycles_i && random_q[15:8] >= stall_i;
  assign early = active_q && !req_valid && taken_q == answered_q;
  assign cycle_o = cycle_q;
  assign done_o = answered_q >= requests_i && cycle_q >= least_cycles_i && idle_q >= 32'(Rest);
  assign hung_o = answered_q < requests_i && idle_q >= patience_cycles_i;

  function automatic logic [31:0] shuffled(input logic [31:0] value);
    logic [31:0] x;
    x = value ^ (value << 13);
    x = x ^ (x >> 17);
    return x ^ (x << 5);
  endfunction

  always @(posedge clk_i) begin
    if (!rst_ni) begin
      cycle_q <= '0;
      taken_q <= '0;
      answered_q <= '0;
      idle_q <= '0;
      offered_q <= 1'b0;
      shown_q <= 1'b0;
      random_q <= stall_seed_i ^ 32'h9E3779B9 | 32'd1;
    end else begin
      cycle_q <= cycle_q + 32'd1;
      taken_q <= taken_q + 32'(take);
      answered_q <= answered_q + 32'(answer);
      // A request that waits for its cycle, or a response that is held by order, is no standstill.
      idle_q <= (take || answer || early || cycle_q < hold_cycles_i) ? '0 : idle_q + 32'd1;
      offered_q <= req_valid & ~req_ready;
      shown_q <= resp_valid & ~resp_ready;
      random_q <= shuffled(random_q);
    end
  end

  // The plan is read as the run goes.
  always @(posedge clk_i) begin
    if (!rst_ni && !opened) begin
      opened = 1'b1;
      plan_file = $fopen("requests.txt", "r");
      handshake_file = $fopen("handshakes.txt", "w");
      command_file = $fopen("commands.txt", "w");
      read_request();
    end else if (rst_ni && take) begin
      read_request();
    end
  end

  task automatic read_request;
    int fields;
    logic [31:0] start;
    logic write;
    logic [AddressWidth-1:0] address;
    logic [DataWidth-1:0] data;
    fields = (plan_file == 0) ? 0 : $fscanf(plan_file, "%d %d %h %h", start, write, address, data);
    active_q <= fields == 4;
    if (fields == 4) begin
      start_q <= start;
      req_write_q <= write;
      req_address_q <= address;
      req_data_q <= data;
    end
  endtask

  always @(posedge clk_i) begin
    if (rst_ni) begin
      if (req_valid && !offered_q) $fwrite(handshake_file, "0 %0d %0d %0d %h\n", cycle_q, taken_q,
                                           req_write_q, req_data_q);
      if (take) $fwrite(handshake_file, "1 %0d %0d %0d %h\n", cycle_q, taken_q, req_write_q,
                        req_data_q);
      if (resp_valid && !shown_q) $fwrite(handshake_file, "2 %0d %0d %0d %h\n", cycle_q, resp_id,
                                          resp_write, resp_data);
      if (answer) $fwrite(handshake_file, "3 %0d %0d %0d %h\n", cycle_q, resp_id, resp_write,
                          resp_data);
      if (row_valid) write_row_command();
      if (column_valid) $fwrite(command_file, "%0d %0d %0d %0d %0d %0d %0d\n", cycle_q,
                                column_write ? 5 : 4, column_group, column_bank, column_row,
                                column_column, column_id);
      if (done_o || hung_o) begin
        $fflush(handshake_file);
        $fflush(command_file);
      end
    end
  end

  task automatic write_row_command;
    unique case (row_kind)
      2'd0: $fwrite(command_file, "%0d 0 %0d %0d %0d -1 -1\n", cycle_q, row_group, row_bank, row_row);
      2'd1: $fwrite(command_file, "%0d 1 %0d %0d -1 -1 -1\n", cycle_q, row_group, row_bank);
      default: $fwrite(command_file, "%0d %0d -1 -1 -1 -1 -1\n", cycle_q, row_kind);
    endcase
  endtask
endmodule
