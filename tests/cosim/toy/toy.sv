// A "mesh" of 3 x 4 tiles behind one register-free crossbar: one packet at a time, wherever it goes.
//
// From the low end a flit is last, fault (3 bits), row, column, payload. The fault is what goes wrong
// with it: 1 a bit of its payload, 2 its tile, 3 it is lost, 4 its last bit.
`include "toy_size.svh"
module toy (
  input  logic                  clk,
  input  logic                  reset,
  input  logic [`TILES-1:0]     send_valid,
  output logic [`TILES-1:0]     send_ready,
  input  logic [`TILES*`FLIT-1:0] send_flit,
  output logic [`TILES-1:0]     take_valid,
  input  logic [`TILES-1:0]     take_ready,
  output logic [`TILES*`FLIT-1:0] take_flit
);
  logic busy_q;
  logic [3:0] owner_q, owner, tile;
  logic [`FLIT-1:0] flit, faulty;
  logic [2:0] fault;

  always_comb begin
    owner = owner_q;
    if (!busy_q) begin
      for (int n = `TILES - 1; n >= 0; n--) if (send_valid[n]) owner = 4'(n);
    end
  end

  assign flit = send_flit[owner*`FLIT +: `FLIT];
  assign fault = flit[3:1];
  assign faulty = flit ^ (`FLIT'(fault == 3'd1) << 20) ^ `FLIT'(fault == 3'd4);
  assign tile = flit[7:4] ^ 4'(fault == 3'd2);
  assign send_ready = `TILES'(take_ready[tile] && !reset) << owner;
  assign take_valid = `TILES'(send_valid[owner] && !reset && fault != 3'd3) << tile;
  assign take_flit = {`TILES{faulty}};

  always_ff @(posedge clk) begin
    if (reset) busy_q <= 1'b0;
    else if (send_valid[owner] && send_ready[owner]) busy_q <= !flit[0];
    owner_q <= owner;
  end
endmodule
