"""Off-chip memory: channels at the edge of the mesh, or at each tile (docs/offchip.md)."""
