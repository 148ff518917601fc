"""Tokens of the tiles out of use that multicasts and reductions pass (`tlm.program.remap`).

Such a tile is never waited for: it has a place for every copy and an operand for every reduction,
and nobody takes what it is given. Work of no cycles there gives and takes these units. A unit that
it gives is there at cycle 0, so that no credit for it comes later than that of the working tile
beyond, which every segment that spans it holds too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.packets import TileSet
from tlm.program.operations import Ends, Engine, Operation, Work
from tlm.program.tokens import Token

_LABEL = "out of use"


class Bystanders:
    """Units at tiles out of use: as many as at the start, but for those of the last operations.

    What was taken is made up for, and what was given is taken away, where the program gives or
    takes such units at its own tiles: no sooner, or `lt` would think that multicasts wait for it.

    Args:
        tokens: Tokens of the program.
        grid: Rows and columns of tiles, those out of use included.
        engine: The engine that takes units away; another than CONTROL, which gives them.
    """

    def __init__(self, tokens: Mapping[str, Token], grid: tuple[int, int], engine: Engine) -> None:
        self._tokens, self._grid, self._engine = tokens, grid, engine
        self._units: dict[str, NDArray[np.int32]] = {}
        self._changed: dict[str, dict[TileSet, None]] = {}

    def take(self, names: Iterable[str], sets: list[TileSet]) -> Iterator[Work]:
        """Have a unit of each token at each tile, to be taken by an operation that comes next."""
        for name, count in Counter(names).items():
            for tiles in sets:
                units = self._at(name, tiles)
                while (units < count).any():
                    yield from self._work(name, tiles, units < count, 1)
                units -= count
                self._mark(name, tiles)

    def give(self, names: Iterable[str], sets: list[TileSet]) -> None:
        """Count a unit of each token at each tile, given by an operation that came before."""
        for name in names:
            for tiles in sets:
                units = self._at(name, tiles)
                units += 1
                self._mark(name, tiles)

    def settle(self, operation: Operation) -> Iterator[Work]:
        """After an operation of the program: as many units as at the start, of its tokens."""
        taken = (*operation.takes, *operation.slots)
        given = (*operation.gives, *operation.arrivals)
        for names, sign in ((taken, -1), (given, 1)):
            for name in dict.fromkeys(names):
                yield from self._restore(name, sign)

    def _restore(self, name: str, sign: int) -> Iterator[Work]:
        initial = self._tokens[name].initial
        for tiles in self._changed.pop(name, {}):
            units = self._at(name, tiles)
            while ((initial - units) * sign > 0).any():
                yield from self._work(name, tiles, (initial - units) * sign > 0, sign)
            if (units != initial).any():
                self._mark(name, tiles)

    def _mark(self, name: str, tiles: TileSet) -> None:
        self._changed.setdefault(name, {})[tiles] = None

    def _at(self, name: str, tiles: TileSet) -> NDArray[np.int32]:
        """Units at the tiles of a line, which may be changed."""
        if name not in self._units:
            self._units[name] = np.full(self._grid, self._tokens[name].initial, dtype=np.int32)
        line: NDArray[np.int32] = self._units[name][Ends.of(tiles).part]
        return line[0] if len(tiles.rows) == 1 else line[:, 0]

    def _work(
        self, name: str, tiles: TileSet, where: NDArray[np.bool_], sign: int
    ) -> Iterator[Work]:
        """Give (1) or take (-1) a unit at some tiles of a line."""
        edges = np.flatnonzero(np.diff(where.astype(np.int8), prepend=0, append=0))
        for part in (slice(*pair) for pair in edges.reshape(-1, 2).tolist()):
            by_row = len(tiles.rows) == 1
            rows, cols = (
                (tiles.rows, tiles.cols[part]) if by_row else (tiles.rows[part], tiles.cols)
            )
            there = TileSet(rows, cols)
            if sign > 0:
                yield Work(Engine.CONTROL, there, 0, gives=(name,), label=_LABEL)
            else:
                yield Work(self._engine, there, 0, takes=(name,), label=_LABEL)
            self._at(name, there)[:] += np.int32(sign)
