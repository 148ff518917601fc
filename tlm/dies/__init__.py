"""Wafers of dies: links between them, collectives over a mesh of dies, and runs of kernels."""
