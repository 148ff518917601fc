// FIFO that one packet may leave by several branches, each at its own pace: a router's input buffer.
//
// The packet at the front names its branches. Each branch reads the flits of that packet in order and
// may run ahead of the others; a flit's place is freed when every branch has read it. A branch that
// has read the last flit is done and offers nothing until the packet has left by all of them. A packet
// without a branch is dropped, a flit a cycle.
module fork_fifo #(
  /// Bits of a flit.
  parameter int Width = 8,
  /// Flits held; at least 2.
  parameter int Depth = 4,
  /// Branches.
  parameter int Branches = 5,
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(Depth + 1)
) (
  /// Clock, rising edge.
  input  logic                      clk_i,
  /// Reset, active low, synchronous.
  input  logic                      rst_ni,
  /// A flit is offered.
  input  logic                      valid_i,
  /// The flit is taken in this cycle if it is offered.
  output logic                      ready_o,
  /// The offered flit.
  input  logic [Width-1:0]          flit_i,
  /// The offered flit is the last of its packet.
  input  logic                      last_i,
  /// Free places.
  output logic [CountWidth-1:0]     free_o,
  /// The oldest flit; its header is that of the packet at the front.
  output logic [Width-1:0]          front_flit_o,
  /// There is an oldest flit.
  output logic                      front_valid_o,
  /// Branches by which the packet at the front leaves; a function of `front_flit_o`.
  input  logic [Branches-1:0]       needed_i,
  /// A branch has a flit to send.
  output logic [Branches-1:0]       branch_valid_o,
  /// Its flit.
  output logic [Branches*Width-1:0] branch_flit_o,
  /// Its flit is the last of the packet.
  output logic [Branches-1:0]       branch_last_o,
  /// The branch's flit is taken; only where `branch_valid_o`.
  input  logic [Branches-1:0]       branch_taken_i
);
  localparam int PointerWidth = (Depth > 1) ? $clog2(Depth) : 1;

  if (Depth < 2) begin : gen_illegal_depth
    $error("fork_fifo: Depth is %0d, must be at least 2", Depth);
  end

  logic [Width:0] memory_q [Depth];
  logic [PointerWidth-1:0] front_q, write_q;
  logic [CountWidth-1:0] count_q;
  // Flits of the front packet that a branch has read and that still hold a place.
  logic [CountWidth-1:0] ahead_q [Branches];
  logic [Branches-1:0] done_q, passed;
  logic push, pop;

  // Position `offset` behind `pointer`, around the end; offset is at most Depth.
  function automatic logic [PointerWidth-1:0] behind(input logic [PointerWidth-1:0] pointer,
                                                     input logic [CountWidth-1:0] offset);
    logic [CountWidth:0] sum;
    sum = (CountWidth + 1)'(pointer) + (CountWidth + 1)'(offset);
    if (sum >= (CountWidth + 1)'(Depth)) sum = sum - (CountWidth + 1)'(Depth);
    return PointerWidth'(sum);
  endfunction

  assign ready_o = count_q != CountWidth'(Depth);
  assign free_o = CountWidth'(Depth) - count_q;
  assign front_valid_o = count_q != '0;
  assign front_flit_o = memory_q[front_q][Width-1:0];
  assign push = valid_i & ready_o;
  assign pop = front_valid_o & (&(passed | ~needed_i));

  for (genvar b = 0; b < Branches; b++) begin : gen_branch
    logic [PointerWidth-1:0] position;
    assign position = behind(front_q, ahead_q[b]);
    assign branch_valid_o[b] = needed_i[b] & ~done_q[b] & (ahead_q[b] < count_q);
    assign branch_flit_o[b*Width +: Width] = memory_q[position][Width-1:0];
    assign branch_last_o[b] = memory_q[position][Width];
    assign passed[b] = (ahead_q[b] != '0) | branch_taken_i[b];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        ahead_q[b] <= '0;
        done_q[b] <= 1'b0;
      end else if (needed_i[b] & front_valid_o) begin
        ahead_q[b] <= ahead_q[b] + CountWidth'(branch_taken_i[b]) - CountWidth'(pop);
        if (pop & memory_q[front_q][Width]) done_q[b] <= 1'b0;
        else if (branch_taken_i[b] & branch_last_o[b]) done_q[b] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      front_q <= '0;
      write_q <= '0;
      count_q <= '0;
    end else begin
      if (push) write_q <= behind(write_q, CountWidth'(1));
      if (pop) front_q <= behind(front_q, CountWidth'(1));
      count_q <= count_q + CountWidth'(push) - CountWidth'(pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) memory_q[write_q] <= {last_i, flit_i};
  end

`ifndef SYNTHESIS
  always @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((branch_taken_i & ~branch_valid_o) == '0) else $error("fork_fifo: empty branch taken");
    end
  end
`endif
endmodule
