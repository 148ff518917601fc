// Powers of two with exponents from 0 to 1: round(2^15 * 2^(fraction / 256)), from a table.
module exp2_table (
  /// The exponent, in steps of 1/256.
  input  logic [7:0]  fraction_i,
  /// The power, in steps of 2^-15; at least one, less than two.
  output logic [15:0] power_o
);
  // A power is the product of its exponent's bits: round(2^30 * 2^(2^bit / 256)), here by bit.
  function automatic logic [31:0] factor(input int bit_number);
    unique case (bit_number)
      0: factor = 32'd1076653033;
      1: factor = 32'd1079572136;
      2: factor = 32'd1085434106;
      3: factor = 32'd1097253708;
      4: factor = 32'd1121280436;
      5: factor = 32'd1170923762;
      6: factor = 32'd1276901417;
      default: factor = 32'd1518500250;
    endcase
  endfunction

  function automatic logic [256*16-1:0] powers();
    logic [63:0] product;
    for (int fraction = 0; fraction < 256; fraction++) begin
      product = 64'd1 << 30;
      for (int bit_number = 0; bit_number < 8; bit_number++) begin
        if (((fraction >> bit_number) & 1) != 0) begin
          product = (product * 64'(factor(bit_number)) + (64'd1 << 29)) >> 30;
        end
      end
      powers[fraction*16 +: 16] = 16'((product + (64'd1 << 14)) >> 15);
    end
  endfunction

  localparam logic [256*16-1:0] Powers = powers();

  assign power_o = Powers[fraction_i*16 +: 16];
endmodule
