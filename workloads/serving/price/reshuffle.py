"""Bytes on their way from the regions of one side to those of another: two exchanges.

All go along the rows of the chip first, then along its columns. In a row what is in a tile goes to
all tiles that have the same columns of a matrix in the new regions, an equal part to each: which
layer lies where is not modelled. Regions are counted by tiles, so the last one may be cut off.
"""

from dataclasses import replace
from functools import lru_cache
from math import ceil, sqrt
from typing import NamedTuple

from tlm.compute.base import ceil_div
from workloads.kernels.catalogue import KERNELS_OWN
from workloads.kernels.vector.exchange import ExchangePlan, Round, exchange_cycles
from workloads.machine.order import Moves
from workloads.machine.place import Place
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.regions import Regions

#: Bytes that a tile sends along its row before others follow: in pieces plans need little room, and
#: are the same for all models.
PIECE_BYTES = 1024


class Reshuffle(NamedTuple):
    """A part of an iteration: a piece of what each tile has.

    Attributes:
        source: Where the bytes are.
        target: Where they go.
    """

    source: Regions
    target: Regions

    def pieces(self, moved_bytes: int, rows: int, cols: int) -> int:
        """How often it runs for all bytes, of tiles in so many rows and columns."""
        tiles = used(self.source, rows) * used(self.source, cols)
        return ceil_div(moved_bytes, tiles * PIECE_BYTES)


class Line(NamedTuple):
    """Rows or columns of a chip, which all do the same: one of them, as errors know a place.

    Attributes:
        place: Its tiles.
        lines: How many of them in which something moves.
    """

    place: Place
    lines: int

    @property
    def tiles(self) -> int:
        """Of a line."""
        return self.place.rows * self.place.cols

    def variant(self, mapped: Mapped) -> str:
        """What comparisons of levels know the exchange by."""
        return mapped.variant(KERNELS_OWN, self.place)


def reshuffled(part: Reshuffle, place: Place) -> list[tuple[Line, Mapped]]:
    """The exchanges of a row and of a column, one after the other.

    Args:
        part: What moves.
        place: All tiles of the chip.
    """
    rows, cols = used(part.source, place.rows), used(part.source, place.cols)
    new = used(part.target, place.cols)
    lines = Line(replace(place, rows=1), rows), Line(replace(place, cols=1), new)
    # What comes along the rows is spread over more or fewer columns.
    of_tile = PIECE_BYTES, PIECE_BYTES * cols / new
    return [
        (line, _exchange(line.place, _messages(*part, line.tiles), each))
        for line, each in zip(lines, of_tile, strict=True)
    ]


def used(regions: Regions, length: int) -> int:
    """Tiles of a line that are in regions, if all of these make a square."""
    return min(length, ceil(regions.side * sqrt(regions.count)))


class _Messages(NamedTuple):
    """What goes along a line.

    Attributes:
        each: Messages of a tile, of equal length; those to itself are not sent.
        rounds: From which tile to which, each once in a round at most.
    """

    each: int
    rounds: tuple[dict[int, int], ...]


@lru_cache(64)
def _messages(source: Regions, target: Regions, tiles: int) -> _Messages:
    """Of a line of so many tiles."""
    new = used(target, tiles)
    takers = [_takers(each, source.side, target.side, new) for each in range(used(source, tiles))]
    most = max(map(len, takers))
    rounds: list[tuple[dict[int, int], set[int]]] = []
    for turn in range(most):
        for number, to in enumerate(takers):
            # Neighbours begin with different ones of the same takers.
            taker = to[(turn + number) % len(to)]
            if taker != number:
                _add(rounds, number, taker)
    return _Messages(most, tuple(pairs for pairs, _ in rounds))


def _takers(number: int, source: int, target: int, tiles: int) -> list[int]:
    """Tiles of the new regions that have columns which a tile has in the old ones."""
    number %= source
    columns = range(number * target // source, ceil_div((number + 1) * target, source))
    every = (start + each for start in range(0, tiles, target) for each in columns)
    return [each for each in every if each < tiles]


def _add(rounds: list[tuple[dict[int, int], set[int]]], sender: int, taker: int) -> None:
    """A message, in the first round in which neither has another one."""
    for pairs, takers in rounds:
        if sender not in pairs and taker not in takers:
            break
    else:
        pairs, takers = {}, set()
        rounds.append((pairs, takers))
    pairs[sender] = taker
    takers.add(taker)


def _exchange(line: Place, messages: _Messages, tile_bytes: float) -> Mapped:
    """Messages along a row, or a column, of tiles that have so many bytes each."""
    part = 1, ceil(8 * tile_bytes / messages.each / line.sum_bits)
    rounds = tuple(Round(_moves(line, each), part) for each in messages.rounds)
    plan = ExchangePlan(line, rounds)
    return Mapped("exchange", part, plan, exchange_cycles(plan, line.timing))


def _moves(line: Place, pairs: dict[int, int]) -> Moves:
    if line.rows == 1:
        return tuple(((0, one), (0, other)) for one, other in pairs.items())
    return tuple(((one, 0), (other, 0)) for one, other in pairs.items())
