"""Experiments on a custom mesh, in the order in which they rest on each other."""
