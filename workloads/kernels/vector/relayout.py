"""A matrix goes from the layout of kernels of rows to that of products on a grid, or back.

A row of tiles has as many rows of the matrix as another, in order. As rows, a tile has whole ones:
the first tile the first of them. As blocks, it has a part of the columns of all of them. So the
tiles of a row exchange parts, each with each.

They do so on the interleaved ring of the row (`Ring`). What a tile has for others goes to the next
tile, which keeps the part that is its own and passes on the others, until all have come. A tile
has two buffers in turn. No two transfers share a link.

Source of the method: A. Grama et al., "Introduction to Parallel Computing", 2003, section 4.5.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Buffer, Operation, Program, Send, Token
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.ring import Ring
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.place import Place


@dataclass(frozen=True, slots=True)
class RelayoutPlan:
    """A change of the layout of M rows of N sums, padded to whole parts.

    Attributes:
        place: The grid.
        part: Rows and columns of what a tile has for another.
        to_blocks: Whether rows become blocks; else blocks become rows.
    """

    place: Place
    part: tuple[int, int]
    to_blocks: bool

    def flits(self, step: int) -> int:
        """Flits that a tile sends in a step, from 1 on: the parts that have farther to go."""
        rows, columns = self.part
        return self.place.flits((self.place.cols - step) * rows, columns, self.place.sum_bits)

    @property
    def ring(self) -> Ring:
        """How the tiles of a row follow each other."""
        return Ring.interleaved(self.place.cols)

    @property
    def balance(self) -> float:
        """There is no work: a cycle over the flits of the first step."""
        return 1 / self.flits(1)

    @property
    def pieces(self) -> Pieces:
        """The tiles of a row exchange parts."""
        (rows, columns), cols = self.part, self.place.cols
        return Pieces((1, cols), {"rows": rows, "columns": columns}, {"rows": 1, "columns": cols})

    #: There is no work.
    tile_macs = tile_matrix_cycles = tile_vector_cycles = 0


def plan_relayout(shape: tuple[int, int], place: Place, *, to_blocks: bool) -> RelayoutPlan:
    """Plan the relayout of ``shape`` = (M, N).

    Raises:
        InputError: for a size below 1, or rows of a single tile, which has nobody to exchange with.
    """
    if place.cols == 1:
        raise InputError(f"grid {place.rows}x1: this kernel needs rows of two tiles or more")
    if min(shape) < 1:
        raise InputError(f"--shape: found {shape[0]} rows of {shape[1]}; allowed: 1 or more")
    part = ceil_div(shape[0], place.rows * place.cols), ceil_div(shape[1], place.cols)
    return RelayoutPlan(place, part, to_blocks)


def relayout_cycles(plan: RelayoutPlan, timing: NocTiming) -> int:
    """Cycles of the steps: a tile waits for parts, and to hear that the next tile's have left."""
    hops, cols = plan.ring.longest_hops, plan.place.cols
    credit = credit_cycles(timing, hops)
    cycles = arrival_cycles(timing, hops, plan.flits(cols - 1))
    for step in range(1, cols - 1):
        flits = plan.flits(step)
        cycles += max(arrival_cycles(timing, hops, flits), flits + credit)
    return cycles


def relayout(plan: RelayoutPlan) -> Program:
    """Program of the exchange.

    Buffer ``0`` has a tile's parts in the order of the ring, its own first. In the end the part
    that came in step s is the s-th of buffer ``s % 2``.
    """
    (rows, columns), cols = plan.part, plan.place.cols
    bits, size = plan.place.sum_bits, rows * columns
    tokens = {"ready": Token(), "left": Token(initial=1)}
    buffers = {f"{parity}": Buffer(cols * rows, columns, bits) for parity in range(2)}
    for step in range(1, cols):
        for parity in range(2):
            buffers[f"{parity}.{step}"] = Buffer(
                (cols - step) * rows, columns, bits, within=f"{parity}", offset=step * size
            )
    return Program(plan.place.rows, cols, tokens, lambda: _operations(plan), buffers)


def _operations(plan: RelayoutPlan) -> Iterator[Operation]:
    rows, cols = plan.place.rows, plan.place.cols
    everywhere, following = TileSet(range(rows), range(cols)), plan.ring.neighbours(1)
    for step in range(1, cols):
        there, here = step % 2, (step - 1) % 2
        yield Send(
            everywhere,
            np.arange(rows),
            following,
            plan.flits(step),
            takes=("ready",) if step > 1 else (),
            slots=("left",),  # the buffer that these go to has been sent on
            gives=("left",) if step < cols - 1 else (),
            arrivals=("ready",) if step < cols - 1 else (),
            source=f"{here}.{step}",
            target=f"{there}.{step}",
            label="parts",
        )


def put(plan: RelayoutPlan, memory: TileBlocks, matrix: Integers) -> None:
    """Put a matrix (M, N) where the program expects it."""
    place, cols = plan.ring.position, plan.place.cols
    tile_at, parts = np.argsort(place), _parts(plan, matrix)
    for step in range(cols):
        to = tile_at[(place + step) % cols]
        _slot(plan, memory, 0, step)[:] = parts[:, np.arange(cols), to]


def result(plan: RelayoutPlan, memory: TileBlocks) -> Integers:
    """Shape (rows, cols, cols, m, n): the parts of every tile, in the order of who had them."""
    (m, n), (rows, cols) = plan.part, (plan.place.rows, plan.place.cols)
    place = plan.ring.position
    tile_at, found = np.argsort(place), np.zeros((rows, cols, cols, m, n), dtype=np.int64)
    for step in range(cols):
        came_from = tile_at[(place - step) % cols]
        found[:, np.arange(cols), came_from] = _slot(plan, memory, step % 2, step)
    return found


def expected(plan: RelayoutPlan, matrix: Integers) -> Integers:
    """What `result` is to be."""
    return _parts(plan, matrix).swapaxes(1, 2)


def _slot(plan: RelayoutPlan, memory: TileBlocks, parity: int, step: int) -> Integers:
    """Shape (rows, cols, m, n): the part of a step in every tile's buffer."""
    m = plan.part[0]
    return memory[f"{parity}"][:, :, step * m : (step + 1) * m]


def _parts(plan: RelayoutPlan, matrix: Integers) -> Integers:
    """Shape (rows, cols, cols, m, n): what every tile has for each of its row."""
    (m, n), (rows, cols) = plan.part, (plan.place.rows, plan.place.cols)
    whole = np.zeros((rows * cols * m, cols * n), dtype=np.int64)
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    parts: Integers = whole.reshape(rows, cols, m, cols, n).transpose(0, 1, 3, 2, 4)
    # As blocks, a tile has columns of all rows: parts are those of the tiles whose rows they are.
    return parts if plan.to_blocks else parts.swapaxes(1, 2)
