"""Programs tile by tile: the steps of every engine, and which unit of a token each takes and gives.

Takes and gives are numbered in program order, before anything runs. The n-th take of a token at a
tile gets the n-th unit given there, also where a later unit is there earlier.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program.operations import (
    Engine,
    OffChip,
    Operation,
    Relay,
    Tile,
    Transfer,
    Way,
    Work,
)
from tlm.program.program import Program
from tlm.room import hold_room

_STEP_BYTES = 1300
"""Memory that a step takes with its units, in mesh-gemm and summa (1,236 and 1,417)."""
_FEW = 2**12
"""Steps that are kept with their program: runs only read them."""


class ProgramDeadlockError(RuntimeError):
    """Operations that wait for tokens which nobody will give."""


class Unit(NamedTuple):
    """A unit of a tile's token: the ``number``-th that is taken, and that is given, there."""

    token: str
    tile: Tile
    number: int


@dataclass(slots=True)
class Step:
    """One operation at one tile.

    Attributes:
        number: Number of the operation in the program.
        operation: The operation.
        tile: Row and column.
        takes: Units taken at the start.
        gives: Units given at the end.
        slots: Units taken at the tiles that are written to. Contributors of a reduction share
            those of the root.
    """

    number: int
    operation: Operation
    tile: Tile
    takes: list[Unit]
    gives: list[Unit]
    slots: Sequence[Unit]

    @property
    def engine(self) -> Engine:
        """The tile's engine that does it."""
        return self.operation.engine


@dataclass(slots=True)
class WorkStep(Step):
    """Work of some cycles."""

    operation: Work
    cycles: int


@dataclass(slots=True)
class TransferStep(Step):
    """A tile's part in a transfer.

    Attributes:
        root: The tile that gets the result of a reduction; None of other transfers.
        members: Destinations; of a reduction its contributors; off chip the tile itself.
        flits: How many the tile sends.
        arrivals: By the tile that is written to, the units given there; of a reduction at its first
            contributor only.
    """

    operation: Transfer
    root: Tile | None
    members: TileSet
    flits: int
    arrivals: dict[Tile, list[Unit]]


@dataclass(slots=True)
class OffChipStep(TransferStep):
    """A tile's transfer from or to off-chip memory."""

    operation: OffChip


@dataclass(slots=True)
class RelayStep(TransferStep):
    """A tile's part in a relay."""

    operation: Relay
    root: Tile


def expand(program: Program) -> Iterator[Step]:
    """The steps of a program, operation by operation.

    Raises:
        InputError: if an operation does not fit the program.
    """
    numbers = _Numbers(program)
    for number, operation in enumerate(program.operations()):
        if isinstance(operation, Work):
            yield from _work(number, operation, numbers)
            continue
        assert isinstance(operation, Transfer)
        for way in operation.ways():
            if way.inwards:
                yield from _gather(number, operation, way, numbers)
            else:
                yield _spread(number, operation, way, numbers)


def held_steps(program: Program) -> list[Step]:
    """All steps of a program, which are counted first.

    Raises:
        InputError: if they would not fit into memory, or an operation does not fit the program.
    """
    if program.found.steps is not None:
        return program.found.steps
    count = sum(len(operation.near) for operation in program.built())
    hold_room(f"a program of {count:,} steps", count * _STEP_BYTES)
    steps = list(expand(program))
    if count <= _FEW:
        program.found.steps = steps
    return steps


class _Numbers:
    """How many units of each tile's tokens have been taken and given."""

    def __init__(self, program: Program) -> None:
        self._initial = {name: token.initial for name, token in program.tokens.items()}
        self._taken: Counter[tuple[str, Tile]] = Counter()
        self._given: Counter[tuple[str, Tile]] = Counter()

    def take(self, names: Iterable[str], tile: Tile) -> list[Unit]:
        """The next units in program order that a tile takes."""
        units = []
        for name in names:
            units.append(Unit(name, tile, self._taken[name, tile]))
            self._taken[name, tile] += 1
        return units

    def give(self, names: Iterable[str], tile: Tile) -> list[Unit]:
        """The next units in program order that are given at a tile."""
        units = []
        for name in names:
            units.append(Unit(name, tile, self._initial[name] + self._given[name, tile]))
            self._given[name, tile] += 1
        return units


def _tiles(tiles: TileSet) -> Iterator[Tile]:
    return ((row, col) for row in tiles.rows for col in tiles.cols)


def _work(number: int, work: Work, numbers: _Numbers) -> Iterator[WorkStep]:
    tiles = work.tiles
    shape = (len(tiles.rows), len(tiles.cols))
    cycles = np.broadcast_to(np.asarray(work.cycles), shape).ravel().tolist()
    for tile, each in zip(_tiles(tiles), cycles, strict=True):
        takes, gives = numbers.take(work.takes, tile), numbers.give(work.gives, tile)
        yield WorkStep(number, work, tile, takes, gives, (), each)


def _spread(number: int, transfer: Transfer, way: Way, numbers: _Numbers) -> TransferStep:
    """A transfer from a tile to one or many."""
    tile, members, flits = way.tile, way.members, transfer.sent_flits
    takes, gives = numbers.take(transfer.takes, tile), numbers.give(transfer.gives, tile)
    slots = [unit for there in _tiles(members) for unit in numbers.take(transfer.slots, there)]
    arrivals = {there: numbers.give(transfer.arrivals, there) for there in _tiles(members)}
    kind: type[TransferStep] = OffChipStep if isinstance(transfer, OffChip) else TransferStep
    return kind(number, transfer, tile, takes, gives, slots, None, members, flits, arrivals)


def _gather(number: int, transfer: Transfer, way: Way, numbers: _Numbers) -> Iterator[TransferStep]:
    """The contributors to one root."""
    root, members, flits = way.tile, way.members, transfer.sent_flits
    slots = numbers.take(transfer.slots, root)
    arrivals = {root: numbers.give(transfer.arrivals, root)}
    kind: type[TransferStep] = RelayStep if isinstance(transfer, Relay) else TransferStep
    for tile in _tiles(members):
        takes, gives = numbers.take(transfer.takes, tile), numbers.give(transfer.gives, tile)
        yield kind(number, transfer, tile, takes, gives, slots, root, members, flits, arrivals)
        arrivals = {}
