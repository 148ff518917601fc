"""A weight-stationary systolic array as NpuSim prices it, tile of weights by tile of weights.

The paper (arXiv 2510.05632, section 3.1) has

    cycles = N_tiles T_cycles + T_inject

with N_tiles the tiles of weights, the last ones padded. What T_cycles holds it leaves open. On R
rows and C columns a tile takes R cycles to load, M to stream the rows of A, and R + C - 2 to drain.
What of these a tile shares with the one before it is its reading.
"""

from dataclasses import dataclass
from typing import Any, Literal

from tlm.compute.base import LawOfShape, ceil_div, larger

#: What takes a tile's turn: the longer of streaming and of loading the next one's weights; stream
#: and drain, as the formula has it, with the next weights loaded meanwhile; or load, stream, drain.
TileTurn = Literal["overlapped", "stream-drain", "load-stream-drain"]


@dataclass(frozen=True, slots=True)
class TiledSystolic(LawOfShape):
    """An array of ``rows`` x ``cols`` elements, one multiply-accumulate each a cycle.

    Cycles are from the first weight to the last result.

    Attributes:
        rows: Rows.
        cols: Columns.
        turn: What of a tile the next one waits for.
    """

    rows: int
    cols: int
    turn: TileTurn

    @property
    def macs_per_cycle(self) -> float:
        """Multiply-accumulates a cycle with every element at work."""
        return float(self.rows * self.cols)

    def _cycles(self, m: Any, k: Any, n: Any) -> Any:
        tiles = ceil_div(k, self.rows) * ceil_div(n, self.cols)
        drained = m + self.rows + self.cols - 2
        return (tiles - 1) * self._turn_cycles(m, drained) + self.rows + drained

    def _turn_cycles(self, m: Any, drained: Any) -> Any:
        """From the start of a tile to that of the next one."""
        if self.turn == "overlapped":
            return larger(m, self.rows)
        if self.turn == "stream-drain":
            return larger(drained, self.rows)
        return self.rows + drained
