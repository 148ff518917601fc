// What fork_fifo holds to, whatever is offered and taken: see the labels of the assertions.
//
// A flit carries its packet's branches in its low bits, like a header. Any one flit is watched on
// its way through all branches. Assertions called `helper_` are about the inside and make the rest
// provable by induction.
module fork_fifo_proof #(
  /// Bits of a flit besides its branches.
  parameter int PayloadWidth = 1,
  /// Flits held.
  parameter int Depth = 4,
  /// Branches.
  parameter int Branches = 3,
  /// Bits of a flit.
  localparam int Width = Branches + PayloadWidth,
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(Depth + 1)
) (
  /// Clock, rising edge.
  input logic                clk_i,
  /// Reset, active low, synchronous; low in the first cycle.
  input logic                rst_ni,
  /// Any offers.
  input logic                valid_i,
  /// Any flits; those of a packet name the same branches, or all of them none.
  input logic [Width-1:0]    flit_i,
  /// Any ends of packets.
  input logic                last_i,
  /// Any takings.
  input logic [Branches-1:0] taken_i,
  /// Any choice of the flit to watch.
  input logic                watch_i
);
  localparam int PointerWidth = $clog2(Depth);

  logic [CountWidth-1:0] free;
  logic [Width-1:0] front;
  logic [Branches-1:0] needed, branch_valid, branch_last, taken;
  logic [Branches*Width-1:0] branch_flit;
  logic ready, front_valid, push, pop, first_q;
  // Flits that are in, by the handshakes and the free places alone.
  logic [CountWidth-1:0] held_q;
  // The last flit that came left its packet open; its branches.
  logic open_q;
  logic [Branches-1:0] open_branches_q;
  // The watched flit is in, what it is, how many leave before it, the branches that have
  // read it, and those that read it in this cycle.
  logic inside_q, watched_last_q;
  logic [Width-1:0] watched_q;
  logic [CountWidth-1:0] before_q;
  logic [Branches-1:0] read_q, reads;
  // Branches that have yet to read the front flit.
  logic [Branches-1:0] at_front;
  // By branch: flits that are in and that it has yet to read; of these, those before the watched.
  logic [CountWidth-1:0] unread_q [Branches];
  logic [CountWidth-1:0] unread_before_q [Branches];
  // By branch: the offer of the cycle before, if it was not taken.
  logic [Branches-1:0] waiting_q;
  logic [Branches*Width-1:0] offer_q;
  // What the memory holds, oldest first; the flit that came last.
  logic [Width:0] queue [Depth];
  logic [Width:0] newest;

  fork_fifo #(
    .Width(Width),
    .Depth(Depth),
    .Branches(Branches)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o(ready),
    .flit_i,
    .last_i,
    .free_o(free),
    .front_flit_o(front),
    .front_valid_o(front_valid),
    .needed_i(needed),
    .branch_valid_o(branch_valid),
    .branch_flit_o(branch_flit),
    .branch_last_o(branch_last),
    .branch_taken_i(taken)
  );

  assign needed = front[Branches-1:0];
  assign taken = taken_i & branch_valid;
  assign push = valid_i & ready;
  assign pop = u_fifo.pop;
  initial first_q = 1'b1;
  always_ff @(posedge clk_i) first_q <= 1'b0;

  for (genvar i = 0; i < Depth; i++) begin : gen_queue
    assign queue[i] = u_fifo.memory_q[PointerWidth'((32'(u_fifo.front_q) + i) % Depth)];
  end

  assign newest = queue[PointerWidth'(held_q - CountWidth'(1))];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= '0;
      open_q <= 1'b0;
      inside_q <= 1'b0;
    end else begin
      held_q <= held_q + CountWidth'(push) - CountWidth'(pop);
      if (push) open_q <= !last_i;
      if (!inside_q) inside_q <= push & watch_i;
      else if (pop && before_q == '0) inside_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (push) open_branches_q <= flit_i[Branches-1:0];
    if (!inside_q) begin
      watched_q <= flit_i;
      watched_last_q <= last_i;
      before_q <= held_q - CountWidth'(pop);
    end else begin
      before_q <= before_q - CountWidth'(pop);
    end
  end

  always_ff @(posedge clk_i) begin
    assume (rst_ni == 1'b0 || !first_q);
    assume (!open_q || flit_i[Branches-1:0] == open_branches_q);
    if (rst_ni) begin
      free_is_true: assert (32'(held_q) <= Depth && free == CountWidth'(Depth) - held_q);
      takes_until_full: assert (ready == (held_q != CountWidth'(Depth)));
      shows_the_oldest: assert (front_valid == (held_q != '0)
          && (!inside_q || before_q != '0 || front == watched_q));
      leaves_only_if_held: assert (!pop || held_q != '0);
      never_stuck: assert (held_q == '0 || branch_valid != '0 || pop);
      leaves_when_all_have_read: assert (!inside_q || !pop || before_q != '0
          || (read_q | reads) == watched_q[Branches-1:0]);
      helper_front: assert (held_q == '0 || needed == '0 || (needed & at_front) != '0);
      helper_place: assert (32'(u_fifo.front_q) < Depth
          && 32'(u_fifo.write_q) == (32'(u_fifo.front_q) + 32'(held_q)) % Depth);
      helper_watched: assert (!inside_q || (before_q < held_q
          && queue[PointerWidth'(before_q)] == {watched_last_q, watched_q}));
      helper_open: assert (held_q == '0
          || {!open_q, open_branches_q} == {newest[Width], newest[Branches-1:0]});
      all_branches_read_apart: cover (inside_q && before_q != '0 && (&watched_q[Branches-1:0])
          && $onehot(read_q));
    end
  end

  // Flits of a packet follow each other and name the same branches.
  for (genvar i = 1; i < Depth; i++) begin : gen_packet
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        helper_packet: assert (i >= 32'(held_q) || queue[i-1][Width]
            || queue[i-1][Branches-1:0] == queue[i][Branches-1:0]);
      end
    end
  end

  for (genvar b = 0; b < Branches; b++) begin : gen_branch
    logic own;
    logic [CountWidth-1:0] ahead, of_branch, of_branch_before;

    assign ahead = u_fifo.ahead_q[b];
    assign at_front[b] = ahead == '0;
    // The watched flit is the next that the branch reads; it reads it in this cycle.
    assign own = inside_q && watched_q[b] && !read_q[b] && unread_before_q[b] == '0;
    assign reads[b] = own & taken[b];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        unread_q[b] <= '0;
        waiting_q[b] <= 1'b0;
        read_q[b] <= 1'b0;
      end else begin
        unread_q[b] <= unread_q[b] + CountWidth'(push & flit_i[b]) - CountWidth'(taken[b]);
        waiting_q[b] <= branch_valid[b] & !taken[b];
        if (!inside_q) read_q[b] <= 1'b0;
        else if (reads[b]) read_q[b] <= 1'b1;
      end
    end
    always_ff @(posedge clk_i) begin
      offer_q[b*Width +: Width] <= branch_flit[b*Width +: Width];
      if (!inside_q) unread_before_q[b] <= unread_q[b] - CountWidth'(taken[b]);
      else if (unread_before_q[b] != '0) begin
        unread_before_q[b] <= unread_before_q[b] - CountWidth'(taken[b]);
      end
    end

    // Flits in the queue that name the branch, and those of them before the watched one.
    always_comb begin
      of_branch = '0;
      of_branch_before = '0;
      for (int i = 0; i < Depth; i++) begin
        if (i < 32'(held_q) && queue[i][b]) begin
          of_branch = of_branch + CountWidth'(1);
          if (i < 32'(before_q)) of_branch_before = of_branch_before + CountWidth'(1);
        end
      end
    end

    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        offers_only_what_is_unread: assert (!branch_valid[b] || unread_q[b] != '0);
        reads_in_order_unchanged: assert (!own || !branch_valid[b]
            || ({branch_last[b], branch_flit[b*Width +: Width]} == {watched_last_q, watched_q}));
        reads_only_its_own: assert (!branch_valid[b] || branch_flit[b*Width+b]);
        nothing_unread_when_empty: assert (held_q != '0 || unread_q[b] == '0);
        offer_stays: assert (!waiting_q[b]
            || (branch_valid[b] && branch_flit[b*Width +: Width] == offer_q[b*Width +: Width]));
        helper_ahead: assert (ahead <= held_q && (ahead == '0 || needed[b]));
        helper_done: assert (u_fifo.done_q[b] == (ahead != '0
            && queue[PointerWidth'(ahead - CountWidth'(1))][Width]));
        helper_unread: assert (unread_q[b] == of_branch - ahead);
        helper_read: assert (!inside_q || read_q[b] == (watched_q[b] && ahead > before_q));
        helper_before: assert (!inside_q || !watched_q[b] || read_q[b]
            || unread_before_q[b] == of_branch_before - ahead);
      end
    end

    // What the branch has read is one packet, or its beginning.
    for (genvar i = 1; i < Depth; i++) begin : gen_read
      always_ff @(posedge clk_i) begin
        if (rst_ni) begin
          helper_one_packet: assert (i >= 32'(ahead) || !queue[i-1][Width]);
        end
      end
    end
  end
endmodule
