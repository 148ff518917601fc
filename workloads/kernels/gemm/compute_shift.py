"""The compute-shift loop that Cannon's method and MeshGEMM share.

The tiles of a row form a ring, and so do those of a column. K is cut into as many panels as rows
and columns have both as a divisor of (N_lcm, WaferLLM section 5.4). A tile has its part of those of
its row of A, and of its column of B; on a square grid one of each. In each step every tile
multiplies the first panels that it holds, both with the same K, and hands each on to the next tile
of its ring, as the last one there. Panel s lies in buffer s mod S, S being one more than a tile
holds of its matrix: one comes in while the one before is worked on.

On a square grid the tile at places (i, j) begins with the blocks A(i, k) and B(k, j), k = i + j.

A starts in the tiles' own order and is aligned on the machine: row i moves its panels back, or
forward if that is not longer, by one panel in each of half as many lock steps as there are panels
at most; where they start is so chosen that the first ones end in buffer 0. B is put in place,
skewed, by the host (as in WaferLLM's code).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Gemm, Indices, Operation, Program, Send, Token, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Rings
from workloads.kernels.parts.blocks import cut
from workloads.kernels.parts.line import even_runs


def compute_shift(plan: GemmPlan, rings: Rings, *, align: bool = True) -> Program:
    """Program of C = A B by compute-shift steps; the product is in buffer ``c``.

    Labels: ``A`` and ``B`` are moves of a block into the other buffer, ``C`` a block product.

    Args:
        plan: Blocks and cycles.
        rings: How the rings lie on rows and columns.
        align: Align A first; without it A comes skewed by the host too.
    """
    held_a, held_b = plan.held
    tokens = _loop_tokens("a", held_a, aligned=not align) | _loop_tokens("b", held_b, aligned=True)
    if align:
        block = Token(initial=held_a, depth=held_a)
        tokens |= {"align.block": block, "align.free": Token(initial=1)}
        if plan.align_cycles:
            tokens["align.ready"] = Token()
    a, b = (
        tuple(f"{matrix}.{index}" for index in range(held + 1))
        for matrix, held in zip("ab", plan.held, strict=True)
    )
    buffers = plan.buffers(a, b, ("c",))
    return Program(plan.rows, plan.cols, tokens, lambda: _operations(plan, rings, align), buffers)


def place_skewed(
    plan: GemmPlan,
    rings: Rings,
    memory: TileBlocks,
    a: Integers,
    b: Integers,
    *,
    align: bool = True,
) -> None:
    """Put A (M, K) and B (K, N) where the program expects them."""
    held_a, held_b = plan.held
    blocks_a, blocks_b = cut(a, plan.rows, plan.panels), cut(b, plan.panels, plan.cols)
    rows, cols = np.arange(plan.rows), np.arange(plan.cols)
    # Panels are numbered along a row's ring; a tile's own are its part of A in the tiles' order.
    places = np.arange(plan.panels)
    number = np.argsort(rings.across.position)[places // held_a] * held_a + places % held_a
    own = rings.across.position * held_a + held_a - 1
    first = np.add.outer(rings.down.position * held_b, own)
    for index in range(held_b):
        memory[f"b.{index}"][:] = blocks_b[number[(first - index) % plan.panels], cols]
    if not align:
        for index in range(held_a):
            panels = number[(first - index) % plan.panels]
            memory[f"a.{index}"][:] = blocks_a[rows[:, None], panels]
        return
    heads = alignment(plan, rings).heads(0)
    for head in range(held_a + 1):
        lines = np.flatnonzero(heads == head)
        for index in range(held_a):
            buffer = memory[f"a.{(head + index) % (held_a + 1)}"]
            buffer[lines] = blocks_a[lines[:, None], number[own - index]]


class Alignment(NamedTuple):
    """How A is aligned.

    Attributes:
        back: Shape (rows,): whether a row moves its panels back.
        steps: Shape (rows,): lock steps in which it does.
        buffers: Of a tile for panels of A.
    """

    back: NDArray[np.bool_]
    steps: Indices
    buffers: int

    def heads(self, step: int) -> Indices:
        """Shape (rows,): in which buffer a row's first panel lies before a lock step."""
        left = np.where(self.back, self.steps - step, step - self.steps)
        heads: Indices = left % self.buffers
        return heads


def alignment(plan: GemmPlan, rings: Rings) -> Alignment:
    """Rows move as many panels as the rows before them on the column's ring have."""
    held_a, held_b = plan.held
    far = rings.down.position * held_b
    steps = np.minimum(far, plan.panels - far)
    return Alignment(far < plan.panels - far, steps, held_a + 1)


def _loop_tokens(matrix: str, held: int, *, aligned: bool) -> dict[str, Token]:
    """A block is there to work on and to send; a buffer is free once it is worked on and sent."""
    there = Token(initial=held * aligned, depth=held)
    tokens = {f"{matrix}.work": there, f"{matrix}.send": there}
    for buffer in range(held + 1):
        free = Token(initial=int(aligned and buffer == held))
        tokens |= {f"{matrix}.worked.{buffer}": free, f"{matrix}.sent.{buffer}": free}
    return tokens


def _operations(plan: GemmPlan, rings: Rings, align: bool) -> Iterator[Operation]:
    if align:
        yield from _alignment(plan, rings)
    held_a, held_b = plan.held
    everywhere = TileSet(range(plan.rows), range(plan.cols))
    moves = (
        ("a", held_a, np.arange(plan.rows), rings.across.neighbours(1), plan.a_flits),
        ("b", held_b, rings.down.neighbours(1), np.arange(plan.cols), plan.b_flits),
    )
    for step in range(plan.panels):
        here = {matrix: step % (held + 1) for matrix, held, *_ in moves}
        yield Work(
            Engine.MATRIX,
            everywhere,
            plan.step_cycles,
            takes=("a.work", "b.work"),
            gives=tuple(f"{matrix}.worked.{buffer}" for matrix, buffer in here.items()),
            task=Gemm(f"a.{here['a']}", f"b.{here['b']}", "c", accumulate=step > 0),
            label="C",
        )
        for matrix, held, to_rows, to_cols, flits in moves:
            if step + held >= plan.panels:  # nobody will work on it
                continue
            other = (step + held) % (held + 1)
            yield Send(
                everywhere,
                to_rows,
                to_cols,
                flits,
                takes=(f"{matrix}.send",),
                slots=(f"{matrix}.worked.{other}", f"{matrix}.sent.{other}"),
                gives=(f"{matrix}.sent.{here[matrix]}",),
                arrivals=(f"{matrix}.work", f"{matrix}.send"),
                source=f"{matrix}.{here[matrix]}",
                target=f"{matrix}.{other}",
                label=matrix.upper(),
            )


def _alignment(plan: GemmPlan, rings: Rings) -> Iterator[Operation]:
    """Lock steps of A: in step s move the rows that have more than s places to go."""
    held, aligned = plan.held[0], alignment(plan, rings)
    buffers, cols = held + 1, range(plan.cols)
    for step in range(int(aligned.steps.max())):
        heads = aligned.heads(step)
        for direction in (-1, 1):
            for head in range(buffers):
                moves = (aligned.back == (direction < 0)) & (aligned.steps > step)
                # Back goes the last panel, which becomes the first; forward the other way round.
                leaves = (head + held - 1) % buffers if direction < 0 else head
                for rows in even_runs(np.flatnonzero(moves & (heads == head)).tolist()):
                    yield from _lock_step(
                        plan,
                        TileSet(rows, cols),
                        rings.across.neighbours(direction),
                        f"a.{leaves}",
                        f"a.{(head + held) % buffers}",
                    )
    # The first panel may be the last one that comes: all are there before any is worked on.
    everywhere, ready = TileSet(range(plan.rows), cols), ("a.work", "a.send")
    for index in range(2 * held - 1):
        takes = ("align.block",) if index < held else ()
        gives = ready if index >= held - 1 else ()
        if index == held - 1:
            takes, gives = (*takes, "align.free"), (*gives, f"a.worked.{held}", f"a.sent.{held}")
        yield Work(Engine.CONTROL, everywhere, 0, takes=takes, gives=gives, label="aligned")


def _lock_step(
    plan: GemmPlan, tiles: TileSet, to_cols: Indices, source: str, target: str
) -> Iterator[Operation]:
    """Some rows move a panel of A by one tile."""
    ready = "align.block"
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
        np.array(tiles.rows),
        to_cols,
        plan.a_flits,
        takes=(ready,),
        slots=("align.free",),
        gives=("align.free",),
        arrivals=("align.block",),
        source=source,
        target=target,
        label="A",
    )
