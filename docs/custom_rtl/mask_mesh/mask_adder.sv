// Adds two operands of a sum, flit by flit; they wait at the front of their inputs for each other.
//
// One flit at a time: the next one starts when the result has gone to its output. Of several pairs the
// one with the lowest port goes first, and keeps the adder to its last flit. Where operands come by
// three or more inputs nothing is ever added: such a sum hangs. So can sums of different tiles whose
// operands come in different orders.
module mask_adder
  import mask_pkg::*;
#(
  /// Cycles from taking two flits to offering their sum; at least 1.
  parameter int AddCycles = 3
) (
  /// Clock, rising edge.
  input  logic               clk,
  /// Reset, active high, synchronous.
  input  logic               rst,
  /// Place of this router.
  input  place_t             at,
  /// An input shows a flit that is to be added.
  input  ports_t             in_valid,
  /// The flits.
  input  flit_t  [Ports-1:0] in_flit,
  /// They are taken.
  output ports_t             in_taken,
  /// An output is offered a sum.
  output ports_t             out_valid,
  /// The output takes it.
  input  logic               out_taken,
  /// The sum.
  output flit_t              out_flit
);
  localparam int ElementWidth = 32;
  localparam int WaitWidth = $clog2(AddCycles + 1);

  if (AddCycles < 1) begin : gen_illegal_cycles
    $error("mask_adder: AddCycles is %0d, must be at least 1", AddCycles);
  end

  ports_t complete, pair, owner_q, to_q;
  logic busy_q, locked_q, start;
  logic [WaitWidth-1:0] wait_q;
  flit_t sum, sum_q;

  // Both inputs of a pair show flits of one sum.
  for (genvar i = 0; i < Ports; i++) begin : gen_input
    ports_t partners, equal;
    assign partners = operands(in_flit[i].header, at);
    for (genvar j = 0; j < Ports; j++) begin : gen_partner
      assign equal[j] = in_valid[j] && in_flit[j].header == in_flit[i].header;
    end
    assign complete[i] = in_valid[i] && $countones(partners) == 2 && (partners & ~equal) == '0;
  end

  always_comb begin
    pair = owner_q;
    if (!locked_q) begin
      pair = '0;
      for (int i = Ports - 1; i >= 0; i--) begin
        if (complete[i]) pair = operands(in_flit[i].header, at);
      end
    end
  end

  assign start = (!busy_q || out_taken) && pair != '0 && (pair & ~in_valid) == '0;
  assign in_taken = start ? pair : '0;

  // The sum goes under the header of either; which source it names means nothing.
  always_comb begin
    sum = '0;
    for (int i = 0; i < Ports; i++) begin
      if (pair[i]) sum = in_flit[i];
    end
    sum.payload = '0;
    for (int e = 0; e < PayloadWidth; e += ElementWidth) begin
      for (int i = 0; i < Ports; i++) begin
        if (pair[i]) begin
          sum.payload[e +: ElementWidth] =
              sum.payload[e +: ElementWidth] + in_flit[i].payload[e +: ElementWidth];
        end
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      busy_q <= 1'b0;
      locked_q <= 1'b0;
    end else if (start) begin
      busy_q <= 1'b1;
      locked_q <= !sum.last;
    end else if (out_taken) begin
      busy_q <= 1'b0;
    end
  end
  always_ff @(posedge clk) begin
    if (start) begin
      owner_q <= pair;
      sum_q <= sum;
      to_q <= outputs(sum.header, at, Local);
      wait_q <= WaitWidth'(AddCycles - 1);
    end else if (wait_q != '0) begin
      wait_q <= wait_q - WaitWidth'(1);
    end
  end

  assign out_valid = (busy_q && wait_q == '0) ? to_q : '0;
  assign out_flit = sum_q;
endmodule
