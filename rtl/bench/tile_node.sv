// A tile with its two routers, of data and of credits: what a mesh of tiles consists of.
//
// With `Memory` the nodes of the last row have a memory channel at their router of data, and a tile that is
// joined to nothing.
//
// A simulation joins as many of these as a mesh has nodes, so that one model serves meshes of any size
// that have its widths. Ports 1 to 4 of the routers (north, east, south, west) are the links, here 0 to 3. A
// flit on a link is padded to whole words of 32 bits. rtl/tile/tile_mesh.sv is the same in one piece.
module tile_node #(
  /// See tile_mesh.sv.
  parameter int Rows = 2,
  parameter int Cols = 2,
  parameter int FifoDepth = 4,
  parameter int OutputDepth = 0,
  parameter int Stages = 1,
  parameter int YFirst = 0,
  parameter int Loopback = 1,
  parameter int ReduceStages = 1,
  parameter int OperandWidth = 16,
  parameter int Banks = 8,
  parameter int BankDepth = 512,
  parameter int QueueDepth = 256,
  parameter int Outstanding = 2,
  parameter int Memory = 0,
  parameter int MemoryRowWidth = 4,
  /// Bits of a flit on a link.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, 96, 1, 1, 1),
  localparam int LinkWidth = (FlitWidth + 31) / 32 * 32,
  /// Bits of a credit on a link.
  localparam int CreditWidth = noc_pkg::flit_width(Rows, Cols, 2, 6, 0, 0, 0),
  /// Bits of a count of flits, of credits.
  localparam int CountWidth = $clog2(FifoDepth + 1),
  localparam int CreditCountWidth = 2
) (
  /// See tile_mesh.sv; row and column of the node.
  input  logic                          clk_i,
  input  logic                          rst_ni,
  input  logic [3:0]                    row_i,
  input  logic [3:0]                    col_i,
  input  logic                          run_i,
  input  logic                          load_valid_i,
  output logic                          load_ready_o,
  input  logic                          load_read_i,
  input  logic [1:0]                    load_space_i,
  input  logic [15:0]                   load_address_i,
  input  logic [63:0]                   load_data_i,
  output logic [63:0]                   load_data_o,
  output logic [3:0]                    start_o,
  output logic [3:0]                    end_o,
  output logic                          arrived_o,
  output logic                          busy_o,
  output logic                          idle_o,
  /// Links of data; see router.sv.
  input  logic [3:0]                    in_valid_i,
  output logic [3:0]                    in_ready_o,
  input  logic [4*LinkWidth-1:0]        in_flit_i,
  output logic [4*CountWidth-1:0]       in_free_o,
  output logic [4*CountWidth-1:0]       in_operand_free_o,
  output logic [3:0]                    out_valid_o,
  input  logic [3:0]                    out_ready_i,
  output logic [4*LinkWidth-1:0]        out_flit_o,
  input  logic [4*CountWidth-1:0]       out_free_i,
  input  logic [4*CountWidth-1:0]       out_operand_free_i,
  /// Links of credits.
  input  logic [3:0]                    credit_in_valid_i,
  output logic [3:0]                    credit_in_ready_o,
  input  logic [4*32-1:0]               credit_in_flit_i,
  output logic [3:0]                    credit_out_valid_o,
  input  logic [3:0]                    credit_out_ready_i,
  output logic [4*32-1:0]               credit_out_flit_o
);
  localparam int RowWidth = noc_pkg::index_width(Rows);
  localparam int ColWidth = noc_pkg::index_width(Cols);

  // Port 0 is the tile's, the others are links.
  logic [4:0] in_valid, in_ready, out_valid, out_ready;
  logic [5*FlitWidth-1:0] in_flit, out_flit;
  logic [5*CountWidth-1:0] in_free, in_operand_free;
  logic [4:0] credit_in_valid, credit_in_ready, credit_out_valid, credit_out_ready;
  logic [5*CreditWidth-1:0] credit_in_flit, credit_out_flit;
  logic [5*CreditCountWidth-1:0] credit_free, credit_operand_free;

  assign in_valid[4:1] = in_valid_i;
  assign in_ready_o = in_ready[4:1];
  assign out_valid_o = out_valid[4:1];
  assign out_ready[4:1] = out_ready_i;
  assign in_free_o = in_free[CountWidth +: 4*CountWidth];
  assign in_operand_free_o = in_operand_free[CountWidth +: 4*CountWidth];
  assign credit_in_valid[4:1] = credit_in_valid_i;
  assign credit_in_ready_o = credit_in_ready[4:1];
  assign credit_out_valid_o = credit_out_valid[4:1];
  assign credit_out_ready = {credit_out_ready_i, 1'b1};
  for (genvar p = 0; p < 4; p++) begin : gen_link
    assign in_flit[(p+1)*FlitWidth +: FlitWidth] = in_flit_i[p*LinkWidth +: FlitWidth];
    assign out_flit_o[p*LinkWidth +: LinkWidth] = LinkWidth'(out_flit[(p+1)*FlitWidth +: FlitWidth]);
    assign credit_in_flit[(p+1)*CreditWidth +: CreditWidth] = credit_in_flit_i[p*32 +: CreditWidth];
    assign credit_out_flit_o[p*32 +: 32] = 32'(credit_out_flit[(p+1)*CreditWidth +: CreditWidth]);
  end

  logic tile_busy, inject_moves, eject_moves;
  assign inject_moves = (in_valid & in_ready) != '0 || (credit_in_valid & credit_in_ready) != '0;
  assign eject_moves = (out_valid[0] & out_ready[0]) | credit_out_valid[0];
  assign busy_o = tile_busy | memory_busy | inject_moves | eject_moves;

  logic tile_inject_valid, tile_inject_ready, tile_eject_valid, tile_eject_ready, memory_busy;
  logic [FlitWidth-1:0] tile_inject_flit;
  if (Memory != 0) begin : gen_memory
    logic here, inject_valid, eject_ready;
    logic [FlitWidth-1:0] inject_flit;
    assign here = RowWidth'(row_i) == RowWidth'(Rows - 1);
    assign in_valid[0] = here ? inject_valid : tile_inject_valid;
    assign in_flit[0 +: FlitWidth] = here ? inject_flit : tile_inject_flit;
    assign tile_inject_ready = in_ready[0] & !here;
    assign tile_eject_valid = out_valid[0] & !here;
    assign out_ready[0] = here ? eject_ready : tile_eject_ready;

    memory_port #(
      .Rows(Rows),
      .Cols(Cols),
      .FifoDepth(FifoDepth),
      .RowWidth(MemoryRowWidth)
    ) u_memory (
      .clk_i,
      .rst_ni(rst_ni & run_i),
      .eject_valid_i(out_valid[0] & here),
      .eject_ready_o(eject_ready),
      .eject_flit_i(out_flit[0 +: FlitWidth]),
      .inject_valid_o(inject_valid),
      .inject_ready_i(in_ready[0] & here),
      .inject_flit_o(inject_flit),
      .busy_o(memory_busy)
    );
  end else begin : gen_no_memory
    assign in_valid[0] = tile_inject_valid;
    assign in_flit[0 +: FlitWidth] = tile_inject_flit;
    assign tile_inject_ready = in_ready[0];
    assign tile_eject_valid = out_valid[0];
    assign out_ready[0] = tile_eject_ready;
    assign memory_busy = 1'b0;
  end

  logic unused_ports;
  assign unused_ports = ^{row_i, col_i, in_flit_i, credit_in_flit_i, in_free, in_operand_free, credit_free,
                          credit_operand_free};

  tile #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .OperandWidth(OperandWidth),
    .Banks(Banks),
    .BankDepth(BankDepth),
    .QueueDepth(QueueDepth),
    .Outstanding(Outstanding)
  ) u_tile (
    .clk_i,
    .rst_ni,
    .run_i,
    .load_valid_i,
    .load_ready_o,
    .load_read_i,
    .load_space_i,
    .load_address_i,
    .load_data_i,
    .load_data_o,
    .inject_valid_o(tile_inject_valid),
    .inject_ready_i(tile_inject_ready),
    .inject_flit_o(tile_inject_flit),
    .eject_valid_i(tile_eject_valid),
    .eject_ready_o(tile_eject_ready),
    .eject_flit_i(out_flit[0 +: FlitWidth]),
    .credit_valid_o(credit_in_valid[0]),
    .credit_ready_i(credit_in_ready[0]),
    .credit_flit_o(credit_in_flit[0 +: CreditWidth]),
    .credit_valid_i(credit_out_valid[0]),
    .credit_flit_i(credit_out_flit[0 +: CreditWidth]),
    .start_o,
    .end_o,
    .arrived_o,
    .busy_o(tile_busy),
    .idle_o
  );

  router #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .OutputDepth(OutputDepth),
    .PayloadWidth(96),
    .Stages(Stages),
    .YFirst(YFirst),
    .Loopback(Loopback),
    .ReduceStages(ReduceStages)
  ) u_data (
    .clk_i,
    .rst_ni,
    .row_i(RowWidth'(row_i)),
    .col_i(ColWidth'(col_i)),
    .in_valid_i(in_valid),
    .in_ready_o(in_ready),
    .in_flit_i(in_flit),
    .in_free_o(in_free),
    .in_operand_free_o(in_operand_free),
    .out_valid_o(out_valid),
    .out_ready_i(out_ready),
    .out_flit_o(out_flit),
    .out_free_i,
    .out_operand_free_i
  );

  router #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(2),
    .PayloadWidth(6),
    .YFirst(YFirst),
    .Multicast(0),
    .Reduction(0)
  ) u_credits (
    .clk_i,
    .rst_ni,
    .row_i(RowWidth'(row_i)),
    .col_i(ColWidth'(col_i)),
    .in_valid_i(credit_in_valid),
    .in_ready_o(credit_in_ready),
    .in_flit_i(credit_in_flit),
    .in_free_o(credit_free),
    .in_operand_free_o(credit_operand_free),
    .out_valid_o(credit_out_valid),
    .out_ready_i(credit_out_ready),
    .out_flit_o(credit_out_flit),
    .out_free_i('0),
    .out_operand_free_i('0)
  );
endmodule
