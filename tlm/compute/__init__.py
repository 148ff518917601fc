"""Matrix engines: cycles of a product by its shape."""
