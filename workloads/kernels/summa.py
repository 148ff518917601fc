"""SUMMA on a mesh: in step k column k multicasts its blocks of A along the rows, row k those of B.

Two receive buffers per matrix and tile, as many as the compute-shift kernels have, so that what
differs is how far blocks travel. The roots receive like every other tile of their row or column.

Source: R. A. van de Geijn and J. Watts, "SUMMA: scalable universal matrix multiplication
algorithm", 1997; mapped to a mesh as in WaferLLM, section 5.1.
"""

from collections.abc import Iterator

from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Operation, Program, Token, Work
from workloads.kernels.gemm import GemmPlan


def summa(plan: GemmPlan) -> Program:
    """Program of SUMMA; labels ``A`` and ``B`` are the multicasts, ``C`` a block product."""
    tokens = {
        f"{matrix}.{what}.{buffer}": Token(initial=int(what == "free"))
        for matrix in "ab"
        for what in ("there", "free")
        for buffer in (0, 1)
    }
    return Program(plan.side, plan.side, tokens, lambda: _operations(plan))


def _operations(plan: GemmPlan) -> Iterator[Operation]:
    side = plan.side
    lines = range(side)
    for step in lines:
        buffer = step % 2
        root = range(step, step + 1)
        yield Multicast(
            TileSet(lines, root),
            "row",
            lines,
            plan.a_flits,
            slots=(f"a.free.{buffer}",),
            arrivals=(f"a.there.{buffer}",),
            label="A",
        )
        yield Multicast(
            TileSet(root, lines),
            "column",
            lines,
            plan.b_flits,
            slots=(f"b.free.{buffer}",),
            arrivals=(f"b.there.{buffer}",),
            label="B",
        )
        yield Work(
            Engine.MATRIX,
            TileSet(lines, lines),
            plan.step_cycles,
            takes=(f"a.there.{buffer}", f"b.there.{buffer}"),
            gives=(f"a.free.{buffer}", f"b.free.{buffer}"),
            label="C",
        )
