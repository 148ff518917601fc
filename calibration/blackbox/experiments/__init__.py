"""Experiments on somebody else's mesh, in the order in which they rest on each other."""
