"""Transposed MeshGEMM, C = A B^T, without a transposition (WaferLLM, section 5.3).

A[M, K] and B[N, K] lie in the tiles' own order. In each of P steps every tile multiplies its block
of A with the block of B that it holds, while B moves one place along the interleaved rings of the
columns; the products of a row are summed into the tile of that block of C. All tiles of a row hold
the same block row of B, so the root is another tile of the row in every step. The network sums, or
the cores do: words stream inwards from both ends of the row, and the next step's follow them. The
project's own tiles stream part by part.

Within a tile a block of B lies transposed, K by N, as the matrix engine reads it. Two buffers for
blocks of B, two for products on their way.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Gemm, Operation, Program, Reduce, Relay, Roots, Send, Token, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from tlm.program.relays import relays_as_messages
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Ring
from workloads.kernels.parts.blocks import cut


def mesh_gemm_t(plan: GemmPlan) -> Program:
    """Program of C = A B^T, which is in buffer ``c``.

    Labels: ``B`` are moves of a block, ``C`` a block product and the sum of a row's.
    """
    there = Token(initial=1)
    tokens = {
        "b.work": there,
        "b.send": there,
        "b.worked.0": Token(),
        "b.sent.0": Token(),
        "b.worked.1": there,
        "b.sent.1": there,
        "part.there": Token(depth=2),
        "part.free": Token(initial=2, depth=2),
    }
    buffers = plan.buffers(("a",), ("b.0", "b.1"), ("part.0", "part.1", "c"))
    program = Program(plan.side, plan.side, tokens, lambda: _operations(plan), buffers)
    if plan.relayed is None:
        return program
    return relays_as_messages(program, plan.relayed.size, plan.relayed.add_cycles)


def put(plan: GemmPlan, memory: TileBlocks, a: Integers, b: Integers) -> None:
    """Put A (M, K) and B (N, K) where the program expects them."""
    memory["a"][:] = cut(a, plan.side, plan.side)
    padding = max(0, plan.side * plan.block[2] - len(b))  # where rows of C are whole words
    memory["b.0"][:] = cut(np.pad(b, ((0, padding), (0, 0))), plan.side, plan.side).swapaxes(2, 3)


def _operations(plan: GemmPlan) -> Iterator[Operation]:
    side = plan.side
    lines = range(side)
    everywhere = TileSet(lines, lines)
    ring = Ring.interleaved(side)
    stay, along = ring.neighbours(0), ring.neighbours(1)
    for step in range(side):
        here, other = step % 2, (step + 1) % 2
        yield Work(
            Engine.MATRIX,
            everywhere,
            plan.step_cycles,
            takes=("b.work", "part.free"),
            gives=(f"b.worked.{here}", "part.there"),
            task=Gemm("a", f"b.{here}", f"part.{here}"),
            label="C",
        )
        if step < side - 1:
            yield Send(
                everywhere,
                along,
                stay,
                plan.b_flits,
                takes=("b.send",),
                slots=(f"b.worked.{other}", f"b.sent.{other}"),
                gives=(f"b.sent.{here}",),
                arrivals=("b.work", "b.send"),
                source=f"b.{here}",
                target=f"b.{other}",
                label="B",
            )
        # The sum before this step's: it leaves behind the block that the next product waits for.
        if step > 0:
            yield _sum(plan, Roots(lines, ring.neighbours(1 - step)), f"part.{other}")
    last = side - 1
    yield _sum(plan, Roots(lines, ring.neighbours(-last)), f"part.{last % 2}")


def _sum(plan: GemmPlan, roots: Roots, source: str) -> Operation:
    """Products of every row go to its root, and add up on the way."""
    names: dict[str, Any] = {
        "takes": ("part.there",),
        "gives": ("part.free",),
        "source": source,
        "target": "c",
        "label": "C",
    }
    along = range(plan.side)
    if plan.relay_cycles is None and plan.relayed is None:
        return Reduce(roots, "row", along, plan.c_flits, **names)
    return Relay(roots, "row", along, plan.c_flits, stage_cycles=plan.relay_cycles or 1, **names)
