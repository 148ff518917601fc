"""The NpuSim paper (arXiv 2510.05632): multi-core NPUs served by groups of cores."""
