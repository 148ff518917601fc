// Responses in the order of their column commands; each has its place from its command on.
//
// The command reserves a place, the data of a read come one cycle later, and the response is offered
// after the burst has ended. So nothing is lost, however long responses are refused.
module response_fifo #(
  /// Bits of a burst.
  parameter int DataWidth = 256,
  /// Bits of a request's name.
  parameter int IdWidth = 8,
  /// Places; at least 2.
  parameter int Depth = 16
) (
  /// Clock, rising edge.
  input  logic                 clk_i,
  /// Reset, active low, synchronous; it empties the FIFO.
  input  logic                 rst_ni,
  /// There is a free place.
  output logic                 room_o,
  /// A place is reserved; only where `room_o`.
  input  logic                 reserve_i,
  /// The response is to a write.
  input  logic                 write_i,
  /// The name of its request.
  input  logic [IdWidth-1:0]   id_i,
  /// Data for the read that reserved its place in the cycle before.
  input  logic [DataWidth-1:0] data_i,
  /// The oldest burst that is still under way ends in this cycle.
  input  logic                 last_i,
  /// A response is offered.
  output logic                 valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                 ready_i,
  /// It is to a write.
  output logic                 write_o,
  /// The name of its request.
  output logic [IdWidth-1:0]   id_o,
  /// What was read; zero for a write.
  output logic [DataWidth-1:0] data_o
);
  localparam int PointerWidth = $clog2(Depth);
  localparam int CountWidth = $clog2(Depth + 1);

  if (Depth < 2) begin : gen_illegal_depth
    $error("response_fifo: Depth must be at least 2");
  end

  logic [Depth-1:0] write_q;
  logic [IdWidth-1:0] id_q [Depth];
  logic [DataWidth-1:0] data_q [Depth];
  logic [PointerWidth-1:0] front_q, back_q, filled_q;
  logic [CountWidth-1:0] reserved_q, arrived_q;
  logic fill_q, pop;

  function automatic logic [PointerWidth-1:0] after(input logic [PointerWidth-1:0] pointer);
    return (pointer == PointerWidth'(Depth - 1)) ? '0 : pointer + PointerWidth'(1);
  endfunction

  assign room_o = reserved_q != CountWidth'(Depth);
  assign valid_o = arrived_q != '0;
  assign pop = valid_o & ready_i;
  assign write_o = write_q[front_q];
  assign id_o = id_q[front_q];
  assign data_o = write_o ? '0 : data_q[front_q];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      front_q <= '0;
      back_q <= '0;
      reserved_q <= '0;
      arrived_q <= '0;
      fill_q <= 1'b0;
    end else begin
      if (pop) front_q <= after(front_q);
      if (reserve_i) back_q <= after(back_q);
      reserved_q <= reserved_q + CountWidth'(reserve_i) - CountWidth'(pop);
      arrived_q <= arrived_q + CountWidth'(last_i) - CountWidth'(pop);
      fill_q <= reserve_i & ~write_i;
    end
  end

  always_ff @(posedge clk_i) begin
    filled_q <= back_q;
    if (reserve_i) begin
      write_q[back_q] <= write_i;
      id_q[back_q] <= id_i;
    end
    if (fill_q) data_q[filled_q] <= data_i;
  end

`ifndef SYNTHESIS
  logic refused_q;
  logic [IdWidth+DataWidth:0] offer_q;

  always @(posedge clk_i) begin
    refused_q <= rst_ni & valid_o & ~ready_i;
    offer_q <= {write_o, id_o, data_o};
    if (rst_ni) begin
      assert (!reserve_i || room_o) else $error("response_fifo: no room reserved");
      assert (arrived_q <= reserved_q) else $error("response_fifo: a response without a place");
      assert (!refused_q || (valid_o && offer_q == {write_o, id_o, data_o}))
        else $error("response_fifo: a refused response changed");
    end
  end
`endif
endmodule
