"""The approximately-timed engine: every tile's engines as SimPy processes, every packet on its way.

The network is an `Interconnect` advanced in step with SimPy (`SimpyNetwork`).
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from tlm.engines.outcome import Outcome
from tlm.engines.transfer_times import credit_cycles
from tlm.interconnect.base import Interconnect
from tlm.interconnect.packets import TileSet
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.interconnect.zero_load import NocTiming
from tlm.lockstep import SteppedEnvironment
from tlm.program import Engine, Multicast, Operation, Program, Send, Work, destination, segment_of

Tile = tuple[int, int]
_Process = Generator[simpy.Event, Any, None]

_FROM_THE_START = -(2**62)
"""Time of an initial unit: longer ago than any credit takes."""


class ProgramDeadlockError(RuntimeError):
    """Operations that wait for tokens which nobody will give."""


class _Token:
    """A tile's token; takes and gives are numbered before the run, in program order."""

    def __init__(self, env: simpy.Environment, initial: int) -> None:
        self._env = env
        self._given = dict.fromkeys(range(initial), _FROM_THE_START)
        self._waiting: dict[int, simpy.Event] = {}
        self._takes = 0
        self._gives = initial

    def next_take(self) -> "_Unit":
        """The unit that the next take in program order gets."""
        self._takes += 1
        return _Unit(self, self._takes - 1)

    def next_give(self) -> "_Unit":
        """The unit that the next give in program order gives."""
        self._gives += 1
        return _Unit(self, self._gives - 1)

    def take(self, number: int) -> Generator[simpy.Event, Any, int]:
        """Wait for a unit; the value is the time at which it was given."""
        if number not in self._given:
            yield self._waiting.setdefault(number, self._env.event())
        return self._given.pop(number)

    def give(self, number: int) -> None:
        """Give a unit now."""
        self._given[number] = int(self._env.now)
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            waiting.succeed()


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit of a tile's token: the n-th take gets the n-th unit given."""

    token: _Token
    number: int

    def take(self) -> Generator[simpy.Event, Any, int]:
        return self.token.take(self.number)

    def give(self) -> None:
        self.token.give(self.number)


@dataclass(slots=True)
class _Step:
    """One operation at one tile, its tokens looked up."""

    number: int
    takes: list[_Unit]
    gives: list[_Unit]


@dataclass(slots=True)
class _Busy(_Step):
    cycles: int


@dataclass(slots=True)
class _Transfer(_Step):
    """A transfer to ``where``; ``slots`` come with the time their credits travel."""

    where: TileSet
    flits: int
    slots: list[tuple[_Unit, int]]
    arrivals: dict[int, Callable[[int], object]] = field(default_factory=dict)


def run_at(program: Program, timing: NocTiming, network: Interconnect) -> Outcome:
    """Run a program packet by packet.

    Args:
        program: What to run.
        timing: Packet bound (``fifo_depth``) and latency of credits.
        network: A network of the program's size, not yet used.

    Raises:
        InputError: if an operation does not fit the program.
        ProgramDeadlockError: if operations wait for ever, naming one of them.
    """
    return _Run(program, timing, network).outcome()


class _Run:
    """State of one run."""

    def __init__(self, program: Program, timing: NocTiming, network: Interconnect) -> None:
        self._program = program
        self._timing = timing
        self._env = SteppedEnvironment()
        self._network = SimpyNetwork(self._env, network, timing.fifo_depth)
        self._tokens: dict[tuple[str, Tile], _Token] = {}
        self._begun: dict[tuple[Tile, Engine], int] = {}
        shape = (program.rows, program.cols)
        self._ends = np.zeros((len(Engine), *shape), dtype=np.int64)
        self._arrived = np.zeros(shape, dtype=np.int64)
        self._busy = np.zeros(shape, dtype=np.int64)

    def outcome(self) -> Outcome:
        """Run to the end."""
        queues: dict[tuple[Tile, Engine], list[_Busy | _Transfer]] = {}
        for number, operation in enumerate(self._program.operations()):
            for tile, engine, step in self._expand(number, operation):
                queues.setdefault((tile, engine), []).append(step)
        processes = {
            key: self._env.process(self._engine(*key, steps)) for key, steps in queues.items()
        }
        self._env.run()
        stuck = [key for key, process in processes.items() if process.is_alive]
        if stuck:
            tile, engine = stuck[0]
            raise ProgramDeadlockError(
                f"operation {self._begun[stuck[0]]} waits for ever at the {engine.name} engine "
                f"of tile {tile}; engines that wait for ever: {len(stuck)}"
            )
        return Outcome(self._ends, self._arrived, self._busy)

    def _expand(
        self, number: int, operation: Operation
    ) -> Iterator[tuple[Tile, Engine, _Busy | _Transfer]]:
        """An operation's steps, tile by tile; takes are numbered in this order."""
        if isinstance(operation, Work):
            tiles = operation.tiles
            shape = (len(tiles.rows), len(tiles.cols))
            cycles = np.broadcast_to(np.asarray(operation.cycles), shape)
            for (i, j), each in np.ndenumerate(cycles):
                tile = (tiles.rows[i], tiles.cols[j])
                step = _Busy(number, *self._lookup(operation, tile), int(each))
                yield tile, operation.engine, step
            return
        sources = operation.tiles if isinstance(operation, Send) else operation.roots
        for row in sources.rows:
            for col in sources.cols:
                yield (row, col), Engine.TRANSFER, self._transfer(number, operation, (row, col))

    def _transfer(self, number: int, operation: Send | Multicast, tile: Tile) -> _Transfer:
        if isinstance(operation, Send):
            where = TileSet.tile(*destination(operation, *tile))
        else:
            where = segment_of(operation, *tile)
        step = _Transfer(number, *self._lookup(operation, tile), where, operation.flits, [])
        for row in where.rows:
            for col in where.cols:
                hops = abs(row - tile[0]) + abs(col - tile[1])
                credit = credit_cycles(self._timing, hops)
                for name in operation.slots:
                    step.slots.append((self._token(name, (row, col)).next_take(), credit))
                units = [self._token(name, (row, col)).next_give() for name in operation.arrivals]
                node = row * self._program.cols + col
                step.arrivals[node] = _Arrival(self, (row, col), units)
        return step

    def _lookup(self, operation: Operation, tile: Tile) -> tuple[list[_Unit], list[_Unit]]:
        takes = [self._token(name, tile).next_take() for name in operation.takes]
        gives = [self._token(name, tile).next_give() for name in operation.gives]
        return takes, gives

    def _token(self, name: str, tile: Tile) -> _Token:
        key = (name, tile)
        if key not in self._tokens:
            self._tokens[key] = _Token(self._env, self._program.tokens[name].initial)
        return self._tokens[key]

    def _engine(self, tile: Tile, engine: Engine, steps: list[_Busy | _Transfer]) -> _Process:
        """An engine does its steps in order."""
        for step in steps:
            self._begun[tile, engine] = step.number
            for unit in step.takes:
                yield from unit.take()
            if isinstance(step, _Busy):
                yield self._env.timeout(step.cycles)
                if engine is Engine.MATRIX:
                    self._busy[tile] += step.cycles
            else:
                yield from self._send(tile, step)
            self._ends[engine][tile] = self._env.now
            for unit in step.gives:
                unit.give()

    def _send(self, tile: Tile, step: _Transfer) -> _Process:
        """Wait for the credits, queue the packets, and wait until the last one has left."""
        for unit, credit in step.slots:
            known = (yield from unit.take()) + credit
            if known > self._env.now:
                yield self._env.timeout(known - self._env.now)
        source = tile[0] * self._program.cols + tile[1]
        left = self._env.event()
        self._network.send(source, step.where, step.flits, left.succeed, step.arrivals)
        yield left

    def arrive(self, tile: Tile, units: list[_Unit]) -> None:
        """A transfer has been written at a tile."""
        self._arrived[tile] = self._env.now
        for unit in units:
            unit.give()


@dataclass(frozen=True, slots=True)
class _Arrival:
    """What the ejection of a transfer's tail does."""

    run: _Run
    tile: Tile
    units: list[_Unit]

    def __call__(self, node: int) -> None:
        self.run.arrive(self.tile, self.units)
