"""A tile's SRAM in banks: conflicts between requesters, compiled, behind sockets."""
