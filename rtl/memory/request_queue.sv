// Requests that wait for their column command, the oldest first.
//
// Any entry may leave; the younger ones move up. An entry is first if no older entry has its address:
// only then may it be served, so that reads and writes of an address keep their order.
module request_queue #(
  /// Bits of an address.
  parameter int AddressWidth = 23,
  /// Bits of a burst.
  parameter int DataWidth = 256,
  /// Bits of a request's name.
  parameter int IdWidth = 8,
  /// Entries; at least 2.
  parameter int Depth = 32,
  /// Requests served before the oldest after which it becomes urgent.
  parameter int PassLimit = 32,
  /// Bits of an entry's number.
  localparam int IndexWidth = $clog2(Depth)
) (
  /// Clock, rising edge.
  input  logic                          clk_i,
  /// Reset, active low, synchronous; it empties the queue.
  input  logic                          rst_ni,
  /// A request is offered.
  input  logic                          push_valid_i,
  /// It is taken in this cycle if it is offered; the queue is not full.
  output logic                          push_ready_o,
  /// The request is a write.
  input  logic                          push_write_i,
  /// Its address.
  input  logic [AddressWidth-1:0]       push_address_i,
  /// What a write writes.
  input  logic [DataWidth-1:0]          push_data_i,
  /// Its name.
  input  logic [IdWidth-1:0]            push_id_i,
  /// An entry leaves.
  input  logic                          pop_i,
  /// The entry that leaves, or would.
  input  logic [IndexWidth-1:0]         pop_index_i,
  /// Its direction.
  output logic                          pop_write_o,
  /// Its address.
  output logic [AddressWidth-1:0]       pop_address_o,
  /// Its data.
  output logic [DataWidth-1:0]          pop_data_o,
  /// Its name.
  output logic [IdWidth-1:0]            pop_id_o,
  /// Entries in use; entry 0 is the oldest.
  output logic [Depth-1:0]              valid_o,
  /// The entry is a write.
  output logic [Depth-1:0]              write_o,
  /// Addresses of the entries.
  output logic [Depth*AddressWidth-1:0] address_o,
  /// No older entry has the entry's address.
  output logic [Depth-1:0]              first_o,
  /// The oldest entry has been passed PassLimit times.
  output logic                          urgent_o
);
  localparam int CountWidth = $clog2(Depth + 1);
  localparam int PassWidth = $clog2(PassLimit + 1);

  if (Depth < 2) begin : gen_illegal_depth
    $error("request_queue: Depth must be at least 2");
  end
  if (PassLimit < 1) begin : gen_illegal_pass_limit
    $error("request_queue: PassLimit must be at least 1");
  end

  logic [CountWidth-1:0] count_q, kept;
  logic [PassWidth-1:0] passes_q;
  logic [Depth-1:0] write_q;
  logic [AddressWidth-1:0] address_q [Depth];
  logic [DataWidth-1:0] data_q [Depth];
  logic [IdWidth-1:0] id_q [Depth];
  // Older entries with the same address; entry k has k older ones at most.
  logic [IndexWidth-1:0] older_q [Depth];
  logic [IndexWidth-1:0] older_d [Depth];
  logic [IndexWidth-1:0] push_older;
  // Entries that a younger one moves into.
  logic [Depth-1:0] moves;
  logic push;

  assign push_ready_o = count_q != CountWidth'(Depth);
  assign push = push_valid_i & push_ready_o;
  assign moves = pop_i ? {Depth{1'b1}} << pop_index_i : '0;
  assign kept = count_q - CountWidth'(pop_i);
  assign write_o = write_q;
  assign urgent_o = passes_q == PassWidth'(PassLimit);
  assign pop_write_o = write_q[pop_index_i];
  assign pop_address_o = address_q[pop_index_i];
  assign pop_data_o = data_q[pop_index_i];
  assign pop_id_o = id_q[pop_index_i];

  // What leaves is the first of its address, so all others of that address have one older entry less.
  always_comb begin
    push_older = '0;
    for (int k = 0; k < Depth; k++) begin
      older_d[k] = older_q[k];
      if (pop_i && address_q[k] == pop_address_o && older_q[k] != '0) begin
        older_d[k] = older_q[k] - IndexWidth'(1);
      end
      if (valid_o[k] && address_q[k] == push_address_i && !(pop_i && IndexWidth'(k) == pop_index_i))
      begin
        push_older = push_older + IndexWidth'(1);
      end
    end
  end

  for (genvar k = 0; k < Depth; k++) begin : gen_entry
    // The entry that moves here, if one does; the youngest entry has none behind it.
    localparam int Behind = (k + 1 < Depth) ? k + 1 : k;
    logic lands;

    assign valid_o[k] = CountWidth'(k) < count_q;
    assign first_o[k] = older_q[k] == '0;
    assign address_o[k*AddressWidth +: AddressWidth] = address_q[k];
    assign lands = push && kept == CountWidth'(k);

    always_ff @(posedge clk_i) begin
      if (lands) begin
        write_q[k] <= push_write_i;
        address_q[k] <= push_address_i;
        data_q[k] <= push_data_i;
        id_q[k] <= push_id_i;
        older_q[k] <= push_older;
      end else if (moves[k]) begin
        write_q[k] <= write_q[Behind];
        address_q[k] <= address_q[Behind];
        data_q[k] <= data_q[Behind];
        id_q[k] <= id_q[Behind];
        older_q[k] <= older_d[Behind];
      end else begin
        older_q[k] <= older_d[k];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
      passes_q <= '0;
    end else begin
      count_q <= kept + CountWidth'(push);
      if (pop_i && pop_index_i == '0) passes_q <= '0;
      else if (pop_i && !urgent_o) passes_q <= passes_q + PassWidth'(1);
    end
  end

`ifndef SYNTHESIS
  always @(posedge clk_i) begin
    if (rst_ni) begin
      assert (count_q <= CountWidth'(Depth)) else $error("request_queue: overflow");
      assert (!pop_i || valid_o[pop_index_i]) else $error("request_queue: an empty entry leaves");
      assert (!pop_i || first_o[pop_index_i])
        else $error("request_queue: a request passes an older one of its address");
    end
  end
`endif
endmodule
