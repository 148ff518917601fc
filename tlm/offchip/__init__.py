"""Off-chip memory: channels at the edge of the mesh of tiles (docs/offchip.md)."""
