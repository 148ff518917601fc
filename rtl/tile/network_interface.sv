// Transfers between scratchpads over the network: sends words from its own, writes what comes into its own.
//
// A word travels with the address it is written to at its destination, and the last one of a transfer
// with the tokens given there when it is written. So what comes needs no table and no order: transfers
// from several tiles may mix flit by flit. Of a reduction one operand carries address and token, the
// others zeros in their place, which change neither sum nor maximum.
//
//   job_i, 64-bit words from the low end (descriptors.md):
//   0  bits 5:4 kind, 6 notify, 7 carry, 13:8 token, 19:16 row, 23:20 column, 47:32 words, 63:48 rows
//   1  source address, distance of its rows, target address, distance of its rows; 16 bits each
//   2  15:0 column mask, 31:16 row mask, 47:32 flits, 53:48 second token, 54 notify with it too
//
// Without notify the target has 27 bits: the second token is bits 21:16, the token's low five bits 26:22. So
// it reaches all of a memory channel; a tile looks at its own bits alone.
//
// The next job is taken while the words of one are still on their way out of the scratchpad.
module network_interface #(
  /// Rows of the mesh; at most 16.
  parameter int Rows = 2,
  /// Columns of the mesh; at most 16.
  parameter int Cols = 2,
  /// Flits held by each input buffer of a router: the longest packet of a multicast or reduction.
  parameter int FifoDepth = 4,
  /// Bits of a scratchpad's address; at most 16.
  parameter int AddressWidth = 12,
  /// Jobs that may be under way at a time; at least 1.
  parameter int Outstanding = 2,
  /// Bits of a job.
  localparam int JobWidth = 256,
  /// Bits of a word.
  localparam int Width = 64,
  /// Bits of a flit's payload: above the word an element with address, token and notification.
  localparam int PayloadWidth = Width + 32,
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, PayloadWidth, 1, 1, 1)
) (
  /// Clock, rising edge.
  input  logic                    clk_i,
  /// Reset, active low, synchronous.
  input  logic                    rst_ni,
  /// A job is offered.
  input  logic                    job_valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                    job_ready_o,
  /// The job.
  input  logic [JobWidth-1:0]     job_i,
  /// The tail flit of the oldest job leaves in this cycle.
  output logic                    done_o,
  /// The scratchpad is asked for a word to send.
  output logic                    read_valid_o,
  /// It grants it in this cycle.
  input  logic                    read_ready_i,
  /// Its address.
  output logic [AddressWidth-1:0] read_address_o,
  /// The word granted in the cycle before is here.
  input  logic                    read_valid_i,
  /// The word.
  input  logic [Width-1:0]        read_data_i,
  /// The scratchpad is asked to write a word that came.
  output logic                    write_valid_o,
  /// It writes it in this cycle.
  input  logic                    write_ready_i,
  /// Its address.
  output logic [AddressWidth-1:0] write_address_o,
  /// The word.
  output logic [Width-1:0]        write_data_o,
  /// The last word of a transfer is written in this cycle, and gives tokens.
  output logic                    arrived_o,
  /// Which tokens.
  output logic [63:0]             arrived_gives_o,
  /// A flit is offered to the network.
  output logic                    inject_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                    inject_ready_i,
  /// The flit.
  output logic [FlitWidth-1:0]    inject_flit_o,
  /// The network offers a flit.
  input  logic                    eject_valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                    eject_ready_o,
  /// The flit.
  input  logic [FlitWidth-1:0]    eject_flit_i
);
  localparam int CountWidth = 16;
  localparam int LengthWidth = $clog2(FifoDepth + 1);
  localparam int RowWidth = noc_pkg::index_width(Rows);
  localparam int ColWidth = noc_pkg::index_width(Cols);
  // A target's bits in a descriptor and in a flit, and those above that have the tokens' place.
  localparam int LowWidth = 16;
  localparam int HighWidth = 11;
  localparam int TargetWidth = HighWidth + LowWidth;
  localparam logic [1:0] Unicast = 2'd0;
  localparam logic [1:0] Multicast = 2'd1;
  localparam int JobsDepth = (Outstanding > 2) ? Outstanding : 2;
  // What of a job makes the flits' headers: kind, notify, carry, token, row, column, masks, flits, and the
  // second token with its notify.
  localparam int HeadWidth = 7 + 2 + 2 + 6 + RowWidth + ColWidth + Rows + Cols + CountWidth;

  if (Rows > 16 || Cols > 16) begin : gen_illegal_shape
    $error("network_interface: Rows and Cols are %0d and %0d, must be at most 16", Rows, Cols);
  end

  logic unused_job;
  assign unused_job = ^job_i;

  // A job is taken by all three that work on it, or by none.
  logic start, head_free, read_free, target_free;
  assign job_ready_o = head_free & read_free & target_free;
  assign start = job_valid_i & job_ready_o;

  logic head_valid, word_valid, send;
  logic [HeadWidth-1:0] head_in, head;
  logic [Width-1:0] word;
  logic [TargetWidth-1:0] target;
  logic target_valid, target_last;

  stream_reader #(
    .Levels(2),
    .AddressWidth(AddressWidth)
  ) u_words (
    .clk_i,
    .rst_ni,
    .loops_valid_i(start),
    .loops_ready_o(read_free),
    .base_i(AddressWidth'(job_i[64 +: 16])),
    .counts_i(job_i[32 +: 32]),
    .strides_i({AddressWidth'(job_i[80 +: 16]), AddressWidth'(1)}),
    .read_valid_o,
    .read_ready_i,
    .read_address_o,
    .read_valid_i,
    .read_data_i,
    .valid_o(word_valid),
    .ready_i(send),
    .data_o(word)
  );

  // The target's loops wait here for their turn, as do the headers.
  localparam int LoopsWidth = TargetWidth + LowWidth + 2 * CountWidth;
  logic loops_valid, loops_ready;
  logic [HighWidth-1:0] target_high;
  assign target_high = job_i[6] ? '0 : {job_i[12:8], job_i[176 +: 6]};
  logic [LoopsWidth-1:0] loops;
  fifo #(
    .Width(LoopsWidth),
    .Depth(JobsDepth)
  ) u_loops (
    .clk_i,
    .rst_ni,
    .valid_i(start),
    .ready_o(target_free),
    .data_i({job_i[112 +: LowWidth], target_high, job_i[96 +: LowWidth], job_i[32 +: 32]}),
    .free_o(),
    .valid_o(loops_valid),
    .ready_i(loops_ready),
    .data_o(loops)
  );

  address_loop #(
    .Levels(2),
    .AddressWidth(TargetWidth)
  ) u_targets (
    .clk_i,
    .rst_ni,
    .loops_valid_i(loops_valid),
    .loops_ready_o(loops_ready),
    .base_i(loops[32 +: TargetWidth]),
    .counts_i(loops[31:0]),
    .strides_i({TargetWidth'(loops[32 + TargetWidth +: LowWidth]), TargetWidth'(1)}),
    .valid_o(target_valid),
    .ready_i(send),
    .address_o(target),
    .last_o(target_last)
  );

  assign head_in = {job_i[176 +: 7], job_i[160 +: CountWidth], job_i[144 +: Rows], job_i[128 +: Cols],
                    job_i[16 +: RowWidth], job_i[20 +: ColWidth], job_i[13:4]};
  fifo #(
    .Width(HeadWidth),
    .Depth(JobsDepth)
  ) u_heads (
    .clk_i,
    .rst_ni,
    .valid_i(start),
    .ready_o(head_free),
    .data_i(head_in),
    .free_o(),
    .valid_o(head_valid),
    .ready_i(send & target_last),
    .data_o(head)
  );

  logic [1:0] kind;
  logic notify, carry, notify_second;
  logic [5:0] token, second;
  logic [RowWidth-1:0] row;
  logic [ColWidth-1:0] col;
  logic [Rows-1:0] row_mask;
  logic [Cols-1:0] col_mask;
  logic [CountWidth-1:0] flits;
  assign {notify_second, second, flits, row_mask, col_mask, row, col, token, carry, notify, kind} = head;

  // Flits of the transfer, and of the packet, that have left.
  logic [CountWidth-1:0] sent_q, begun, left;
  logic [LengthWidth-1:0] place_q, length;
  logic last, reduces;
  assign reduces = kind[1];
  // A packet is as long as a buffer, the last one shorter; a unicast is one packet of any length.
  assign begun = sent_q - CountWidth'(place_q);
  assign left = flits - begun;
  assign length = (left < CountWidth'(FifoDepth)) ? LengthWidth'(left) : LengthWidth'(FifoDepth);
  assign last = target_last | (kind != Unicast && place_q + LengthWidth'(1) == length);

  assign inject_valid_o = head_valid & target_valid & word_valid;
  assign send = inject_valid_o & inject_ready_i;
  assign done_o = send & target_last;

  logic [31:0] tag;
  logic [HighWidth-1:0] high;
  assign high = notify ? {token[4:0], second} : target[TargetWidth-1:LowWidth];
  assign tag = carry ? {1'b0, notify & target_last, token[5], high[10:6],
                        1'b0, notify_second & target_last, high[5:0], target[LowWidth-1:0]} : '0;
  assign inject_flit_o = {last, kind == Multicast, reduces, reduces & kind[0],
                          (kind == Unicast) ? LengthWidth'(0) : length, row_mask, col_mask, row, col,
                          tag, word};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q <= '0;
      place_q <= '0;
    end else if (send) begin
      sent_q <= target_last ? '0 : sent_q + CountWidth'(1);
      place_q <= (last || kind == Unicast) ? '0 : place_q + LengthWidth'(1);
    end
  end

  assign write_valid_o = eject_valid_i;
  assign eject_ready_o = write_ready_i;
  assign write_data_o = eject_flit_i[Width-1:0];
  assign write_address_o = AddressWidth'(eject_flit_i[Width +: 16]);
  assign arrived_o = eject_valid_i & write_ready_i & eject_flit_i[Width+30];
  always_comb begin
    arrived_gives_o = '0;
    if (arrived_o) begin
      arrived_gives_o = 64'd1 << eject_flit_i[Width+24 +: 6];
      if (eject_flit_i[Width+22]) arrived_gives_o |= 64'd1 << eject_flit_i[Width+16 +: 6];
    end
  end

  logic unused_flit;
  assign unused_flit = ^{eject_flit_i[FlitWidth-1:Width+31], eject_flit_i[Width +: 24]};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && send) begin
      assert (target_last == (sent_q + CountWidth'(1) == flits))
      else $error("network_interface: a transfer of %0d flits ends after %0d", flits,
                  sent_q + CountWidth'(1));
    end
  end
`endif
endmodule
