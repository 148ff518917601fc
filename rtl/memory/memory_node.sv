// The network interface of a memory channel: takes requests and blocks from tiles, and answers them.
//
// A flit carries a word of 64 bits and above it a tag of 32 (rtl/tile/network_interface.sv). Of what comes:
//
//   data     tag 30 and 29 are 0; {tag 28:24, 21:16, 15:0} is the word's address in the channel. A packet's
//            words come burst by burst, from the first of each on. A burst is written when its last word, or
//            the packet's, has come: a block has whole bursts of its own.
//   request  else. Word: 27:0 address, 31:28 row and 35:32 column of the tile, 51:36 words, 52 load. The
//            answer has the request's tag, its tokens with the last word alone.
//
// A load is answered by a packet a burst, in the order in which the channel answers; its words go to
// consecutive addresses from the tag's on. Without `load` the answer is one word, the request's, when the
// channel has taken all that came before. What goes to tiles never waits for what comes from them.
module memory_node #(
  /// Rows of the mesh, that of the memory nodes among them; at most 16.
  parameter int Rows = 3,
  /// Columns of the mesh; at most 16.
  parameter int Cols = 2,
  /// Flits held by each input buffer of a router.
  parameter int FifoDepth = 4,
  /// Bits of a burst's address in the channel; at most 25.
  parameter int AddressWidth = 22,
  /// Loads under way; a power of two.
  parameter int Slots = 16,
  /// Words of a burst.
  localparam int Words = 4,
  /// Bits of a burst.
  localparam int DataWidth = 64 * Words,
  /// Bits of a slot's number, and of a request's name: its slot, and the number of the burst.
  localparam int SlotWidth = $clog2(Slots),
  localparam int IdWidth = SlotWidth + 14,
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, 96, 1, 1, 1)
) (
  /// Clock, rising edge.
  input  logic                    clk_i,
  /// Reset, active low, synchronous.
  input  logic                    rst_ni,
  /// The network offers a flit.
  input  logic                    eject_valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                    eject_ready_o,
  /// The flit.
  input  logic [FlitWidth-1:0]    eject_flit_i,
  /// A flit is offered to the network.
  output logic                    inject_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                    inject_ready_i,
  /// The flit.
  output logic [FlitWidth-1:0]    inject_flit_o,
  /// The channel's requests and responses; see memory_channel.sv.
  output logic                    req_valid_o,
  input  logic                    req_ready_i,
  output logic                    req_write_o,
  output logic [AddressWidth-1:0] req_address_o,
  output logic [DataWidth-1:0]    req_data_o,
  output logic [IdWidth-1:0]      req_id_o,
  input  logic                    resp_valid_i,
  output logic                    resp_ready_o,
  input  logic                    resp_write_i,
  input  logic [IdWidth-1:0]      resp_id_i,
  input  logic [DataWidth-1:0]    resp_data_i,
  /// Something is under way.
  output logic                    busy_o
);
  localparam int RowWidth = noc_pkg::index_width(Rows);
  localparam int ColWidth = noc_pkg::index_width(Cols);
  localparam int CountWidth = 16;
  localparam int BurstWidth = CountWidth - 2;
  localparam int HeadWidth = FlitWidth - 1 - 96 - RowWidth - ColWidth;

  if (Slots < 2 || (Slots & (Slots - 1)) != 0) begin : gen_illegal_slots
    $error("memory_node: Slots is %0d, must be a power of two", Slots);
  end
  if (Rows > 16 || Cols > 16) begin : gen_illegal_shape
    $error("memory_node: Rows and Cols are %0d and %0d, must be at most 16", Rows, Cols);
  end
  if (AddressWidth > 25) begin : gen_illegal_address
    $error("memory_node: AddressWidth is %0d, must be at most 25", AddressWidth);
  end

  // What came last, and what is done about it.
  typedef enum logic [1:0] {Idle, Read, Write, Tell} op_e;
  op_e op_q, op_d;
  logic [63:0] word;
  logic [31:0] tag;
  logic is_data, burst_ends, take, op_done;
  assign word = eject_flit_i[63:0];
  assign tag = eject_flit_i[95:64];
  assign is_data = tag[30:29] == 2'b00;
  assign burst_ends = tag[1:0] == 2'b11 || eject_flit_i[FlitWidth-1];

  // Of the operation: where it reads or writes, the request's word and tag, its slot, and bursts to ask for.
  logic [AddressWidth-1:0] address_q, data_address;
  logic [63:0] word_q;
  logic [31:0] tag_q;
  logic [SlotWidth-1:0] slot_q, free_slot;
  logic [BurstWidth-1:0] burst_q, bursts;
  logic [DataWidth-1:0] data_q, data;
  logic [Slots-1:0] used_q;
  logic slot_free;

  // 65,533 words or more have 2^BurstWidth bursts, which is 0 here: counts go once round to it.
  assign bursts = BurstWidth'((CountWidth'(word_q[51:36]) + CountWidth'(Words - 1)) >> 2);
  assign data_address = AddressWidth'({tag[28:24], tag[21:16], tag[15:2]});

  always_comb begin
    free_slot = '0;
    for (int s = Slots - 1; s >= 0; s--) begin
      if (!used_q[s]) free_slot = SlotWidth'(s);
    end
  end
  assign slot_free = !(&used_q);

  // Words of a burst that have come; the others are what came before them.
  always_comb begin
    data = data_q;
    data[64*tag[1:0] +: 64] = word;
  end

  logic tell_taken;
  always_comb begin
    unique case (op_q)
      Idle:    op_done = 1'b1;
      Read:    op_done = req_ready_i && burst_q + BurstWidth'(1) == bursts;
      Write:   op_done = req_ready_i;
      default: op_done = tell_taken;
    endcase
  end

  // A load waits for a slot: a place that an earlier load leaves.
  assign eject_ready_o = op_done & (is_data | !word[52] | slot_free);
  assign take = eject_valid_i & eject_ready_o;

  always_comb begin
    op_d = op_q;
    if (op_done) op_d = Idle;
    if (take && is_data && burst_ends) op_d = Write;
    if (take && !is_data) op_d = word[52] ? Read : Tell;
  end

  assign req_valid_o = op_q == Read || op_q == Write;
  assign req_write_o = op_q == Write;
  assign req_address_o = address_q;
  assign req_data_o = data_q;
  assign req_id_o = {slot_q, burst_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      op_q <= Idle;
    end else begin
      op_q <= op_d;
    end
    if (op_q == Read && req_ready_i) begin
      burst_q <= burst_q + BurstWidth'(1);
      address_q <= address_q + AddressWidth'(1);
    end
    if (take && is_data) begin
      data_q <= data;
      address_q <= data_address;
    end
    if (take && !is_data) begin
      word_q <= word;
      tag_q <= tag;
      slot_q <= free_slot;
      burst_q <= '0;
      address_q <= AddressWidth'(word[27:2]);
    end
  end

  // Loads under way: the tile, the tag, the words, and bursts that the channel has not answered.
  logic [RowWidth-1:0] rows_q [Slots];
  logic [ColWidth-1:0] cols_q [Slots];
  logic [31:0] tags_q [Slots];
  logic [CountWidth-1:0] words_q [Slots];
  logic [BurstWidth-1:0] left_q [Slots];

  logic [SlotWidth-1:0] answered;
  logic [BurstWidth-1:0] part;
  logic read_answer, answer_last;
  assign {answered, part} = resp_id_i;
  assign read_answer = resp_valid_i & resp_ready_o & !resp_write_i;
  assign answer_last = left_q[answered] == BurstWidth'(1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q <= '0;
    end else begin
      if (read_answer && answer_last) used_q[answered] <= 1'b0;
      if (take && !is_data && word[52]) used_q[free_slot] <= 1'b1;
    end
    if (read_answer) left_q[answered] <= left_q[answered] - BurstWidth'(1);
    if (take && !is_data && word[52]) begin
      rows_q[free_slot] <= RowWidth'(word[31:28]);
      cols_q[free_slot] <= ColWidth'(word[35:32]);
      tags_q[free_slot] <= tag;
      words_q[free_slot] <= word[51:36];
      left_q[free_slot] <= BurstWidth'((CountWidth'(word[51:36]) + CountWidth'(Words - 1)) >> 2);
    end
  end

  // The packet that leaves.
  logic out_valid_q, out_free, out_last, out_tokens_q;
  logic [DataWidth-1:0] out_data_q;
  logic [RowWidth-1:0] out_row_q;
  logic [ColWidth-1:0] out_col_q;
  logic [31:0] out_tag_q;
  logic [1:0] out_index_q, out_end_q;
  logic [CountWidth-1:0] rest;

  assign out_last = out_index_q == out_end_q;
  assign out_free = !out_valid_q | (inject_ready_i & out_last);
  assign tell_taken = op_q == Tell && out_free;
  assign resp_ready_o = resp_write_i | (out_free & op_q != Tell);
  assign rest = words_q[answered] - CountWidth'({part, 2'b00}) - CountWidth'(1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
    end else if (out_free) begin
      out_valid_q <= tell_taken | read_answer;
    end
    if (inject_valid_o && inject_ready_i) out_index_q <= out_index_q + 2'd1;
    if (tell_taken) begin
      out_data_q <= DataWidth'(word_q);
      out_row_q <= RowWidth'(word_q[31:28]);
      out_col_q <= ColWidth'(word_q[35:32]);
      out_tag_q <= tag_q;
      out_tokens_q <= 1'b1;
      out_index_q <= '0;
      out_end_q <= '0;
    end else if (read_answer) begin
      out_data_q <= resp_data_i;
      out_row_q <= rows_q[answered];
      out_col_q <= cols_q[answered];
      out_tag_q <= {tags_q[answered][31:16], tags_q[answered][15:0] + CountWidth'({part, 2'b00})};
      out_tokens_q <= answer_last;
      out_index_q <= '0;
      out_end_q <= (rest >= CountWidth'(Words - 1)) ? 2'(Words - 1) : 2'(rest);
    end
  end

  logic gives;
  assign gives = out_tokens_q & out_last;
  assign inject_valid_o = out_valid_q;
  assign inject_flit_o = {out_last, HeadWidth'(0), out_row_q, out_col_q,
                          1'b0, out_tag_q[30] & gives, out_tag_q[29:24],
                          1'b0, out_tag_q[22] & gives, out_tag_q[21:16],
                          out_tag_q[15:0] + 16'(out_index_q), out_data_q[64*out_index_q +: 64]};

  // Writes that the channel has not answered.
  logic [CountWidth-1:0] writes_q;
  logic write_asked, write_answered;
  assign write_asked = req_valid_o & req_ready_i & req_write_o;
  assign write_answered = resp_valid_i & resp_write_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) writes_q <= '0;
    else writes_q <= writes_q + CountWidth'(write_asked) - CountWidth'(write_answered);
  end
  assign busy_o = op_q != Idle || out_valid_q || used_q != '0 || writes_q != '0;

  logic unused;
  assign unused = ^{eject_flit_i[FlitWidth-2:96], word, tag, tag_q[31], tag_q[23], out_tag_q[31], out_tag_q[23]};

`ifndef SYNTHESIS
  localparam int ChannelWords = Words << AddressWidth;
  // Which word of its burst comes next.
  logic [1:0] next_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) next_q <= '0;
    else if (take && is_data) next_q <= burst_ends ? '0 : tag[1:0] + 2'd1;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && take && !is_data) begin
      assert (word[51:36] != '0)
      else $error("memory_node: a request for no words");
      assert (word[1:0] == '0)
      else $error("memory_node: a request at word %0d, must be a burst's first", word[27:0]);
      assert (32'(word[27:0]) + 32'(word[51:36]) <= ChannelWords)
      else $error("memory_node: a request for %0d words at %0d, the channel has %0d", word[51:36],
                  word[27:0], ChannelWords);
      assert (int'(word[31:28]) < Rows - 1 && int'(word[35:32]) < Cols)
      else $error("memory_node: a request of tile (%0d, %0d), which is not there", word[31:28], word[35:32]);
    end
    if (rst_ni && take && is_data) begin
      assert (tag[1:0] == next_q)
      else $error("memory_node: word %0d of burst %0d came, must be word %0d of a burst", tag[1:0],
                  data_address, next_q);
      assert (next_q == '0 || data_address == address_q)
      else $error("memory_node: word %0d of burst %0d came, must be of burst %0d", tag[1:0],
                  data_address, address_q);
      assert (32'({tag[28:24], tag[21:16], tag[15:0]}) < ChannelWords)
      else $error("memory_node: a word for %0d, the channel has %0d",
                  {tag[28:24], tag[21:16], tag[15:0]}, ChannelWords);
    end
  end
`endif
endmodule
