"""Somebody else's mesh: what its user says of it, and the harness that runs packets through it."""
