"""What kernels are made of: lines and collectives along them, passes, blocks, inlets."""
