// A memory channel with its network interface: what stands at the local port of a router at the edge.
//
// The channel is HBM2 with rows of 1 KB, of 2^RowWidth a bank.
module memory_port #(
  /// Rows of the mesh, that of the memory nodes among them; at most 16.
  parameter int Rows = 3,
  /// Columns of the mesh; at most 16.
  parameter int Cols = 2,
  /// Flits held by each input buffer of a router.
  parameter int FifoDepth = 4,
  /// Bits of a row number of the channel; at most 16.
  parameter int RowWidth = 14,
  /// Loads under way; a power of two.
  parameter int Slots = 16,
  /// Bits of a flit.
  localparam int FlitWidth = noc_pkg::flit_width(Rows, Cols, FifoDepth, 96, 1, 1, 1)
) (
  /// Clock, rising edge.
  input  logic                 clk_i,
  /// Reset, active low, synchronous; the cells keep what they hold.
  input  logic                 rst_ni,
  /// The network offers a flit.
  input  logic                 eject_valid_i,
  /// It is taken in this cycle if it is offered.
  output logic                 eject_ready_o,
  /// The flit.
  input  logic [FlitWidth-1:0] eject_flit_i,
  /// A flit is offered to the network.
  output logic                 inject_valid_o,
  /// It is taken in this cycle if it is offered.
  input  logic                 inject_ready_i,
  /// The flit.
  output logic [FlitWidth-1:0] inject_flit_o,
  /// Something is under way.
  output logic                 busy_o
);
  localparam int AddressWidth = 9 + RowWidth;
  localparam int IdWidth = $clog2(Slots) + 14;

  logic req_valid, req_ready, req_write, resp_valid, resp_ready, resp_write;
  logic [AddressWidth-1:0] req_address;
  logic [255:0] req_data, resp_data;
  logic [IdWidth-1:0] req_id, resp_id;

  memory_node #(
    .Rows(Rows),
    .Cols(Cols),
    .FifoDepth(FifoDepth),
    .AddressWidth(AddressWidth),
    .Slots(Slots)
  ) u_node (
    .clk_i,
    .rst_ni,
    .eject_valid_i,
    .eject_ready_o,
    .eject_flit_i,
    .inject_valid_o,
    .inject_ready_i,
    .inject_flit_o,
    .req_valid_o(req_valid),
    .req_ready_i(req_ready),
    .req_write_o(req_write),
    .req_address_o(req_address),
    .req_data_o(req_data),
    .req_id_o(req_id),
    .resp_valid_i(resp_valid),
    .resp_ready_o(resp_ready),
    .resp_write_i(resp_write),
    .resp_id_i(resp_id),
    .resp_data_i(resp_data),
    .busy_o
  );

  memory_channel #(
    .RowWidth(RowWidth),
    .IdWidth(IdWidth)
  ) u_channel (
    .clk_i,
    .rst_ni,
    .req_valid_i(req_valid),
    .req_ready_o(req_ready),
    .req_write_i(req_write),
    .req_address_i(req_address),
    .req_data_i(req_data),
    .req_id_i(req_id),
    .resp_valid_o(resp_valid),
    .resp_ready_i(resp_ready),
    .resp_write_o(resp_write),
    .resp_id_o(resp_id),
    .resp_data_o(resp_data),
    .row_valid_o(),
    .row_kind_o(),
    .row_group_o(),
    .row_bank_o(),
    .row_row_o(),
    .column_valid_o(),
    .column_write_o(),
    .column_group_o(),
    .column_bank_o(),
    .column_row_o(),
    .column_column_o(),
    .column_id_o()
  );
endmodule
