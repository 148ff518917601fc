"""All-gather GEMM: every tile gets all blocks of its row of A and of its column of B first.

All tiles multicast their own panels at once; a tile multiplies panel after panel as they come. It
has a buffer for each, so that nothing waits for room: what SUMMA's two buffers save is what this
needs of memory.

Source: the all-gather product that WaferLLM, section 5.1, compares MeshGEMM with.
"""

from collections.abc import Iterator

from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Gemm, Operation, Program, Token, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.panels import own_buffers, put_panels, spread_panel
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.parts.broadcast import Broadcast


def allgather_gemm(plan: GemmPlan) -> Program:
    """Program of the product, which is in buffer ``c``; labels as those of SUMMA."""
    tokens = {f"{matrix}.there.{panel}": Token() for matrix in "ab" for panel in range(plan.panels)}
    for matrix in "ab":
        for panel in range(plan.panels):
            tokens |= _panel(plan, matrix, panel).tokens()
    gathered = [tuple(f"{matrix}.{panel}" for panel in range(plan.panels)) for matrix in "ab"]
    buffers = own_buffers(plan) | plan.buffers(gathered[0], gathered[1], ("c",))
    return Program(plan.rows, plan.cols, tokens, lambda: _operations(plan), buffers)


def put(plan: GemmPlan, memory: TileBlocks, a: Integers, b: Integers) -> None:
    """Put A (M, K) and B (K, N) where the program expects them."""
    put_panels(plan, memory, a, b)


def _panel(plan: GemmPlan, matrix: str, panel: int) -> Broadcast:
    there = f"{matrix}.there.{panel}"
    return spread_panel(plan, matrix, panel, target=f"{matrix}.{panel}", free=(), there=there)


def _operations(plan: GemmPlan) -> Iterator[Operation]:
    for panel in range(plan.panels):
        for matrix in "ab":
            yield from _panel(plan, matrix, panel).operations()
    everywhere = TileSet(range(plan.rows), range(plan.cols))
    for panel in range(plan.panels):
        yield Work(
            Engine.MATRIX,
            everywhere,
            plan.step_cycles,
            takes=(f"a.there.{panel}", f"b.there.{panel}"),
            task=Gemm(f"a.{panel}", f"b.{panel}", "c", accumulate=panel > 0),
            label="C",
        )
