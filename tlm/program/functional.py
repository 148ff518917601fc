"""Programs on real blocks: what they compute, whatever the time it takes.

Every tile's engines do their steps in order, each as soon as its tokens are there; which of those
that could happen happens next is drawn at random. So a program whose tokens do not keep a block
from being overwritten too early, or read too early, gives wrong results under some seeds.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tlm.program.arithmetic import Integers, vector, wrap
from tlm.program.data import Gemm, Task
from tlm.program.operations import Engine, Tile
from tlm.program.program import Program
from tlm.program.steps import ProgramDeadlockError, Step, TransferStep, Unit, WorkStep, held_steps

_Key = tuple[Tile, Engine]


class TileBlocks:
    """The buffers of every tile of a program.

    ``memory[name]`` is the array of shape (grid rows, grid columns, rows, columns) that holds
    buffer ``name`` of every tile, to read or to write. What nobody has written is random.

    Args:
        program: Whose buffers these are.
        seed: Of what nobody has written.
    """

    def __init__(self, program: Program, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self._arrays: dict[str, Integers] = {}
        grid = (program.rows, program.cols)
        for name, buffer in program.buffers.items():
            if buffer.within is None:
                half = 1 << (buffer.bits - 1)
                self._arrays[name] = rng.integers(-half, half, (*grid, *buffer.shape))
        for name, buffer in program.buffers.items():
            if buffer.within is not None:
                last = buffer.offset + buffer.rows * buffer.columns
                whole = self._arrays[buffer.within].reshape(*grid, -1)
                part = whole[:, :, buffer.offset : last]
                self._arrays[name] = part.reshape(*grid, *buffer.shape)

    def __getitem__(self, name: str) -> Integers:
        return self._arrays[name]


def run_functional(program: Program, memory: TileBlocks, seed: int = 0) -> None:
    """Run a program on the blocks in ``memory``, which then holds its results.

    Args:
        program: What to run, with data.
        memory: Its buffers.
        seed: Of the order in which happens what need not wait.

    Raises:
        InputError: if an operation does not fit the program, or its steps do not fit into memory.
        ProgramDeadlockError: if operations wait for ever, naming one of them.
    """
    _FunctionalRun(program, memory, seed).run()


@dataclass(slots=True)
class _Gathering:
    """A reduction on its way: the operands that have left, and how many have not."""

    operands: list[Integers] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    missing: int = 0


class _FunctionalRun:
    """State of one run: what waits, and what may happen."""

    def __init__(self, program: Program, memory: TileBlocks, seed: int) -> None:
        self._buffers = program.buffers
        self._memory = memory
        self._rng = np.random.default_rng(seed)
        self._queues: dict[_Key, deque[Step]] = {}
        for step in held_steps(program):
            self._queues.setdefault((step.tile, step.engine), deque()).append(step)
        self._initial = {name: token.initial for name, token in program.tokens.items()}
        self._given: set[Unit] = set()
        self._waiting: dict[Unit, list[_Key]] = {}
        self._possible: list[Callable[[], None]] = []
        self._gatherings: dict[tuple[int, Tile], _Gathering] = {}

    def run(self) -> None:
        """Let things happen until nothing can."""
        for key in self._queues:
            self._begin_next(key)
        while self._possible:
            choice = int(self._rng.integers(len(self._possible)))
            chosen = self._possible[choice]
            self._possible[choice] = self._possible[-1]
            self._possible.pop()
            chosen()
        stuck = [key for key, queue in self._queues.items() if queue]
        if stuck:
            tile, engine = stuck[0]
            raise ProgramDeadlockError(
                f"operation {self._queues[stuck[0]][0].number} waits for ever at the "
                f"{engine.name} engine of tile {tile}; engines that wait for ever: {len(stuck)}"
            )

    def _begin_next(self, key: _Key) -> None:
        """The first step of an engine's queue begins, or waits for a unit."""
        if not self._queues[key]:
            return
        step = self._queues[key][0]
        for unit in (*step.takes, *step.slots):
            if unit.number >= self._initial[unit.token] and unit not in self._given:
                self._waiting.setdefault(unit, []).append(key)
                return
        self._possible.append(partial(self._end, key))

    def _end(self, key: _Key) -> None:
        """The step at the front of an engine's queue ends; of a transfer, the tail has left."""
        step = self._queues[key].popleft()
        if isinstance(step, TransferStep):
            self._leave(step)
        elif isinstance(step, WorkStep) and step.operation.task is not None:
            self._compute(step.operation.task, step.tile)
        self._give(step.gives)
        self._begin_next(key)

    def _give(self, units: Iterable[Unit]) -> None:
        for unit in units:
            self._given.add(unit)
            for key in self._waiting.pop(unit, ()):
                self._begin_next(key)

    def _compute(self, task: Task, tile: Tile) -> None:
        memory = self._memory
        if isinstance(task, Gemm):
            right = memory[task.b][tile]
            product = memory[task.a][tile] @ (right.T if task.turned else right)
            kept = memory[task.c][tile] if task.accumulate else 0
            memory[task.c][tile] = wrap(kept + product, self._buffers[task.c].bits)
            return
        a, b = memory[task.a][tile], None if task.b is None else memory[task.b][tile]
        bits = self._buffers[task.out].bits
        result = vector(task.operation, a, b, bits, task.multiplier, task.shift)
        memory[task.out][tile] = result

    def _leave(self, step: TransferStep) -> None:
        """A tile's block is on its way; what several are combined to when all have left."""
        transfer = step.operation
        data = None if transfer.source is None else self._memory[transfer.source][step.tile].copy()
        if step.root is not None:
            counts = transfer.contributes(step.tile)
            self._combine(step, step.root, data if counts else None)
            return
        for tile, units in step.arrivals.items():
            self._possible.append(partial(self._arrive, transfer.target, tile, units, data))

    def _combine(self, step: TransferStep, root: Tile, operand: Integers | None) -> None:
        transfer, key = step.operation, (step.number, root)
        gathering = self._gatherings.setdefault(key, _Gathering())
        gathering.units += step.arrivals.get(root, [])
        gathering.missing = (gathering.missing or len(step.members)) - 1
        if operand is not None:
            gathering.operands.append(operand)
        if gathering.missing:
            return
        del self._gatherings[key]
        data = None
        if transfer.target is not None:
            bits = self._buffers[transfer.target].bits
            data = transfer.combined(gathering.operands, bits)
        self._possible.append(partial(self._arrive, transfer.target, root, gathering.units, data))

    def _arrive(
        self, target: str | None, tile: Tile, units: list[Unit], data: Integers | None
    ) -> None:
        """A block is written at a tile."""
        if target is not None and data is not None:
            self._memory[target][tile] = data
        self._give(units)
