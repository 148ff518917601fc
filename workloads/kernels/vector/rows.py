"""The program of a kernel of rows: two blocks of each operand and result are under way.

A block comes when its buffer is free, and leaves when its last pass has been made, while the next
ones are worked on. Without off-chip memory all blocks are at hand.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Load, Operation, Program, Store, Token
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.parts.passes import Passes
from workloads.kernels.vector.recipe import Part, Step
from workloads.kernels.vector.rows_plan import RowsPlan

_SLOTS = 2


def rows(plan: RowsPlan) -> Program:
    """Program of a plan; block i of operand ``x`` is in ``x.own.i``, of a result in ``out.own.i``.

    Labels: the names of operands and results for what moves them, ``passes`` for what is done.
    """
    work = _Rows(plan)
    place = plan.place
    return Program(place.rows, place.cols, work.tokens(), work.operations, work.buffers())


class _Rows:
    """The operations of a plan."""

    def __init__(self, plan: RowsPlan) -> None:
        self._plan = plan
        self._recipe = plan.recipe
        self._memory = plan.place.offchip is not None
        self._steps = list(plan.steps)
        self._reductions = {
            slot: plan.reductions(slot) if plan.sharing else [] for slot in range(_SLOTS)
        }
        self._all = self.buffers()

    def _moves(self, part: Part) -> bool:
        """Whether a part's blocks come to buffers of the tile, or leave from there."""
        return self._memory or self._reduced(part)

    def _reduced(self, part: Part) -> bool:
        return self._plan.sharing and part.name == self._recipe.reduced

    @property
    def _parts(self) -> tuple[Part, ...]:
        return (*self._recipe.operands, *self._recipe.results)

    def _slots(self, part: Part) -> range:
        return range(min(_SLOTS, self._plan.counts.of(part)))

    def tokens(self) -> dict[str, Token]:
        """All of them."""
        tokens: dict[str, Token] = {}
        for part in filter(self._moves, self._parts):
            for slot in self._slots(part):
                name = f"{part.name}.{slot}"
                if self._reduced(part):
                    tokens |= self._reductions[slot][0].tokens()
                free = "free" if part in self._recipe.operands else "left"
                tokens |= {f"{name}.there": Token(), f"{name}.{free}": Token(initial=1)}
        return tokens

    def buffers(self) -> dict[str, Buffer]:
        """Blocks in the tile, and those off chip."""
        plan = self._plan
        buffers = {part.name: plan.buffer(part) for part in self._recipe.scratch}
        for part in self._parts:
            block = plan.buffer(part)
            if self._moves(part):
                buffers |= {f"{part.name}.{slot}": block for slot in self._slots(part)}
            for slot in self._slots(part) if self._reduced(part) else ():
                buffers |= self._reductions[slot][0].buffers(block)
            own = replace(block, offchip=True)
            count = plan.counts.of(part)
            buffers |= {f"{part.name}.own.{number}": own for number in range(count)}
        return buffers

    def operations(self) -> Iterator[Operation]:
        """In program order: what leaves goes behind what brings the next operands."""
        for step in self._steps[:_SLOTS]:
            yield from self._bring(step)
        for step in self._steps:
            yield from self._work(step)
            if step.number + _SLOTS < len(self._steps):
                yield from self._bring(self._steps[step.number + _SLOTS])
            if step.number and self._reductions[0]:
                yield from self._take_away(self._steps[step.number - 1])
            elif not self._reductions[0]:
                yield from self._take_away(step)
        if self._reductions[0]:
            yield from self._take_away(self._steps[-1])

    def _bring(self, step: Step) -> Iterator[Operation]:
        """What a step needs first."""
        for part in self._recipe.operands if self._memory else ():
            if self._begins(part, step):
                buffer = self._buffer(part, step)
                yield Load(
                    self._plan.tiles,
                    self._plan.flits(part),
                    takes=(f"{buffer}.free",),
                    arrivals=(f"{buffer}.there",),
                    source=f"{part.name}.own.{step.of(part)}",
                    target=buffer,
                    label=part.name,
                )

    def _work(self, step: Step) -> Iterator[Operation]:
        """The passes of a step: each takes and gives what it is the first or the last to use."""
        made = self._recipe.passes(step)
        takes: list[list[str]] = [[] for _ in made]
        gives: list[list[str]] = [[] for _ in made]
        names = {part.name: self._buffer(part, step) for part in self._parts}
        for part in filter(self._moves, self._parts):
            users = [number for number, each in enumerate(made) if part.name in each]
            buffer = names[part.name]
            comes = part in self._recipe.operands
            if self._begins(part, step):
                takes[users[0]].append(f"{buffer}.there" if comes else f"{buffer}.left")
            if self._ends(part, step):
                gives[users[-1]].append(f"{buffer}.free" if comes else f"{buffer}.there")
        passes = Passes(self._plan.tiles, self._plan.place, self._all, "passes")
        for each, taken, given in zip(made, takes, gives, strict=True):
            a, out, b = (names.get(name, name) if name else None for name in each[1:4])
            assert a is not None
            assert out is not None
            yield passes(each.operation, a, out, b, each.factor, tuple(taken), tuple(given))

    def _take_away(self, step: Step) -> Iterator[Operation]:
        """What a step is the last to work on."""
        for part in filter(self._moves, self._recipe.results):
            if not self._ends(part, step):
                continue
            value = self._buffer(part, step)
            there, free, tiles = f"{value}.there", f"{value}.left", [self._plan.tiles]
            out = f"{part.name}.own.{step.of(part)}"
            if self._reduced(part):
                reductions, root = self._reductions[step.of(part) % _SLOTS], self._plan.root
                for reduction in reductions:
                    yield from reduction.reduce()
                tiles = [each.lines.tiles(range(root, root + 1)) for each in reductions]
                there, free = f"{value}.total", reductions[0].released
                value = reductions[0].result
            for each in tiles:
                yield self._leave(each, part, (value, out), (there, free))

    def _leave(
        self, tiles: TileSet, part: Part, way: tuple[str, str], tokens: tuple[str, str]
    ) -> Operation:
        """A result goes to where it belongs, from a buffer; takes a token and gives one."""
        (source, out), (there, free) = way, tokens
        if not self._memory:
            passes = Passes(tiles, self._plan.place, self._all, part.name)
            return passes("scale", source, out, takes=(there,), gives=(free,))
        return Store(
            tiles,
            self._plan.flits(part),
            takes=(there,),
            gives=(free,),
            source=source,
            target=out,
            label=part.name,
        )

    def _buffer(self, part: Part, step: Step) -> str:
        """Where a part's block is in a step."""
        number = step.of(part)
        return (
            f"{part.name}.{number % _SLOTS}" if self._moves(part) else f"{part.name}.own.{number}"
        )

    def _begins(self, part: Part, step: Step) -> bool:
        """Whether a step is the first with a block of a part."""
        before = step.number - 1
        return before < 0 or self._steps[before].of(part) != step.of(part)

    def _ends(self, part: Part, step: Step) -> bool:
        """Whether it is the last."""
        after = step.number + 1
        return after == len(self._steps) or self._steps[after].of(part) != step.of(part)


def put(plan: RowsPlan, memory: TileBlocks, operands: dict[str, Integers]) -> None:
    """Put operands where the program expects them.

    Args:
        plan: The plan.
        memory: Of the program.
        operands: By name, shape (rows, columns); of a column (rows, 1); of what comes with each
            step (inner, rows, columns).
    """
    for part in plan.recipe.operands:
        for step in plan.steps:
            own, columns = _places(plan, part, step)
            matrix = operands[part.name]
            matrix = matrix[step.inner] if part.every == "step" else matrix
            block = _padded(matrix, own.max() + 1, columns.max() + 1)[own, columns]
            memory[f"{part.name}.own.{step.of(part)}"][_at(plan)] = block


def result(plan: RowsPlan, memory: TileBlocks, name: str) -> Integers:
    """A result, shape (rows, columns); of a column, (rows, 1)."""
    part = plan.recipe.parts[name]
    rows, columns = plan.shape[0], 1 if part.column else plan.shape[1]
    whole = np.zeros((0, 0), dtype=np.int64)
    for step in plan.steps:
        own, places = _places(plan, part, step)
        whole = _padded(whole, own.max() + 1, places.max() + 1)
        block = memory[f"{name}.own.{step.of(part)}"][_at(plan)]
        if plan.sharing and name == plan.recipe.reduced:
            roots = slice(plan.root, None, plan.parts)
            own, places, block = own[:, roots], places[:, roots], block[:, roots]
        whole[own, places] = block
    return whole[:rows, :columns]


def _at(plan: RowsPlan) -> tuple[Integers, Integers]:
    """The tiles in use."""
    return np.array(plan.tiles.rows)[:, None], np.array(plan.tiles.cols)


def _places(plan: RowsPlan, part: Part, step: Step) -> tuple[Integers, Integers]:
    """Rows and columns of a part's elements in a step, of each tile in use."""
    (stretch, share), (m, n) = plan.part_of(), plan.block
    number = plan.counts
    first_row = (stretch * number.rows + step.rows) * m
    first_column = (share * number.blocks + step.block % number.blocks) * n
    own = first_row[..., None, None] + np.arange(m)[:, None]
    if part.column:
        return own, np.zeros_like(own)
    columns = np.arange(n) + (0 if part.every == "rows" else first_column[..., None, None])
    return own, np.broadcast_to(columns, (*own.shape[:3], n))


def _padded(matrix: Integers, rows: int, columns: int) -> Integers:
    """A matrix with zeros behind it."""
    larger = np.zeros((max(rows, len(matrix)), max(columns, matrix.shape[1])), dtype=np.int64)
    larger[: len(matrix), : matrix.shape[1]] = matrix
    return larger
