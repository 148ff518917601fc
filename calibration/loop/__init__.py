"""Verilated meshes as the network of a running program, in its process."""
