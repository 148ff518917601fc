"""A matrix product cut into blocks over a square grid of tiles."""

from dataclasses import dataclass

from tlm.compute.base import Compute, ceil_div, check_shape
from tlm.errors import InputError


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """C[M,N] = A[M,K] B[K,N] on ``side`` x ``side`` tiles, a block of each matrix per tile.

    Every dimension is padded up to a multiple of the side, as WaferLLM's code does.

    Attributes:
        side: Tiles along each edge of the grid.
        block: Rows, depth and columns (m, k, n) of a tile's blocks.
        step_cycles: Cycles of one block product on a tile.
        a_flits: Flits of a block of A.
        b_flits: Flits of a block of B.
    """

    side: int
    block: tuple[int, int, int]
    step_cycles: int
    a_flits: int
    b_flits: int

    @property
    def balance(self) -> float:
        """Cycles of a block product over the flits of its two blocks."""
        return self.step_cycles / (self.a_flits + self.b_flits)

    @property
    def block_macs(self) -> int:
        """Multiply-accumulates of one block product."""
        m, k, n = self.block
        return m * k * n


def plan_gemm(
    shape: tuple[int, int, int],
    grid: tuple[int, int],
    element_bytes: int,
    flit_bytes: int,
    compute: Compute,
) -> GemmPlan:
    """Plan a product ``shape`` = (M, N, K) on ``grid`` = (rows, columns).

    Raises:
        InputError: for a grid that is not square, or a size below 1.
    """
    rows, cols = grid
    if rows != cols or rows < 1:
        raise InputError(f"grid {rows}x{cols}: these kernels run on square grids")
    size_m, size_n, size_k = shape
    check_shape(size_m, size_k, size_n)
    m, k, n = (ceil_div(size, rows) for size in (size_m, size_k, size_n))
    return GemmPlan(
        side=rows,
        block=(m, k, n),
        step_cycles=compute.gemm_cycles(m, k, n),
        a_flits=ceil_div(m * k * element_bytes, flit_bytes),
        b_flits=ceil_div(k * n * element_bytes, flit_bytes),
    )
