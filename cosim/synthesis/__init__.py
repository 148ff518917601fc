"""What Verilog costs as hardware: cells, flip-flops and the longest path, by Yosys; toggles."""
