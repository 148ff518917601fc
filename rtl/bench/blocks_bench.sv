// The small blocks of the network, each with its ports brought out: one model to verify all.
module blocks_bench #(
  /// Requesters of the arbiter.
  parameter int Requesters = 5,
  /// Bits of the FIFOs' flits.
  parameter int Width = 8,
  /// Flits in each FIFO.
  parameter int Depth = 3,
  /// Branches of the forking FIFO.
  parameter int Branches = 3,
  /// Bits of the FIFOs' counts of flits.
  localparam int CountWidth = $clog2(Depth + 1)
) (
  /// Clock, rising edge.
  input  logic                        clk_i,
  /// Reset, active low, synchronous.
  input  logic                        rst_ni,

  /// See rr_arbiter.sv.
  input  logic [Requesters-1:0]       arbiter_request_i,
  input  logic                        arbiter_advance_i,
  output logic [Requesters-1:0]       arbiter_grant_o,

  /// See fork_fifo.sv.
  input  logic                        fifo_valid_i,
  output logic                        fifo_ready_o,
  input  logic [Width-1:0]            fifo_flit_i,
  input  logic                        fifo_last_i,
  output logic [CountWidth-1:0]       fifo_free_o,
  output logic [Width-1:0]            fifo_front_flit_o,
  output logic                        fifo_front_valid_o,
  output logic [Branches-1:0]         fifo_branch_valid_o,
  output logic [Branches*Width-1:0]   fifo_branch_flit_o,
  output logic [Branches-1:0]         fifo_branch_last_o,
  input  logic [Branches-1:0]         fifo_branch_taken_i,

  /// See fifo.sv.
  input  logic                        queue_valid_i,
  output logic                        queue_ready_o,
  input  logic [Width-1:0]            queue_data_i,
  output logic [CountWidth-1:0]       queue_free_o,
  output logic                        queue_valid_o,
  input  logic                        queue_ready_i,
  output logic [Width-1:0]            queue_data_o
);
  rr_arbiter #(
    .Requesters(Requesters)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .request_i(arbiter_request_i),
    .advance_i(arbiter_advance_i),
    .grant_o(arbiter_grant_o)
  );

  // As in a router, the front flit itself tells the branches: here they are its low bits.
  fork_fifo #(
    .Width(Width),
    .Depth(Depth),
    .Branches(Branches)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .valid_i(fifo_valid_i),
    .ready_o(fifo_ready_o),
    .flit_i(fifo_flit_i),
    .last_i(fifo_last_i),
    .free_o(fifo_free_o),
    .front_flit_o(fifo_front_flit_o),
    .front_valid_o(fifo_front_valid_o),
    .needed_i(fifo_front_flit_o[Branches-1:0]),
    .branch_valid_o(fifo_branch_valid_o),
    .branch_flit_o(fifo_branch_flit_o),
    .branch_last_o(fifo_branch_last_o),
    .branch_taken_i(fifo_branch_taken_i)
  );

  fifo #(
    .Width(Width),
    .Depth(Depth)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .valid_i(queue_valid_i),
    .ready_o(queue_ready_o),
    .data_i(queue_data_i),
    .free_o(queue_free_o),
    .valid_o(queue_valid_o),
    .ready_i(queue_ready_i),
    .data_o(queue_data_o)
  );
endmodule
