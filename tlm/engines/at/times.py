"""What is kept of a run at level at: when engines and arrivals ended, how long tiles computed."""

import numpy as np
from simpy import Environment

from tlm.engines.outcome import Outcome
from tlm.program import Engine, Program
from tlm.program.operations import COMPUTING, Tile


class RunTimes:
    """Times of a run, all in cycles.

    Attributes:
        ends: Shape (engines, rows, columns): when each engine ended its last operation.
        arrived: Shape (rows, columns): when the last transfer into a tile was written.
    """

    def __init__(self, env: Environment, program: Program) -> None:
        self._env = env
        shape = (program.rows, program.cols)
        self.ends = np.zeros((len(Engine), *shape), dtype=np.int64)
        self.arrived = np.zeros(shape, dtype=np.int64)
        self._matrix_busy = np.zeros(shape, dtype=np.int64)
        self._computed = np.zeros(shape, dtype=np.int64)
        self._computing = np.zeros(shape, dtype=np.int64)
        self._computing_since = np.zeros(shape, dtype=np.int64)

    def begin_work(self, tile: Tile, engine: Engine) -> None:
        """Note that an engine begins to work."""
        if engine in COMPUTING:
            self._compute(tile, 1)

    def end_work(self, tile: Tile, engine: Engine, start: int) -> None:
        """Note that an engine has worked since ``start``."""
        if engine in COMPUTING:
            self._compute(tile, -1)
        if engine is Engine.MATRIX:
            self._matrix_busy[tile] += int(self._env.now) - start

    def _compute(self, tile: Tile, more: int) -> None:
        """Count the cycles in which any of the computing engines works."""
        if self._computing[tile] > 0:
            self._computed[tile] += int(self._env.now) - self._computing_since[tile]
        self._computing[tile] += more
        self._computing_since[tile] = self._env.now

    def outcome(self) -> Outcome:
        """What the run has yielded."""
        return Outcome(self.ends, self.arrived, self._matrix_busy, self._computed)
