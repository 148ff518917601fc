// Rows x Cols tiles on two meshes: one of data, one of credits. The load ports are flat vectors over tiles.
// With `Memory` the nodes of the last row have memory channels on the mesh of data in the place of tiles.
//
// Tile n stands in row n / Cols (0 is the northmost) and column n % Cols (0 is the westmost).
module tile_mesh #(
  /// Rows of the mesh; 1 to 16.
  parameter int Rows = 2,
  /// Columns of the mesh; 1 to 16.
  parameter int Cols = 2,
  /// Flits held by each input buffer of a router; longest packet of a multicast or reduction.
  parameter int FifoDepth = 4,
  /// Flits held by each output of a router: 0, or at least 2.
  parameter int OutputDepth = 0,
  /// Cycles in which a flit passes a router, without output buffers: 1 or 2.
  parameter int Stages = 1,
  /// 0: along the row first, 1: along the column first.
  parameter int YFirst = 0,
  /// 1: a sender among the destinations of its multicast gets a copy.
  parameter int Loopback = 1,
  /// Registers on the way of a reduction's result.
  parameter int ReduceStages = 1,
  /// Bits of an operand: 8 or 16. A systolic array has 64 / OperandWidth rows and columns.
  parameter int OperandWidth = 16,
  /// Banks of a scratchpad; a power of two.
  parameter int Banks = 8,
  /// Words of a bank; a power of two.
  parameter int BankDepth = 512,
  /// Descriptors held by each queue; a power of two.
  parameter int QueueDepth = 256,
  /// Transfers that a network interface may have at a time.
  parameter int Outstanding = 2,
  /// 1: the last row has memory channels.
  parameter int Memory = 0,
  /// Bits of a row number of a memory channel.
  parameter int MemoryRowWidth = 14,
  /// Nodes.
  localparam int Nodes = Rows * Cols
) (
  /// Clock, rising edge.
  input  logic                clk_i,
  /// Reset of all but the memories, active low, synchronous.
  input  logic                rst_ni,
  /// Descriptors may start.
  input  logic                run_i,
  /// A tile's load port asks for something; see tile.sv.
  input  logic [Nodes-1:0]    load_valid_i,
  /// It is served in this cycle.
  output logic [Nodes-1:0]    load_ready_o,
  /// All load ports read.
  input  logic                load_read_i,
  /// What all load ports write.
  input  logic [1:0]          load_space_i,
  /// Where a tile's load port reads or writes.
  input  logic [Nodes*16-1:0] load_address_i,
  /// What it writes.
  input  logic [Nodes*64-1:0] load_data_i,
  /// What it has read.
  output logic [Nodes*64-1:0] load_data_o,
  /// A tile's descriptor starts: of matrix, vector, transfer, control.
  output logic [Nodes*4-1:0]  start_o,
  /// A tile's descriptor ends.
  output logic [Nodes*4-1:0]  end_o,
  /// The last word of a transfer is written at a tile.
  output logic [Nodes-1:0]    arrived_o,
  /// Words or flits move, or an engine waits by itself.
  output logic                busy_o,
  /// No descriptor is left.
  output logic                idle_o
);
  localparam int PayloadWidth = 96;
  localparam int TokenWidth = 6;
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, PayloadWidth, 1, 1, 1);
  localparam int CreditWidth = noc_pkg::flit_width(Rows, Cols, 2, TokenWidth, 0, 0, 0);

  logic [Nodes-1:0] inject_valid, inject_ready, eject_valid, eject_ready;
  logic [Nodes-1:0] out_valid, out_ready, in_valid, idle, busy;
  logic [Nodes*FlitWidth-1:0] inject_flit, eject_flit;
  logic [Nodes*CreditWidth-1:0] out_flit, in_flit;

  assign idle_o = &idle;
  assign busy_o = (busy | (inject_valid & inject_ready) | (eject_valid & eject_ready)
                   | (out_valid & out_ready) | in_valid) != '0;

  localparam int Tiles = (Memory != 0) ? Nodes - Cols : Nodes;

  // Channels rest until descriptors may start, so that refreshes come at the same time in every run.
  for (genvar n = Tiles; n < Nodes; n++) begin : gen_memory
    memory_port #(
      .Rows(Rows),
      .Cols(Cols),
      .FifoDepth(FifoDepth),
      .RowWidth(MemoryRowWidth)
    ) u_memory (
      .clk_i,
      .rst_ni(rst_ni & run_i),
      .eject_valid_i(eject_valid[n]),
      .eject_ready_o(eject_ready[n]),
      .eject_flit_i(eject_flit[n*FlitWidth +: FlitWidth]),
      .inject_valid_o(inject_valid[n]),
      .inject_ready_i(inject_ready[n]),
      .inject_flit_o(inject_flit[n*FlitWidth +: FlitWidth]),
      .busy_o(busy[n])
    );
    assign load_ready_o[n] = 1'b1;
    assign load_data_o[n*64 +: 64] = '0;
    assign out_valid[n] = 1'b0;
    assign out_flit[n*CreditWidth +: CreditWidth] = '0;
    assign start_o[n*4 +: 4] = '0;
    assign end_o[n*4 +: 4] = '0;
    assign arrived_o[n] = 1'b0;
    assign idle[n] = 1'b1;

    logic unused;
    assign unused = ^{load_valid_i[n], load_address_i[n*16 +: 16], load_data_i[n*64 +: 64], out_ready[n],
                      in_flit[n*CreditWidth +: CreditWidth]};
  end

  for (genvar n = 0; n < Tiles; n++) begin : gen_tile
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
      .load_valid_i(load_valid_i[n]),
      .load_ready_o(load_ready_o[n]),
      .load_read_i,
      .load_space_i,
      .load_address_i(load_address_i[n*16 +: 16]),
      .load_data_i(load_data_i[n*64 +: 64]),
      .load_data_o(load_data_o[n*64 +: 64]),
      .inject_valid_o(inject_valid[n]),
      .inject_ready_i(inject_ready[n]),
      .inject_flit_o(inject_flit[n*FlitWidth +: FlitWidth]),
      .eject_valid_i(eject_valid[n]),
      .eject_ready_o(eject_ready[n]),
      .eject_flit_i(eject_flit[n*FlitWidth +: FlitWidth]),
      .credit_valid_o(out_valid[n]),
      .credit_ready_i(out_ready[n]),
      .credit_flit_o(out_flit[n*CreditWidth +: CreditWidth]),
      .credit_valid_i(in_valid[n]),
      .credit_flit_i(in_flit[n*CreditWidth +: CreditWidth]),
      .start_o(start_o[n*4 +: 4]),
      .end_o(end_o[n*4 +: 4]),
      .arrived_o(arrived_o[n]),
      .busy_o(busy[n]),
      .idle_o(idle[n])
    );
  end

  mesh #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .OutputDepth(OutputDepth),
    .PayloadWidth(PayloadWidth),
    .Stages(Stages),
    .YFirst(YFirst),
    .Loopback(Loopback),
    .ReduceStages(ReduceStages)
  ) u_data (
    .clk_i,
    .rst_ni,
    .inject_valid_i(inject_valid),
    .inject_ready_o(inject_ready),
    .inject_flit_i(inject_flit),
    .eject_valid_o(eject_valid),
    .eject_ready_i(eject_ready),
    .eject_flit_o(eject_flit)
  );

  mesh #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(2),
    .PayloadWidth(TokenWidth),
    .YFirst(YFirst),
    .Multicast(0),
    .Reduction(0)
  ) u_credits (
    .clk_i,
    .rst_ni,
    .inject_valid_i(out_valid),
    .inject_ready_o(out_ready),
    .inject_flit_i(out_flit),
    .eject_valid_o(in_valid),
    .eject_ready_i('1),
    .eject_flit_o(in_flit)
  );
endmodule
