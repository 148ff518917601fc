"""Meshes of tiles in Verilog: descriptors, loading, running in this process, reading back."""
