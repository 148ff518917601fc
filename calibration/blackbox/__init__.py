"""Somebody else's mesh: packets through it, and what is found out of it."""
