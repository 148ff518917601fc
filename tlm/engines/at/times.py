"""What is kept of a run at level at: when engines and arrivals ended, how long tiles computed."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tlm.engines.outcome import Outcome
from tlm.lockstep import SteppedEnvironment
from tlm.program import Engine, Program
from tlm.program.operations import COMPUTING, Tile


@dataclass(slots=True)
class _Computing:
    """Of a tile: how many of its engines compute, since when, and all cycles of that so far."""

    engines: int = 0
    since: int = 0
    cycles: int = 0
    matrix_cycles: int = 0


class RunTimes:
    """Times of a run, all in cycles.

    Attributes:
        ends: By engines, when those of tiles ended their last operations.
        arrived: When the last transfers into tiles were written.
    """

    def __init__(self, env: SteppedEnvironment, program: Program) -> None:
        self._env, self._shape = env, (program.rows, program.cols)
        # No arrays: to set one number in them takes longer.
        self.ends: list[dict[Tile, int]] = [{} for _ in Engine]
        self.arrived: dict[Tile, int] = {}
        self._computing: defaultdict[Tile, _Computing] = defaultdict(_Computing)

    def begin_work(self, tile: Tile, engine: Engine) -> None:
        """Note that an engine begins to work."""
        if engine in COMPUTING:
            self._compute(tile, 1)

    def end_work(self, tile: Tile, engine: Engine, start: int) -> None:
        """Note that an engine has worked since ``start``."""
        if engine in COMPUTING:
            self._compute(tile, -1)
        if engine is Engine.MATRIX:
            self._computing[tile].matrix_cycles += self._env.now - start

    def _compute(self, tile: Tile, more: int) -> None:
        """Count the cycles in which any of the computing engines works."""
        own, now = self._computing[tile], self._env.now
        if own.engines > 0:
            own.cycles += now - own.since
        own.engines += more
        own.since = now

    def outcome(self) -> Outcome:
        """What the run has yielded."""
        ends = np.zeros((len(Engine), *self._shape), dtype=np.int64)
        arrived, matrix_busy, computed = np.zeros((3, *self._shape), dtype=np.int64)
        for engine, of_tiles in enumerate(self.ends):
            for tile, end in of_tiles.items():
                ends[engine][tile] = end
        for tile, time in self.arrived.items():
            arrived[tile] = time
        for tile, own in self._computing.items():
            matrix_busy[tile], computed[tile] = own.matrix_cycles, own.cycles
        return Outcome(ends, arrived, matrix_busy, computed)
