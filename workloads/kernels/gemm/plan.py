"""A matrix product cut into blocks over a grid of tiles."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tlm.compute.base import ceil_div, check_shape
from tlm.program import Buffer
from workloads.kernels.parts.pieces import Pieces
from workloads.kernels.parts.relayed import RelayedParts
from workloads.machine.place import Place

Shape = tuple[int, int, int]
Moves = Callable[[int, int, int], int]
"""Elements that a core sends and receives in a step, given the sides m, k, n of a block product."""


def received(m: int, k: int, n: int) -> int:
    """Blocks of A and B come in."""
    return m * k + k * n


def shifted(m: int, k: int, n: int) -> int:
    """Blocks of A and B come in, and go out to the next core."""
    return 2 * received(m, k, n)


def summed(m: int, k: int, n: int) -> int:
    """Blocks of B are shifted, and sums of C come in and go out."""
    return 2 * (k * n + m * n)


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """C[M,N] = A[M,K] B[K,N] on ``rows`` x ``cols`` tiles.

    K is cut into as many panels as rows and columns have both as a divisor of; on a square grid a
    tile then has a panel of A and one of B. Every dimension is padded up to whole blocks, as
    WaferLLM's code does.

    Attributes:
        rows: Rows of tiles.
        cols: Columns of tiles.
        block: Rows, depth and columns (m, k, n) of a block product; k is the width of a panel.
        step_cycles: Cycles of one block product on a tile, and of what its core does for blocks
            that come and go.
        align_cycles: The same of a lock step of an alignment, without a product.
        a_flits: Flits of a block of A.
        b_flits: Flits of a block of B.
        c_flits: Flits of a block of C.
        element_bits: Bits of an element of A and B.
        sum_bits: Bits of an element of C.
        method: How panels are sent to many (`workloads.kernels.parts.broadcast`), where they are.
        receive_buffers: Of SUMMA: of a tile for panels of each matrix.
        serial: Of SUMMA: whether a panel of B is sent when that of A has come to its roots.
        relay_cycles: Where cores stream sums of C, from a word's arrival at one to its leaving.
        relayed: Parts in which the project's own tiles stream sums of C; None: none do.
        skewed: Whether A comes skewed, as a product of the same A before left it; else it is
            aligned first, where the kernel aligns.
    """

    rows: int
    cols: int
    block: tuple[int, int, int]
    step_cycles: int
    a_flits: int
    b_flits: int
    c_flits: int = 1
    element_bits: int = 8
    sum_bits: int = 32
    method: str = "network"
    receive_buffers: int = 2
    serial: bool = False
    relay_cycles: int | None = None
    relayed: RelayedParts | None = None
    align_cycles: int = 0
    skewed: bool = False

    @property
    def side(self) -> int:
        """Tiles along each edge of a square grid."""
        assert self.rows == self.cols
        return self.rows

    @property
    def panels(self) -> int:
        """Panels of K: block products of a tile."""
        return math.lcm(self.rows, self.cols)

    @property
    def held(self) -> tuple[int, int]:
        """Panels of A and of B that a tile has, each the same part of its row's or column's."""
        return self.panels // self.cols, self.panels // self.rows

    @property
    def balance(self) -> float:
        """Cycles of a block product over the flits of its two blocks."""
        return self.step_cycles / (self.a_flits + self.b_flits)

    @property
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile, those of padding among them."""
        m, k, n = self.block
        return m * k * n * self.panels

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's block products."""
        return self.step_cycles * self.panels

    @property
    def tile_vector_cycles(self) -> int:
        """There are no passes of the vector engine."""
        return 0

    @property
    def pieces(self) -> Pieces:
        """All tiles share the product; each makes its block of C panel by panel."""
        m, k, n = self.block
        blocks = {"m": 1, "n": 1, "k": self.panels}
        return Pieces((self.rows, self.cols), {"m": m, "n": n, "k": k}, blocks)

    def buffers(
        self, a: tuple[str, ...], b: tuple[str, ...], c: tuple[str, ...]
    ) -> dict[str, Buffer]:
        """Buffers for blocks of A, of B and of C."""
        m, k, n = self.block
        return (
            dict.fromkeys(a, Buffer(m, k, self.element_bits))
            | dict.fromkeys(b, Buffer(k, n, self.element_bits))
            | dict.fromkeys(c, Buffer(m, n, self.sum_bits))
        )


def plan_gemm(shape: Shape, place: Place, moves: Moves = received) -> GemmPlan:
    """Plan a product ``shape`` = (M, N, K) on any grid.

    Args:
        shape: M, N, K.
        place: The grid.
        moves: What a core moves in a step, where that takes the core's own time.

    Raises:
        InputError: for a size below 1.
    """
    size_m, size_n, size_k = shape
    check_shape(size_m, size_k, size_n)
    rows, cols = place.rows, place.cols
    m, n = ceil_div(size_m, rows), ceil_div(size_n, cols)
    k = ceil_div(size_k, math.lcm(rows, cols))
    software = place.software
    own = software.step_cycles + software.element_cycles * moves(m, k, n)
    return GemmPlan(
        rows=rows,
        cols=cols,
        block=(m, k, n),
        step_cycles=place.matrix.gemm_cycles(m, k, n) + round(own),
        a_flits=place.flits(k, m, place.element_bits),
        b_flits=place.flits(k, n, place.element_bits),
        c_flits=place.flits(m, n, place.sum_bits),
        element_bits=place.element_bits,
        sum_bits=place.sum_bits,
        align_cycles=round(software.step_cycles + software.element_cycles * 2 * m * k),
    )


def plan_square_gemm(shape: Shape, place: Place, moves: Moves = shifted) -> GemmPlan:
    """The same on a square grid, whose tiles pass blocks on.

    Raises:
        InputError: for a size below 1, or a grid that is not square.
    """
    place.square_side()
    return plan_gemm(shape, place, moves)
