// The blocks of the network side by side, each with its ports brought out: one model to verify all.
module blocks_bench #(
  /// Requesters of the arbiter.
  parameter int Requesters = 5,
  /// Bits of the FIFO's flits.
  parameter int Width = 8,
  /// Flits in the FIFO.
  parameter int Depth = 3,
  /// Branches of the FIFO.
  parameter int Branches = 3,
  /// Rows of the mesh that the router believes to be in.
  parameter int Rows = 3,
  /// Columns of that mesh.
  parameter int Cols = 3,
  /// Flits in each of the router's buffers.
  parameter int RouterDepth = 5,
  /// Bits of the router's payload.
  parameter int PayloadWidth = 16,
  /// Bits of the FIFO's count of flits.
  localparam int CountWidth = $clog2(Depth + 1),
  /// Bits of the router's counts of flits.
  localparam int RouterCountWidth = $clog2(RouterDepth + 1),
  /// Bits of a row index.
  localparam int RowWidth = (Rows > 1) ? $clog2(Rows) : 1,
  /// Bits of a column index.
  localparam int ColWidth = (Cols > 1) ? $clog2(Cols) : 1,
  /// Bits of the router's flits.
  localparam int FlitWidth = 2 + RouterCountWidth + Rows + Cols + PayloadWidth
) (
  /// Clock, rising edge.
  input  logic                          clk_i,
  /// Reset, active low, synchronous.
  input  logic                          rst_ni,

  /// See rr_arbiter.sv.
  input  logic [Requesters-1:0]         arbiter_request_i,
  input  logic                          arbiter_advance_i,
  output logic [Requesters-1:0]         arbiter_grant_o,

  /// See fork_fifo.sv.
  input  logic                          fifo_valid_i,
  output logic                          fifo_ready_o,
  input  logic [Width-1:0]              fifo_flit_i,
  input  logic                          fifo_last_i,
  output logic [CountWidth-1:0]         fifo_free_o,
  output logic [Width-1:0]              fifo_front_flit_o,
  output logic                          fifo_front_valid_o,
  output logic [Branches-1:0]           fifo_branch_valid_o,
  output logic [Branches*Width-1:0]     fifo_branch_flit_o,
  output logic [Branches-1:0]           fifo_branch_last_o,
  input  logic [Branches-1:0]           fifo_branch_taken_i,

  /// See router.sv.
  input  logic [RowWidth-1:0]           router_row_i,
  input  logic [ColWidth-1:0]           router_col_i,
  input  logic [4:0]                    router_in_valid_i,
  output logic [4:0]                    router_in_ready_o,
  input  logic [5*FlitWidth-1:0]        router_in_flit_i,
  output logic [5*RouterCountWidth-1:0] router_in_free_o,
  output logic [4:0]                    router_out_valid_o,
  input  logic [4:0]                    router_out_ready_i,
  output logic [5*FlitWidth-1:0]        router_out_flit_o,
  input  logic [4*RouterCountWidth-1:0] router_out_free_i
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

  router #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(RouterDepth),
    .PayloadWidth(PayloadWidth)
  ) u_router (
    .clk_i,
    .rst_ni,
    .row_i(router_row_i),
    .col_i(router_col_i),
    .in_valid_i(router_in_valid_i),
    .in_ready_o(router_in_ready_o),
    .in_flit_i(router_in_flit_i),
    .in_free_o(router_in_free_o),
    .out_valid_o(router_out_valid_o),
    .out_ready_i(router_out_ready_i),
    .out_flit_o(router_out_flit_o),
    .out_free_i(router_out_free_i)
  );
endmodule
