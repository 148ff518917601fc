"""What Python calls: the commands' runs as functions, and the names that they take."""
