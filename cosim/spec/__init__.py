"""What the user of any mesh says of it: sizes, ports, flits, what it can do."""
