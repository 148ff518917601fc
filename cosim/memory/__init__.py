"""The memory channel in Verilog."""
