"""Where kernels run: places of a chip."""
