"""SUMMA on a mesh: step by step the panels of A are multicast along the rows, those of B down.

On a square grid, in step k column k multicasts its blocks of A, and row k those of B.

A tile has two receive buffers per matrix, as many as the compute-shift kernels have, so that what
differs is how far blocks travel; or one, which doubles its memory (WaferLLM, section 5.1). With one
nothing is under way while a tile multiplies. Panels of A and B go at once, or serially: those of B
when those of A have come. The roots receive like every other tile of their row or column.

Source: R. A. van de Geijn and J. Watts, "SUMMA: scalable universal matrix multiplication
algorithm", 1997; mapped to a mesh as in WaferLLM, section 5.1.
"""

from collections.abc import Iterator

from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Gemm, Operation, Program, Token, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.panels import own_buffers, put_panels, spread_panel
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.parts.broadcast import Broadcast


def summa(plan: GemmPlan) -> Program:
    """Program of SUMMA, the product in buffer ``c``.

    Labels: ``A`` and ``B`` are the multicasts, ``C`` a block product.
    """
    numbers = range(plan.receive_buffers)
    tokens = {
        f"{matrix}.{what}.{buffer}": Token(initial=int(what == "free"))
        for matrix in "ab"
        for what in ("there", "free")
        for buffer in numbers
    }
    if plan.serial:
        tokens["b.turn"] = Token()
    for matrix in "ab":
        for step in numbers:
            tokens |= _panel(plan, matrix, step).tokens()
    a, b = (tuple(f"{matrix}.{buffer}" for buffer in numbers) for matrix in "ab")
    buffers = own_buffers(plan) | plan.buffers(a, b, ("c",))
    return Program(plan.rows, plan.cols, tokens, lambda: _operations(plan), buffers)


def put(plan: GemmPlan, memory: TileBlocks, a: Integers, b: Integers) -> None:
    """Put A (M, K) and B (K, N) where the program expects them."""
    put_panels(plan, memory, a, b)


def _panel(plan: GemmPlan, matrix: str, step: int) -> Broadcast:
    buffer = step % plan.receive_buffers
    free, there = (f"{matrix}.free.{buffer}",), f"{matrix}.there.{buffer}"
    takes = ("b.turn",) if plan.serial and matrix == "b" else ()
    target = f"{matrix}.{buffer}"
    return spread_panel(plan, matrix, step, target=target, free=free, there=there, takes=takes)


def _operations(plan: GemmPlan) -> Iterator[Operation]:
    everywhere = TileSet(range(plan.rows), range(plan.cols))
    for step in range(plan.panels):
        buffer = step % plan.receive_buffers
        yield from _panel(plan, "a", step).operations()
        if plan.serial:
            root = step * plan.rows // plan.panels
            yield Work(
                Engine.CONTROL,
                TileSet(range(root, root + 1), range(plan.cols)),
                0,
                takes=(f"a.there.{buffer}",),
                gives=(f"a.there.{buffer}", "b.turn"),
                label="B",
            )
        yield from _panel(plan, "b", step).operations()
        yield Work(
            Engine.MATRIX,
            everywhere,
            plan.step_cycles,
            takes=(f"a.there.{buffer}", f"b.there.{buffer}"),
            gives=(f"a.free.{buffer}", f"b.free.{buffer}"),
            task=Gemm(f"a.{buffer}", f"b.{buffer}", "c", accumulate=step > 0),
            label="C",
        )
