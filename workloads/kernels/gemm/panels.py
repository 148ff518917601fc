"""Panels of K: how SUMMA and the all-gather product lay A and B on a grid that need not be square.

K is cut into lcm(rows, columns) panels. Tile (r, c) has block row r of A in the panels of column c,
and block column c of B in the panels of row r: each an equal share, in order.
"""

from tlm.program import Buffer
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.parts.blocks import cut
from workloads.kernels.parts.broadcast import Broadcast
from workloads.kernels.parts.line import Lines


def own_buffers(plan: GemmPlan) -> dict[str, Buffer]:
    """Buffers ``a.own.I`` and ``b.own.I`` of a tile's own panels."""
    return plan.buffers(
        tuple(f"a.own.{index}" for index in range(plan.panels // plan.cols)),
        tuple(f"b.own.{index}" for index in range(plan.panels // plan.rows)),
        (),
    )


def put_panels(plan: GemmPlan, memory: TileBlocks, a: Integers, b: Integers) -> None:
    """Put A (M, K) and B (K, N) into the tiles' own panels."""
    a_share, b_share = plan.panels // plan.cols, plan.panels // plan.rows
    blocks_a, blocks_b = cut(a, plan.rows, plan.panels), cut(b, plan.panels, plan.cols)
    for index in range(a_share):
        memory[f"a.own.{index}"][:] = blocks_a[:, index::a_share]
    for index in range(b_share):
        memory[f"b.own.{index}"][:] = blocks_b[index::b_share]


def spread_panel(
    plan: GemmPlan,
    matrix: str,
    panel: int,
    *,
    target: str,
    free: tuple[str, ...],
    there: str,
    takes: tuple[str, ...] = (),
) -> Broadcast:
    """A panel of A to all tiles of its row, or of B to all of its column."""
    across, lines = (plan.cols, plan.rows) if matrix == "a" else (plan.rows, plan.cols)
    owner, index = divmod(panel, plan.panels // across)
    return Broadcast(
        Lines("row" if matrix == "a" else "column", range(lines), across),
        owner,
        plan.method,
        plan.a_flits if matrix == "a" else plan.b_flits,
        source=f"{matrix}.own.{index}",
        target=target,
        free=free,
        there=there,
        takes=takes,
        label=matrix.upper(),
    )
