"""Meshes in Verilog under modelled tiles."""
