"""Passes of the vector engine over rows."""
