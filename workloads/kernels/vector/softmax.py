"""Softmax of the rows of a matrix of integer scores that lies on a grid, block by block.

Each tile finds the maxima of its parts of rows; an all-reduction along the rows of tiles makes them
those of whole rows, which are subtracted before the exponential; another adds the sums of the
exponentials. The vector unit does not divide: the result is the exponentials, in units of 2^-16,
and the sums of rows, by whose quotient a softmax is multiplied wherever it goes next.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Operation, Program, Token
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.parts.blocks import cut
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.passes import Factor, Passes
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.place import Place

NEGATIVE = Factor(-1, 0)
_LEAST_SCORE = -(2**30)
"""What pads a row: its exponential is zero, and differences from it do not wrap."""


@dataclass(frozen=True, slots=True)
class SoftmaxPlan:
    """Softmax of M rows of N scores on a grid, padded to whole blocks.

    Attributes:
        place: The grid.
        block: Rows and columns (m, n) of a tile's block.
        method: How parts of rows come together (`workloads.kernels.parts.collectives`).
        exponent: From scores to exponents of two.
    """

    place: Place
    block: tuple[int, int]
    method: str
    exponent: Factor

    @property
    def column_flits(self) -> int:
        """Flits of a maximum, or sum, of each row of a block."""
        return self.place.flits(self.block[0], 1, self.place.sum_bits)

    @property
    def balance(self) -> float:
        """Cycles of the vector engine's passes over the flits of both reductions."""
        return self.tile_vector_cycles / (2 * self.column_flits)

    @property
    def pieces(self) -> Pieces:
        """The tiles of a row of the grid share rows of scores."""
        rows, columns = self.block
        size = {"rows": rows, "columns": columns}
        return Pieces((1, self.place.cols), size, {"rows": 1, "columns": 1})

    #: There are no products.
    tile_macs = tile_matrix_cycles = 0

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of the passes that every tile makes, reductions apart."""
        vector = self.place.vector
        return 5 * vector.pass_cycles(*self.block) + vector.pass_cycles(self.block[0], 1)


def plan_softmax(
    shape: tuple[int, int], place: Place, method: str, unit: float = 1 / 16
) -> SoftmaxPlan:
    """Plan the softmax of ``shape`` = (M, N) scores in a ``unit``.

    Raises:
        InputError: for a size below 1, or an unknown method.
    """
    if min(shape) < 1:
        raise InputError(f"--shape: found {shape[0]} rows of {shape[1]}; allowed: 1 or more")
    block = (ceil_div(shape[0], place.rows), ceil_div(shape[1], place.cols))
    return SoftmaxPlan(place, block, method, Factor.of_exponent(unit))


def softmax(plan: SoftmaxPlan) -> Program:
    """Program of softmax: scores in buffer ``s``, then exponentials; sums of rows in ``sum``."""
    place = plan.place
    m, n = plan.block
    column = Buffer(m, 1, place.sum_bits)
    maximum, total = reductions(place, plan.method, plan.column_flits, m)
    tokens = {"top.there": Token(), "sum.there": Token(), **maximum.tokens(), **total.tokens()}
    buffers = {"s": Buffer(m, n, place.sum_bits), "top": column, "sum": column}
    buffers |= maximum.buffers(column) | total.buffers(column)
    everywhere = TileSet(range(place.rows), range(place.cols))
    passes = Passes(everywhere, place, buffers, "softmax")

    def operations() -> Iterator[Operation]:
        yield passes("row-maximum", "s", "top", gives=("top.there",))
        yield from maximum.all_reduce()
        yield passes("scale", "top", "top", factor=NEGATIVE, takes=("top.there",))
        yield passes("add", "s", "s", b="top")
        yield passes("scale", "s", "s", factor=plan.exponent)
        yield passes("exp", "s", "s")
        yield passes("row-sum", "s", "sum", gives=("sum.there",))
        yield from total.all_reduce()

    return Program(place.rows, place.cols, tokens, operations, buffers)


def reductions(place: Place, method: str, flits: int, rows: int) -> tuple[Reduction, Reduction]:
    """Those of the maxima ``top`` and of the sums ``sum`` of rows, along rows of tiles."""
    lines = Lines("row", range(place.rows), place.cols)
    roots = tuple(diagonal(place.rows, place.cols))
    cycles = place.vector.pass_cycles(rows, 1)
    maximum = Reduction(
        lines, roots, method, "top", "top", "top.there", flits, cycles, operation="maximum"
    )
    return maximum, Reduction(lines, roots, method, "sum", "sum", "sum.there", flits, cycles)


def diagonal(lines: int, length: int) -> list[int]:
    """The place of the diagonal on each line of a grid that need not be square."""
    return [line * length // lines for line in range(lines)]


def put(plan: SoftmaxPlan, memory: TileBlocks, scores: Integers) -> None:
    """Put scores (M, N) where the program expects them."""
    place = plan.place
    memory["s"][:] = cut(scores, place.rows, place.cols, fill=_LEAST_SCORE)
