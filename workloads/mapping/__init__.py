"""Closed forms of kernels mapped on a grid of tiles with off-chip memory."""
