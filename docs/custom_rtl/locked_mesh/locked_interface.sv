// Between tile and router: asks the receiver before the data of a message go, and answers others.
//
// It takes a message's first flit and holds it, sends a request, and waits for the acknowledge. Then
// it sends the data, and nothing else until the last of them has gone. Acknowledges for others go
// before its own request. There is a place for a request of every tile, so none waits at the receiver.
module locked_interface
  import locked_pkg::*;
#(
  /// Tiles of the mesh: each has one request on its way at most.
  parameter int Nodes = 16,
  /// Cycles from the taking of a message's first flit to the offer of its request; at least 1.
  parameter int RequestCycles = 1,
  /// Cycles from a request's arrival to the offer of its acknowledge; at least 1.
  parameter int AcknowledgeCycles = 1,
  /// Cycles from an acknowledge's arrival to the offer of the first data flit; at least 1.
  parameter int DataCycles = 1
) (
  /// Clock, rising edge.
  input  logic   clk,
  /// Reset, active high, synchronous.
  input  logic   rst,
  /// Place of this tile.
  input  place_t at,
  /// The tile offers a flit of a message.
  input  logic   tile_out_valid,
  /// It is taken in this cycle if it is offered.
  output logic   tile_out_ready,
  /// The offered flit.
  input  flit_t  tile_out_flit,
  /// The tile is offered a data flit.
  output logic   tile_in_valid,
  /// It is taken in this cycle if it is offered.
  input  logic   tile_in_ready,
  /// The offered flit.
  output flit_t  tile_in_flit,
  /// The router is offered a flit.
  output logic   net_out_valid,
  /// It is taken in this cycle if it is offered.
  input  logic   net_out_ready,
  /// The offered flit.
  output flit_t  net_out_flit,
  /// The router offers a flit.
  input  logic   net_in_valid,
  /// It is taken in this cycle if it is offered.
  output logic   net_in_ready,
  /// The offered flit.
  input  flit_t  net_in_flit
);
  typedef enum logic [2:0] {
    Idle,
    Asking,
    Waiting,
    Beginning,
    GoingOn
  } state_e;

  localparam int Longest = (RequestCycles > DataCycles) ? RequestCycles : DataCycles;
  localparam int WaitWidth = $clog2(Longest + 1);

  if (RequestCycles < 1 || AcknowledgeCycles < 1 || DataCycles < 1) begin : gen_illegal_cycles
    $error("locked_interface: RequestCycles, AcknowledgeCycles, DataCycles must be at least 1");
  end

  state_e state_q;
  flit_t head_q;
  logic [WaitWidth-1:0] wait_q;
  logic due, sending, asks, answers, sent;

  // From the arrival of requests to the offers of acknowledges.
  logic [AcknowledgeCycles-1:0] delay_valid;
  place_t [AcknowledgeCycles-1:0] delay_place;
  flit_t answer;
  logic unused_ready;

  assign due = wait_q == '0;
  assign sending = (state_q == Beginning && due) || state_q == GoingOn;
  assign asks = state_q == Asking && due;

  always_comb begin
    net_out_flit = head_q;
    net_out_flit.first = 1'b1;
    if (state_q == GoingOn) begin
      net_out_flit = tile_out_flit;
      net_out_flit.first = 1'b0;
    end else if (!sending && answers) begin
      net_out_flit = answer;
    end else if (!sending) begin
      net_out_flit.payload = '0;
      net_out_flit.kind = Request;
      net_out_flit.last = 1'b1;
    end
  end
  assign net_out_valid = (state_q == GoingOn) ? tile_out_valid : sending || answers || asks;
  assign tile_out_ready = state_q == Idle || (state_q == GoingOn && net_out_ready);
  assign sent = net_out_valid && net_out_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      state_q <= Idle;
      wait_q <= '0;
    end else begin
      if (!due) wait_q <= wait_q - WaitWidth'(1);
      case (state_q)
        Idle: if (tile_out_valid) begin
          state_q <= Asking;
          wait_q <= WaitWidth'(RequestCycles - 1);
        end
        Asking: if (asks && !answers && sent) state_q <= Waiting;
        Waiting: if (net_in_valid && net_in_flit.kind == Acknowledge) begin
          state_q <= Beginning;
          wait_q <= WaitWidth'(DataCycles - 1);
        end
        default: if (sending && sent) state_q <= net_out_flit.last ? Idle : GoingOn;
      endcase
    end
  end
  always_ff @(posedge clk) begin
    if (state_q == Idle) head_q <= tile_out_flit;
  end

  // What comes in. Only data wait for the tile.
  assign tile_in_valid = net_in_valid && net_in_flit.kind == Data;
  assign tile_in_flit = net_in_flit;
  assign net_in_ready = net_in_flit.kind != Data || tile_in_ready;

  assign delay_valid[0] = net_in_valid && net_in_flit.kind == Request;
  assign delay_place[0] = net_in_flit.source;
  for (genvar s = 1; s < AcknowledgeCycles; s++) begin : gen_delay
    always_ff @(posedge clk) begin
      delay_valid[s] <= !rst && delay_valid[s-1];
      delay_place[s] <= delay_place[s-1];
    end
  end

  locked_fifo #(
    .Depth(Nodes)
  ) u_answers (
    .clk,
    .rst,
    .in_valid(delay_valid[AcknowledgeCycles-1]),
    .in_ready(unused_ready),
    .in_flit('{
      payload: '0,
      source: at,
      to: delay_place[AcknowledgeCycles-1],
      first: 1'b1,
      kind: Acknowledge,
      last: 1'b1
    }),
    .out_valid(answers),
    .out_ready(!sending && net_out_ready),
    .out_flit(answer)
  );
endmodule
