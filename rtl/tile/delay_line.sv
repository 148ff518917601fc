// Delays a word by a fixed number of steps; zero steps is a wire.
module delay_line #(
  /// Bits of the word.
  parameter int Width = 8,
  /// Steps of delay; at least 0.
  parameter int Steps = 1
) (
  /// Clock, rising edge.
  input  logic             clk_i,
  /// Reset to zero, active low, synchronous.
  input  logic             rst_ni,
  /// The line moves by one step.
  input  logic             enable_i,
  /// Word in.
  input  logic [Width-1:0] data_i,
  /// The word of `Steps` steps ago.
  output logic [Width-1:0] data_o
);
  if (Steps < 0) begin : gen_illegal_steps
    $error("delay_line: Steps must be at least 0");
  end

  if (Steps == 0) begin : gen_wire
    logic unused_control;
    assign unused_control = ^{clk_i, rst_ni, enable_i};
    assign data_o = data_i;
  end else begin : gen_line
    logic [(Steps+1)*Width-1:0] stage;
    logic [Steps*Width-1:0] stage_q;

    assign stage = {stage_q, data_i};

    always_ff @(posedge clk_i) begin
      if (!rst_ni) stage_q <= '0;
      else if (enable_i) stage_q <= stage[Steps*Width-1:0];
    end

    assign data_o = stage[Steps*Width +: Width];
  end
endmodule
