// What rr_arbiter holds to, whatever is requested: see the labels of the assertions.
//
// Those called `helper_` are about its inside and make the others provable by induction.
module rr_arbiter_proof #(
  /// Requesters.
  parameter int Requesters = 5
) (
  /// Clock, rising edge.
  input logic                  clk_i,
  /// Reset, active low, synchronous; low in the first cycle.
  input logic                  rst_ni,
  /// Any requests.
  input logic [Requesters-1:0] request_i,
  /// Any use of grants.
  input logic                  advance_i,
  /// Any one requester, one-hot, the same in all cycles.
  input logic [Requesters-1:0] watched_i
);
  logic [Requesters-1:0] grant, upto_watched, before_watched;
  logic [Requesters-1:0] watched_q;
  // Who has used a grant since the watched requester began to wait.
  logic [Requesters-1:0] served_q;
  logic first_q, waits;

  rr_arbiter #(
    .Requesters(Requesters)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .request_i,
    .advance_i,
    .grant_o(grant)
  );

  initial first_q = 1'b1;
  always_ff @(posedge clk_i) first_q <= 1'b0;
  always_ff @(posedge clk_i) watched_q <= watched_i;

  assign waits = (request_i & watched_i) != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !waits || (advance_i && grant == watched_i)) served_q <= '0;
    else if (advance_i) served_q <= served_q | grant;
  end

  // Requesters from the pointer to the watched one, around the end: those that can still go first.
  assign upto_watched = watched_i | (watched_i - Requesters'(1));
  assign before_watched = ((u_arbiter.preferred_q & watched_i) != '0)
                        ? (u_arbiter.preferred_q & upto_watched)
                        : (u_arbiter.preferred_q | upto_watched);

  always_ff @(posedge clk_i) begin
    assume (rst_ni == 1'b0 || !first_q);
    assume ($onehot(watched_i) && (first_q || watched_i == watched_q));
    if (rst_ni) begin
      grants_one_at_most: assert ($onehot0(grant));
      grants_only_requests: assert ((grant & ~request_i) == '0);
      grants_if_requested: assert (request_i == '0 || grant != '0);
      no_other_twice_while_one_waits: assert (!waits || !advance_i || (grant & served_q) == '0);
      helper_pointer: assert ((~u_arbiter.preferred_q
          & (~u_arbiter.preferred_q + Requesters'(1))) == '0);
      helper_line: assert ((served_q & before_watched) == '0);
      all_others_went_first: cover (waits && served_q == ~watched_i && grant == watched_i);
    end
  end
endmodule
