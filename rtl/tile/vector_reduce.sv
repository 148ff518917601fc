// Last step of the vector unit: a word leaves as it is, or joins the result of its row.
//
// The result of a row grows in the register of the output, in every element of it.
module vector_reduce #(
  /// Elements of a word.
  parameter int Lanes = 2
) (
  /// Clock, rising edge.
  input  logic                clk_i,
  /// A word comes.
  input  logic                enable_i,
  /// It joins the result of its row.
  input  logic                reduce_i,
  /// By the maximum, instead of the sum.
  input  logic                maximum_i,
  /// It is the first of its row.
  input  logic                first_i,
  /// The word.
  input  logic [Lanes*32-1:0] data_i,
  /// The word a step later, or the result of its row so far in every element.
  output logic [Lanes*32-1:0] data_o
);
  // A tree: node n joins nodes 2n+1 and 2n+2; the elements of the word are its leaves.
  logic [2*Lanes-2:0][31:0] node;
  logic [31:0] joined;
  logic [Lanes*32-1:0] data_q;

  function automatic logic [31:0] join_elements(
    input logic maximum, input logic [31:0] left, input logic [31:0] right
  );
    if (!maximum) join_elements = left + right;
    else join_elements = ($signed(left) > $signed(right)) ? left : right;
  endfunction

  always_comb begin
    node = '0;
    for (int l = 0; l < Lanes; l++) node[Lanes-1+l] = data_i[l*32 +: 32];
    for (int n = Lanes - 2; n >= 0; n--) begin
      node[n] = join_elements(maximum_i, node[2*n+1], node[2*n+2]);
    end
    joined = first_i ? node[0] : join_elements(maximum_i, node[0], data_q[31:0]);
  end

  always_ff @(posedge clk_i) begin
    if (enable_i) data_q <= reduce_i ? {Lanes{joined}} : data_i;
  end

  assign data_o = data_q;
endmodule
