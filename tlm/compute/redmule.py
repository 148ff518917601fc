"""Closed form of the RedMulE matrix engine.

Fitted to runs of its public RTL (pulp-platform/redmule). H x W compute elements with P pipeline
registers work on tiles of C of W rows and D = H (P + 1) columns. Kp is K padded to a multiple of H:

    cycles = setup + preload + ceil(M / W) ceil(N / D) Kp (P + 1) + (Nl + W)

with Nl the width of the last tile of columns. There is no bubble between tiles. The preload is
shorter than stated when M is small, so small products come out a little long.
"""

from dataclasses import dataclass
from typing import Any

from tlm.compute.base import LawOfShape, ceil_div


@dataclass(frozen=True, slots=True)
class RedMule(LawOfShape):
    """A RedMulE of ``height`` x ``width`` compute elements, in its paper's naming.

    Attributes:
        height: Compute elements along the inner dimension (H).
        width: Compute elements along the rows of C (W).
        pipeline_registers: Registers inside a compute element (P).
        setup_cycles: Fixed cycles of a call, programming and last handshake included.
        preload_cycles: Cycles until the first operands are in place.
    """

    height: int
    width: int
    pipeline_registers: int
    setup_cycles: int
    preload_cycles: int

    @property
    def macs_per_cycle(self) -> float:
        """Multiply-accumulates a cycle with every element at work."""
        return float(self.height * self.width)

    def _cycles(self, m: Any, k: Any, n: Any) -> Any:
        passes = self.pipeline_registers + 1
        tile_cols = self.height * passes
        col_tiles = ceil_div(n, tile_cols)
        padded_k = ceil_div(k, self.height) * self.height
        busy = ceil_div(m, self.width) * col_tiles * padded_k * passes
        drain = n - (col_tiles - 1) * tile_cols + self.width
        return self.setup_cycles + self.preload_cycles + busy + drain
