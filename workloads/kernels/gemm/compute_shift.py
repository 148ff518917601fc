"""The compute-shift loop that Cannon's method and MeshGEMM share.

The tiles of a row form a ring, and so do those of a column. The tile at places (i, j) begins with
the blocks A(i, k) and B(k, j), k = i + j. In each of P steps every tile multiplies the blocks it
holds, while A moves one place along the rows' rings and B along the columns'. Two buffers per
matrix and tile: block s lies in buffer s mod 2, and comes in while block s - 1 is worked on.

A starts in the tiles' own order and is aligned on the machine: row i moves its blocks i places
back, or P - i places forward if that is not longer, in at most floor(P/2) lock steps, each into the
other buffer; where they start is so chosen that they end in buffer 0. B is put in place, skewed,
by the host (as in WaferLLM's code).
"""

from collections.abc import Iterator

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Gemm, Indices, Operation, Program, Send, Token, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Ring
from workloads.kernels.parts.blocks import cut


def compute_shift(plan: GemmPlan, ring: Ring, *, align: bool = True) -> Program:
    """Program of C = A B by P compute-shift steps; the product is in buffer ``c``.

    Labels: ``A`` and ``B`` are moves of a block into the other buffer, ``C`` a block product.

    Args:
        plan: Blocks and cycles.
        ring: How the ring lies on each row and on each column.
        align: Align A first; without it A comes skewed by the host too.
    """
    tokens = _loop_tokens("a", aligned=not align) | _loop_tokens("b", aligned=True)
    if align:
        tokens |= {"align.block": Token(initial=1), "align.free": Token(initial=1)}
        if plan.align_cycles:
            tokens["align.ready"] = Token()
    buffers = plan.buffers(("a.0", "a.1"), ("b.0", "b.1"), ("c",))
    return Program(plan.side, plan.side, tokens, lambda: _operations(plan, ring, align), buffers)


def place_skewed(
    plan: GemmPlan, ring: Ring, memory: TileBlocks, a: Integers, b: Integers, *, align: bool = True
) -> None:
    """Put A (M, K) and B (K, N) where the program expects them."""
    side = plan.side
    blocks_a, blocks_b = cut(a, side, side), cut(b, side, side)
    tile_at = np.argsort(ring.position)
    lines = np.arange(side)
    inner = tile_at[np.add.outer(ring.position, ring.position) % side]
    memory["b.0"][:] = blocks_b[inner, lines[None, :]]
    if not align:
        memory["a.0"][:] = blocks_a[lines[:, None], inner]
        return
    odd = alignment_steps(ring) % 2 == 1
    memory["a.0"][~odd], memory["a.1"][odd] = blocks_a[~odd], blocks_a[odd]


def alignment_steps(ring: Ring) -> Indices:
    """Shape (P,): lock steps in which the blocks of each row are aligned."""
    return np.minimum(ring.position, ring.size - ring.position)


def _loop_tokens(matrix: str, *, aligned: bool) -> dict[str, Token]:
    """A block is there to work on and to send; a buffer is free once it is worked on and sent."""
    there = Token(initial=int(aligned))
    return {
        f"{matrix}.work": there,
        f"{matrix}.send": there,
        f"{matrix}.worked.0": Token(),
        f"{matrix}.sent.0": Token(),
        f"{matrix}.worked.1": there,
        f"{matrix}.sent.1": there,
    }


def _operations(plan: GemmPlan, ring: Ring, align: bool) -> Iterator[Operation]:
    if align:
        yield from _alignment(plan, ring)
    side = plan.side
    everywhere = TileSet(range(side), range(side))
    stay, along = np.arange(side), ring.neighbours(1)
    for step in range(side):
        here, other = step % 2, (step + 1) % 2
        yield Work(
            Engine.MATRIX,
            everywhere,
            plan.step_cycles,
            takes=("a.work", "b.work"),
            gives=(f"a.worked.{here}", f"b.worked.{here}"),
            task=Gemm(f"a.{here}", f"b.{here}", "c", accumulate=step > 0),
            label="C",
        )
        if step == side - 1:
            return
        for matrix, to_rows, to_cols, flits in (
            ("a", stay, along, plan.a_flits),
            ("b", along, stay, plan.b_flits),
        ):
            yield Send(
                everywhere,
                to_rows,
                to_cols,
                flits,
                takes=(f"{matrix}.send",),
                slots=(f"{matrix}.worked.{other}", f"{matrix}.sent.{other}"),
                gives=(f"{matrix}.sent.{here}",),
                arrivals=(f"{matrix}.work", f"{matrix}.send"),
                source=f"{matrix}.{here}",
                target=f"{matrix}.{other}",
                label=matrix.upper(),
            )


def _alignment(plan: GemmPlan, ring: Ring) -> Iterator[Operation]:
    """Lock steps of A: in step s move the rows that have more than s places to go."""
    side = plan.side
    back = ring.position < side - ring.position
    steps = alignment_steps(ring)
    for step in range(side // 2):
        for direction, buffer in ((-1, 0), (-1, 1), (1, 0), (1, 1)):
            moves = (back == (direction < 0)) & (steps > step) & ((steps - step) % 2 == buffer)
            rows = np.flatnonzero(moves)
            if not len(rows):
                continue
            tiles, ready = TileSet(_as_range(rows), range(side)), "align.block"
            if plan.align_cycles:
                ready = "align.ready"
                yield Work(
                    Engine.CONTROL,
                    tiles,
                    plan.align_cycles,
                    takes=("align.block",),
                    gives=(ready,),
                    label="A",
                )
            yield Send(
                tiles,
                rows,
                ring.neighbours(direction),
                plan.a_flits,
                takes=(ready,),
                slots=("align.free",),
                gives=("align.free",),
                arrivals=("align.block",),
                source=f"a.{buffer}",
                target=f"a.{1 - buffer}",
                label="A",
            )
    yield Work(
        Engine.CONTROL,
        TileSet(range(side), range(side)),
        0,
        takes=("align.block", "align.free"),
        gives=("a.work", "a.send", "a.worked.1", "a.sent.1"),
        label="aligned",
    )


def _as_range(indices: Indices) -> range:
    """Evenly spaced rows as a range: rings move every second or fourth row of a part."""
    step = int(indices[1] - indices[0]) if len(indices) > 1 else 1
    return range(int(indices[0]), int(indices[-1]) + 1, step)
