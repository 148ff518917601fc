"""Verilog that runs inside this process: models built once, and what drives each of them."""
