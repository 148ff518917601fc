"""Sums of rows of a matrix over a grid of tiles, which every tile of a line then has.

The sum of M rows of N elements: a tile has some elements of some rows, which its vector engine adds
up; the tiles of a column have parts of the same rows, whose sums are added like those of a product
of a vector and a matrix. Norms and softmax need it on operands that lie as products leave them.
"""

from dataclasses import dataclass, fields
from typing import Any

from tlm.compute.base import ceil_div
from tlm.program import Buffer, Engine, Work
from tlm.program.arithmetic import Integers
from tlm.program.data import Vector
from tlm.program.functional import TileBlocks
from workloads.kernels.gemv.mesh_gemv import plan_mesh_gemv
from workloads.kernels.gemv.pipeline_gemv import plan_pipeline_gemv
from workloads.kernels.gemv.plan import GemvPlan, in_parts
from workloads.kernels.parts.blocks import cut
from workloads.machine.place import Place


@dataclass(frozen=True, slots=True)
class RowSumPlan(GemvPlan):
    """See `GemvPlan`: its c are the sums, and its product a pass of the vector engine."""

    #: There are no products.
    tile_macs = tile_matrix_cycles = 0

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of a tile's pass."""
        return self.product_cycles

    @property
    def buffers(self) -> dict[str, Buffer]:
        """Buffers ``x`` and ``c``."""
        k, n = self.block
        return {"x": Buffer(n, k, self.sum_bits), "c": Buffer(n, 1, self.sum_bits)}

    def product(self, gives: tuple[str, ...]) -> Work:
        """The pass of every tile."""
        return Work(
            Engine.VECTOR,
            self.everywhere,
            self.product_cycles,
            gives=gives,
            task=Vector("row-sum", "x", "c"),
            label="C",
        )


_FIELDS = tuple(field.name for field in fields(GemvPlan))


def plan_row_sum(
    shape: tuple[int, int],
    place: Place,
    groups: tuple[int, ...] | None = None,
    method: str | None = None,
) -> RowSumPlan:
    """Plan the sums of ``shape`` = (M, N).

    Args:
        shape: Rows, and elements of each.
        place: The grid.
        groups: As of MeshGEMV.
        method: As of MeshGEMV; or ``pipeline``, as of the pipelined product.

    Raises:
        InputError: if the shape, the groups or the method do not fit.
    """
    if method == "pipeline":
        plan = plan_pipeline_gemv((1, *shape), place)
    else:
        plan = plan_mesh_gemv((1, *shape), place, groups, method)
    k, n = plan.block[0], ceil_div(shape[0], place.cols)
    known: dict[str, Any] = {name: getattr(plan, name) for name in _FIELDS}
    known |= {"block": (k, n), "product_cycles": place.vector.pass_cycles(n, k)}
    sums = RowSumPlan(**known)
    return sums if plan.relayed is None else in_parts(sums, place)


def put(plan: RowSumPlan, memory: TileBlocks, x: Integers) -> None:
    """Put x (M, N) where the program expects it."""
    memory["x"][:] = cut(x, plan.cols, plan.rows).swapaxes(0, 1)
