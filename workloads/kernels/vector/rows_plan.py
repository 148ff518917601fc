"""Work on rows of a matrix that lies in off-chip memory, cut over a grid of tiles.

Tiles are numbered row by row. As many tiles in turn as ``parts`` says share a stretch of rows, each
with some columns of them. Where rows are few, tiles are left out: whole rows of the grid, or a
part of one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from tlm.program.data import Buffer
from workloads.kernels.parts.collectives import Reduction, reduce_messages
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.pieces import Pieces
from workloads.kernels.vector.recipe import Part, Recipe, Step
from workloads.machine.moved import Moved
from workloads.machine.place import Place


class Counts(NamedTuple):
    """How many a tile has: whole numbers, or arrays with one for each of many candidates."""

    rows: Any  # blocks of rows
    blocks: Any  # blocks of columns of each
    inner: int  # steps of each of these

    def of(self, part: Part) -> Any:
        """Blocks of a part."""
        blocks = self.rows * self.blocks
        return {"rows": self.rows, "block": blocks, "step": blocks * self.inner}[part.every]


@dataclass(frozen=True, slots=True)
class RowsPlan:
    """A kernel of rows on a grid.

    Attributes:
        place: The grid.
        recipe: What is done.
        shape: Rows, and columns of each. Where operands are parts of rows: of one operand.
        inner: Blocks of operands that come together in a block of results.
        parts: Tiles that share the columns of a row.
        block: Rows and columns that a tile works on at a time.
        method: How they come together, where they do (`workloads.kernels.parts.collectives`).
    """

    place: Place
    recipe: Recipe
    shape: tuple[int, int]
    inner: int
    parts: int
    block: tuple[int, int]
    method: str

    @property
    def counts(self) -> Counts:
        """What a tile has."""
        return counts(self, self.parts, *self.block)

    @property
    def steps(self) -> Iterator[Step]:
        """In order."""
        rows, blocks, inner = self.counts
        for number in range(rows * blocks * inner):
            block, turn = divmod(number, inner)
            new = turn == 0 and block % blocks == 0
            yield Step(block // blocks, block, number, turn, new)

    @property
    def tiles(self) -> TileSet:
        """Tiles that have rows: the last rows of the grid, which are next to the edge."""
        rows, cols = used(self, self.parts, self.block[0])
        return TileSet(range(self.place.rows - int(rows), self.place.rows), range(int(cols)))

    @property
    def balance(self) -> float:
        """Cycles of a tile's passes over the flits that come to it and leave it."""
        parts = (*self.recipe.operands, *self.recipe.results)
        moved: int = sum(self.counts.of(part) * self.flits(part) for part in parts)
        return self.tile_vector_cycles / moved

    @property
    def pieces(self) -> Pieces:
        """Some tiles share a stretch of rows: of one row of the grid, or of some."""
        (rows, columns), number, cols = self.block, self.counts, self.place.cols
        group = (1, self.parts) if self.parts <= cols else (self.parts // cols, cols)
        blocks = {"rows": int(number.rows), "columns": int(number.blocks)}
        return Pieces(group, {"rows": rows, "columns": columns}, blocks)

    #: There are no products.
    tile_macs = tile_matrix_cycles = 0

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of the passes that every tile makes, reductions apart."""
        return int(pass_cycles(self, self.counts, *self.block))

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes if operands come from off-chip memory."""
        return int(needed_bytes(self, self.parts, *self.block))

    @property
    def sharing(self) -> bool:
        """Whether several tiles have parts of a row, and something of it comes together."""
        return self.parts > 1 and self.recipe.reduced is not None

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        tiles, runs = len(self.tiles), len(self.tiles) // self.parts
        read = written = taken = 0
        for part in self.recipe.operands:
            read += tiles * self.counts.of(part) * self.flits(part)
        for part in self.recipe.results:
            stores = tiles
            if self.sharing and part.name == self.recipe.reduced:
                stores = runs
                messages = runs * reduce_messages(self.method, self.parts)
                taken += messages * self.counts.of(part) * self.flits(part)
            written += stores * self.counts.of(part) * self.flits(part)
        unit = self.place.timing.flit_bytes
        return Moved(read * unit, written * unit, (read + taken) * unit)

    def flits(self, part: Part) -> int:
        """Flits of a block of a part."""
        return int(flits(self.place, part, *self.block))

    def buffer(self, part: Part) -> Buffer:
        """A block of a part as it lies in a tile."""
        rows, columns = self.block
        return Buffer(rows, 1 if part.column else columns, bits(self.place, part))

    @property
    def root(self) -> int:
        """Of the tiles that share rows, the one that has what comes together."""
        return self.parts // 2

    def reductions(self, slot: int) -> list[Reduction]:
        """How the parts of a reduced result in a buffer come together."""
        name, rows = f"{self.recipe.reduced}.{slot}", self.block[0]
        part = self.recipe.parts[self.recipe.reduced or ""]
        cols = len(self.tiles.cols)
        return [
            Reduction(
                Lines("row", range(self.tiles.rows.start, self.tiles.rows.stop), self.parts, first),
                self.root,
                self.method,
                name,
                name,
                f"{name}.there",
                self.flits(part),
                self.place.vector.pass_cycles(rows, 1),
            )
            for first in range(0, cols, self.parts)
        ]

    def part_of(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each tile in use which stretch of rows it has, and which part of their columns.

        Both have the shape (rows, columns) of the tiles in use.
        """
        number = np.arange(len(self.tiles)).reshape(len(self.tiles.rows), len(self.tiles.cols))
        return number // self.parts, number % self.parts


def counts(problem: RowsPlan, parts: Any, m: Any, n: Any) -> Counts:
    """What a tile has of a problem by some parts and blocks, whose own do not matter."""
    (rows, columns), place = problem.shape, problem.place
    high = ceil_div(rows, place.rows * place.cols // parts)
    return Counts(ceil_div(high, m), ceil_div(ceil_div(columns, parts), n), problem.inner)


def used(problem: RowsPlan, parts: Any, m: Any) -> tuple[Any, Any]:
    """Rows and columns of the tiles in use by some parts and rows of a block."""
    place = problem.place
    high = counts(problem, parts, m, 1).rows * m
    needed = ceil_div(problem.shape[0], high) * parts
    return ceil_div(needed, place.cols), np.minimum(needed, place.cols)


def needed_bytes(problem: RowsPlan, parts: Any, m: Any, n: Any) -> Any:
    """`RowsPlan.tile_bytes` of some parts and blocks of a problem, or of arrays of them."""
    recipe, place = problem.recipe, problem.place
    number = counts(problem, parts, m, n)
    needed: Any = 0
    for part in recipe.parts.values():
        each = ceil_div(m * (1 if part.column else n) * bits(place, part), 8)
        moves = part not in recipe.scratch
        copies = np.minimum(2, number.of(part)) if moves else 1
        if part.name == recipe.reduced:
            # Of partial results the sum, or two that come, are there, too.
            copies = copies * np.where(parts > 1, 2 if problem.method == "network" else 3, 1)
        needed = needed + copies * each
    return needed


def pass_cycles(problem: RowsPlan, number: Counts, m: Any, n: Any) -> Any:
    """Cycles of all passes of a tile."""
    recipe, vector = problem.recipe, problem.place.vector
    wide, narrow = vector.pass_cycles_over(m, n), vector.pass_cycles_over(m, 1)

    def cycles(inner: int, *, new_rows: bool) -> Any:
        made = recipe.passes(Step(0, 0, 0, inner, new_rows))
        columns = sum(recipe.parts[each.a].column for each in made)
        return (len(made) - columns) * wide + columns * narrow

    block = sum(cycles(inner, new_rows=False) for inner in range(problem.inner))
    first = cycles(0, new_rows=True) - cycles(0, new_rows=False)
    return number.rows * (number.blocks * block + first)


def flits(place: Place, part: Part, m: Any, n: Any) -> Any:
    """Flits of a block of a part."""
    return place.flits(m, 1 if part.column else n, bits(place, part))


def bits(place: Place, part: Part) -> int:
    """Bits of an element of a part."""
    return place.sum_bits if part.sums else place.element_bits
