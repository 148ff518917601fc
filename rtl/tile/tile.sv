// A tile: a sequencer, its matrix and vector engines and network interface, and the scratchpad they share.
//
// Memory, descriptors and tokens are loaded by a port of their own before `run_i`.
module tile #(
  /// Rows of the mesh; at most 16.
  parameter int Rows = 2,
  /// Columns of the mesh; at most 16.
  parameter int Cols = 2,
  /// Flits held by each input buffer of a router.
  parameter int FifoDepth = 4,
  /// Bits of an operand: 8 or 16. The systolic array has 64 / OperandWidth rows and columns.
  parameter int OperandWidth = 16,
  /// Banks of the scratchpad; a power of two.
  parameter int Banks = 8,
  /// Words of a bank; a power of two.
  parameter int BankDepth = 512,
  /// Descriptors held by each queue; a power of two, at most 2048.
  parameter int QueueDepth = 256,
  /// Transfers that the network interface may have at a time.
  parameter int Outstanding = 2,
  /// Bits of a scratchpad's address.
  localparam int AddressWidth = $clog2(Banks) + $clog2(BankDepth),
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, 96, 1, 1, 1),
  /// Bits of a credit's flit.
  localparam int CreditWidth = 6 + noc_pkg::index_width(Cols) + noc_pkg::index_width(Rows) + 1
) (
  /// Clock, rising edge.
  input  logic                   clk_i,
  /// Reset of all but the memory, active low, synchronous.
  input  logic                   rst_ni,
  /// Descriptors may start.
  input  logic                   run_i,
  /// The load port asks for something, until it is served.
  input  logic                   load_valid_i,
  /// It is served in this cycle.
  output logic                   load_ready_o,
  /// Reads a word of the scratchpad; else writes.
  input  logic                   load_read_i,
  /// What is written: 0 the scratchpad, 1 a descriptor, 2 a token.
  input  logic [1:0]             load_space_i,
  /// Word of the scratchpad; queue, descriptor and its word; token.
  input  logic [15:0]            load_address_i,
  /// What is written.
  input  logic [63:0]            load_data_i,
  /// The word that was read.
  output logic [63:0]            load_data_o,
  /// A flit is offered to the network.
  output logic                   inject_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                   inject_ready_i,
  /// The flit.
  output logic [FlitWidth-1:0]   inject_flit_o,
  /// The network offers a flit.
  input  logic                   eject_valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                   eject_ready_o,
  /// The flit.
  input  logic [FlitWidth-1:0]   eject_flit_i,
  /// A credit is offered to the network of credits.
  output logic                   credit_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                   credit_ready_i,
  /// Its flit.
  output logic [CreditWidth-1:0] credit_flit_o,
  /// A credit has come; always taken.
  input  logic                   credit_valid_i,
  /// Its flit.
  input  logic [CreditWidth-1:0] credit_flit_i,
  /// A descriptor starts: of matrix, vector, transfer, control.
  output logic [3:0]             start_o,
  /// A descriptor ends.
  output logic [3:0]             end_o,
  /// The last word of a transfer is written.
  output logic                   arrived_o,
  /// A word moves, or an engine waits by itself.
  output logic                   busy_o,
  /// No descriptor is left.
  output logic                   idle_o
);
  localparam int Width = 64;
  localparam int JobWidth = 256;
  localparam int LoadWidth = $clog2(QueueDepth) + 5;
  // Ports of the scratchpad: matrix 0 to 3, vector 4 to 6, network 7 and 8, load 9.
  localparam int Ports = 10;
  localparam int Load = 9;
  localparam logic [1:0] Scratchpad = 2'd0;
  localparam logic [1:0] Descriptor = 2'd1;
  localparam logic [1:0] Token = 2'd2;

  if (AddressWidth > 16 || LoadWidth > 16) begin : gen_illegal_sizes
    $error("tile: %0d banks of %0d words or queues of %0d descriptors are too large", Banks, BankDepth,
           QueueDepth);
  end

  logic [2:0] job_valid, job_ready, job_done;
  logic [3*JobWidth-1:0] job;
  logic [3:0] waiting;
  logic [63:0] arrived_gives;

  logic [Ports-1:0] valid, ready, read_valid, write;
  logic [Ports-1:0][AddressWidth-1:0] address;
  logic [Ports-1:0][Width-1:0] written, read;

  matrix_engine #(
    .OperandWidth(OperandWidth),
    .AddressWidth(AddressWidth)
  ) u_matrix (
    .clk_i,
    .rst_ni,
    .job_valid_i(job_valid[0]),
    .job_ready_o(job_ready[0]),
    .job_i(job[0 +: JobWidth]),
    .done_o(job_done[0]),
    .memory_valid_o(valid[3:0]),
    .memory_ready_i(ready[3:0]),
    .memory_address_o(address[3:0]),
    .memory_data_o(written[3]),
    .memory_valid_i(read_valid[2:0]),
    .memory_data_i(read[2:0])
  );

  vector_engine #(
    .OperandWidth(OperandWidth),
    .AddressWidth(AddressWidth)
  ) u_vector (
    .clk_i,
    .rst_ni,
    .job_valid_i(job_valid[1]),
    .job_ready_o(job_ready[1]),
    .job_i(job[JobWidth +: JobWidth]),
    .done_o(job_done[1]),
    .memory_valid_o(valid[6:4]),
    .memory_ready_i(ready[6:4]),
    .memory_address_o(address[6:4]),
    .memory_data_o(written[6]),
    .memory_valid_i(read_valid[5:4]),
    .memory_data_i(read[5:4])
  );

  network_interface #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .AddressWidth(AddressWidth),
    .Outstanding(Outstanding)
  ) u_network (
    .clk_i,
    .rst_ni,
    .job_valid_i(job_valid[2]),
    .job_ready_o(job_ready[2]),
    .job_i(job[2*JobWidth +: JobWidth]),
    .done_o(job_done[2]),
    .read_valid_o(valid[7]),
    .read_ready_i(ready[7]),
    .read_address_o(address[7]),
    .read_valid_i(read_valid[7]),
    .read_data_i(read[7]),
    .write_valid_o(valid[8]),
    .write_ready_i(ready[8]),
    .write_address_o(address[8]),
    .write_data_o(written[8]),
    .arrived_o,
    .arrived_gives_o(arrived_gives),
    .inject_valid_o,
    .inject_ready_i,
    .inject_flit_o,
    .eject_valid_i,
    .eject_ready_o,
    .eject_flit_i
  );

  sequencer #(
    .Rows(Rows),
    .Cols(Cols),
    .QueueDepth(QueueDepth),
    .Outstanding(Outstanding)
  ) u_sequencer (
    .clk_i,
    .rst_ni,
    .run_i,
    .load_descriptor_i(load_valid_i && ~load_read_i && load_space_i == Descriptor),
    .load_token_i(load_valid_i && ~load_read_i && load_space_i == Token),
    .load_address_i(load_address_i[LoadWidth-1:0]),
    .load_data_i,
    .job_valid_o(job_valid),
    .job_ready_i(job_ready),
    .job_o(job),
    .job_done_i(job_done),
    .arrived_i(arrived_gives),
    .credit_valid_o,
    .credit_ready_i,
    .credit_flit_o,
    .credit_valid_i,
    .credit_flit_i,
    .start_o,
    .end_o,
    .waiting_o(waiting),
    .idle_o
  );

  // The load port, and what the others' ports do: they read or write, never both.
  logic memory_load;
  assign memory_load = load_valid_i & (load_read_i || load_space_i == Scratchpad);
  assign valid[Load] = memory_load;
  assign address[Load] = load_address_i[AddressWidth-1:0];
  assign written[Load] = load_data_i;
  assign load_ready_o = ~memory_load | ready[Load];
  assign load_data_o = read[Load];
  assign write = {memory_load & ~load_read_i, 9'b1_0100_1000};
  assign {written[7], written[5:4], written[2:0]} = '0;
  assign busy_o = (waiting != '0) | (ready != '0);
  logic unused_ports;
  assign unused_ports = ^{load_address_i, read_valid[Load], read_valid[8], read_valid[6], read_valid[3],
                          read[8], read[6], read[3]};

  scratchpad #(
    .Ports(Ports),
    .Banks(Banks),
    .Depth(BankDepth),
    .Width(Width)
  ) u_scratchpad (
    .clk_i,
    .rst_ni,
    .valid_i(valid),
    .ready_o(ready),
    .write_i(write),
    .address_i(address),
    .data_i(written),
    .read_valid_o(read_valid),
    .read_data_o(read)
  );
endmodule
