"""The partitioned product as a program: B moves along columns of cores, sums around their rows.

In each round a core makes a product of each part of its chunk of B. The part that it makes first
goes around the row at once, and every core adds what it has made of it meanwhile. After C - 1 moves
a core has one part of the row's sums; C - 1 more bring all of them to all. So products, sums and
the next chunk of B are under way together.

The host puts parts of B in place so that part q of the core in column j is part q + j of a chunk;
part q of its sums is the same one. In off-chip memory they lie in the order of the core's products,
which begin with the part that comes first.

Source of the all-reduction: P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for
clusters of workstations", 2009.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program import (
    Buffer,
    Engine,
    Gemm,
    Load,
    Operation,
    Program,
    Send,
    Token,
    Vector,
    Work,
)
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.partition_plan import PartitionPlan
from workloads.kernels.parts.blocks import cut
from workloads.kernels.parts.routes import sends_of
from workloads.machine.order import Moves, Order


def partition_gemm(plan: PartitionPlan) -> Program:
    """Program of the product; what each core has of it says `result`.

    Labels: ``B`` loads a chunk or moves it, ``C`` is a product, ``sum`` adds parts or moves one.
    """
    parts = plan.parts
    there = 0 if plan.place.offchip is not None else parts
    tokens = {"b.work": Token(initial=there, depth=2 * parts)}
    # Of what is handed on a core may have the next before its own send, as these stand in turn.
    if plan.rounds > 1:
        tokens["b.send"] = Token(initial=there, depth=2 * parts)
        for index in range(2):
            free = Token(initial=index * parts, depth=parts)
            tokens |= {f"b.worked.{index}": free, f"b.sent.{index}": free}
    if parts > 1:
        tokens |= {"ready": Token(depth=2), "own": Token(depth=parts - 1)}
        for index in range(2):
            tokens |= {f"in.there.{index}": Token(), f"in.free.{index}": Token(initial=1)}
        if not plan.scattered:
            tokens["sent"] = Token(depth=parts - 1)
    rows, cols = plan.place.rows, plan.place.cols
    return Program(rows, cols, tokens, lambda: _operations(plan), _buffers(plan))


def put(plan: PartitionPlan, memory: TileBlocks, a: Integers, b: Integers) -> None:
    """Put A (M, K) and B (K, N) where the program expects them."""
    rows, parts = plan.cores
    _, k, n = plan.block
    blocks_a = cut(a, rows, parts)
    blocks_b = cut(b, parts, plan.rounds * parts, width=n)
    first = "b.0" if plan.place.offchip is None else "b.own"
    for number, tile in enumerate(plan.order):
        i, j = divmod(number, parts)
        memory["a"][tile] = blocks_a[i, j]
        chunk = i % plan.rounds * parts
        for part in range(parts):
            memory[f"{first}.{part}"][tile] = blocks_b[j, chunk + (j + part) % parts]


def result(plan: PartitionPlan, memory: TileBlocks) -> Integers:
    """Shape (R, C, padded M / R, padded N): the rows of C as each core has them.

    Of scattered sums a core has one part of each chunk; the others are zeros.
    """
    rows, parts = plan.cores
    m, _, n = plan.block
    found = np.zeros((rows, parts, m, plan.rounds * parts * n), dtype=np.int64)
    for number, tile in enumerate(plan.order):
        i, j = divmod(number, parts)
        for turn in range(plan.rounds):
            chunk = (i - turn) % plan.rounds * parts
            for part in [1 % parts] if plan.scattered else range(parts):
                first = n * (chunk + (j + part) % parts)
                found[i, j, :, first : first + n] = memory[f"c.{turn}.{part}"][tile]
    return found


def _buffers(plan: PartitionPlan) -> dict[str, Buffer]:
    m, k, n = plan.block
    bits, sum_bits, parts = plan.place.element_bits, plan.place.sum_bits, plan.parts
    buffers = {"a": Buffer(m, k, bits)}
    for index in range(min(2, plan.rounds)):
        buffers |= {f"b.{index}.{part}": Buffer(k, n, bits) for part in range(parts)}
    if plan.place.offchip is not None:
        own = Buffer(k, n, bits, offchip=True)
        buffers |= {f"b.own.{part}": own for part in range(parts)}
    names = [f"c.{turn}.{part}" for turn in range(plan.rounds) for part in range(parts)]
    received = ["in.0", "in.1"] if parts > 1 else []
    return buffers | {name: Buffer(m, n, sum_bits) for name in (*names, *received)}


def _operations(plan: PartitionPlan) -> Iterator[Operation]:
    if plan.place.offchip is not None:
        yield from _load_b(plan)
    for turn in range(plan.rounds):
        yield from _products(plan, turn)
        if turn == 0:
            for step in range(plan.parts):
                yield from _move_b(plan, 0, step)
        # A part of B goes on as soon as the product before has left room: no sum holds it up.
        for step in range(plan.parts):
            yield from _move_b(plan, turn + 1, step)
            if step < plan.parts - 1:
                yield from _reduce(plan, turn, step)
        if not plan.scattered:
            yield from _all_gather(plan, turn)


def _load_b(plan: PartitionPlan) -> Iterator[Operation]:
    """Every core loads its chunk, part by part in the order of its products."""
    for step in range(plan.parts):
        part = -step % plan.parts
        yield Load(
            _everywhere(plan),
            plan.b_flits,
            arrivals=("b.work", "b.send") if plan.rounds > 1 else ("b.work",),
            source=f"b.own.{part}",
            target=f"b.0.{part}",
            label="B",
        )


def _products(plan: PartitionPlan, turn: int) -> Iterator[Operation]:
    here, parts = turn % 2, plan.parts
    for step in range(parts):
        gives = (f"b.worked.{here}",) if plan.rounds > 1 else ()
        if parts > 1:
            gives = (*gives, "own" if step else "ready")
        part = -step % parts
        yield Work(
            Engine.MATRIX,
            _everywhere(plan),
            plan.product_cycles,
            takes=("b.work",),
            gives=gives,
            task=Gemm("a", f"b.{here}.{part}", f"c.{turn}.{part}"),
            label="C",
        )


def _move_b(plan: PartitionPlan, turn: int, step: int) -> Iterator[Operation]:
    """Every core sends what it multiplies in a step of a round to the next one of its column."""
    if turn + 1 >= plan.rounds:
        return
    here, there, part = turn % 2, (turn + 1) % 2, -step % plan.parts
    yield from _sends(
        plan,
        (1, 0),
        plan.b_flits,
        takes=("b.send",),
        slots=(f"b.worked.{there}", f"b.sent.{there}"),
        gives=(f"b.sent.{here}",),
        arrivals=("b.work", "b.send"),
        source=f"b.{here}.{part}",
        target=f"b.{there}.{part}",
        label="B",
    )


def _reduce(plan: PartitionPlan, turn: int, step: int) -> Iterator[Operation]:
    """A part goes on around the row, and grows."""
    parts = plan.parts
    index, part, following = step % 2, -step % parts, -(step + 1) % parts
    yield from _sends(
        plan,
        (0, 1),
        plan.c_flits,
        takes=("ready",),
        slots=(f"in.free.{index}",),
        gives=() if plan.scattered else ("sent",),
        arrivals=(f"in.there.{index}",),
        source=f"c.{turn}.{part}",
        target=f"in.{index}",
        label="sum",
    )
    last = plan.scattered and step == parts - 2
    yield Work(
        Engine.VECTOR,
        _everywhere(plan),
        plan.combine_cycles,
        takes=(f"in.there.{index}", "own"),
        gives=(f"in.free.{index}",) if last else (f"in.free.{index}", "ready"),
        task=Vector("add", f"c.{turn}.{following}", f"c.{turn}.{following}", b=f"in.{index}"),
        label="sum",
    )


def _all_gather(plan: PartitionPlan, turn: int) -> Iterator[Operation]:
    """Whole parts go around the row, each over what the core has passed on of it before."""
    parts = plan.parts
    for step in range(parts - 1):
        yield from _sends(
            plan,
            (0, 1),
            plan.c_flits,
            takes=("ready",),
            slots=("sent",),
            arrivals=("ready",) if step < parts - 2 else (),
            source=f"c.{turn}.{(1 - step) % parts}",
            target=f"c.{turn}.{-step % parts}",
            label="sum",
        )


def _sends(
    plan: PartitionPlan, step: tuple[int, int], flits: int, **names: Any
) -> Iterator[Operation]:
    """Every core sends to the one some rows and columns of cores further, around the end."""
    for tiles, to_rows, to_cols in sends_of(moves_of(plan.order, plan.cores, step)):
        yield Send(tiles, to_rows, to_cols, flits, **names)


@lru_cache(64)  # loops send the same way again and again
def moves_of(order: Order, cores: tuple[int, int], step: tuple[int, int]) -> Moves:
    """Every core and the one some rows and columns of cores further, around the end."""
    takers = neighbours(cores, step)
    return tuple((tile, order[taker]) for tile, taker in zip(order, takers, strict=True))


def neighbours(cores: tuple[int, int], step: tuple[int, int]) -> list[int]:
    """Of each core in the order, the one some rows and columns of cores further."""
    rows, cols = cores
    return [
        (i + step[0]) % rows * cols + (j + step[1]) % cols for i in range(rows) for j in range(cols)
    ]


def _everywhere(plan: PartitionPlan) -> TileSet:
    return TileSet(range(plan.place.rows), range(plan.place.cols))
