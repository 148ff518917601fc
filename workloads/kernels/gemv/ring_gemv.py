"""GEMV with a ring all-reduction: parts of the sums go around, growing, and around again, complete.

A column is an interleaved ring of P tiles, and a tile's partial sums are cut into P parts: part j
of the tile at place i belongs to part i + j of the column's sums (modulo P; the host orders the
columns of B so). In each of P - 1 shifts a tile passes a part on to its neighbour, which adds it to
its own; then every tile has a whole part, and P - 1 more shifts bring all parts to all tiles. A
shift goes over at most two hops (WaferLLM, section 6.1).

Where there are fewer flits of sums than tiles, each flit is a part. Parts lie in every tile in
their order then, and in a shift only the tiles that have one pass it on.

Source of the method: P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for
clusters of workstations", 2009.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Engine, Indices, Operation, Program, Send, Token, Vector, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.ring import Ring
from workloads.kernels.gemv.plan import GemvPlan
from workloads.kernels.parts.blocks import cut


def ring_gemv(plan: GemvPlan) -> Program:
    """Program of the product; what a tile has of it says `result`."""
    count = plan.parts
    width = plan.block[1] // count
    tokens = {
        "own": Token(),
        "ready": Token(),
        "sent": Token(depth=max(count - 1, 1)),
        "whole": Token(),
        **{f"in.there.{index}": Token() for index in range(2)},
        **{f"in.free.{index}": Token(initial=1) for index in range(2)},
    }
    part = Buffer(1, width, plan.sum_bits)
    buffers = plan.buffers | {f"in.{index}": part for index in range(2)}
    for index in range(count):
        buffers[f"c.{index}"] = Buffer(1, width, plan.sum_bits, within="c", offset=index * width)
    operations = _operations if count == plan.rows else _few_parts
    return Program(plan.rows, plan.cols, tokens, lambda: operations(plan), buffers)


def put(plan: GemvPlan, memory: TileBlocks, a: Integers, b: Integers) -> None:
    """Put a (1, K) and B (K, N) where the program expects them."""
    memory["a"][:] = cut(a, 1, plan.rows).swapaxes(0, 1)
    blocks = cut(b, plan.rows, plan.cols, width=plan.block[1])
    memory["b"][:] = np.take_along_axis(blocks, _order(plan)[:, None, None, :], axis=3)


def result(plan: GemvPlan, memory: TileBlocks) -> Integers:
    """Shape (rows, padded N): the product as each row of tiles has it."""
    back = np.argsort(_order(plan), axis=1)
    in_order: Integers = np.take_along_axis(memory["c"], back[:, None, None, :], axis=3)
    rows: Integers = in_order.reshape(plan.rows, -1)
    return rows


def _order(plan: GemvPlan) -> Indices:
    """Shape (rows, n): for each row of tiles, which columns of a block stand where."""
    count = plan.parts
    if count < plan.rows:
        return np.tile(np.arange(plan.block[1]), (plan.rows, 1))
    parts = np.arange(plan.block[1]).reshape(count, -1)
    place = Ring.interleaved(plan.rows).position
    order: Indices = parts[np.add.outer(place, np.arange(count)) % count]
    return order.reshape(plan.rows, -1)


def _operations(plan: GemvPlan) -> Iterator[Operation]:
    count = plan.parts
    yield plan.product(("own", "ready"))
    for shift in range(count - 1):
        index = shift % 2
        here, there = -shift % count, -(shift + 1) % count
        yield _shift(
            plan,
            f"c.{here}",
            f"in.{index}",
            slots=(f"in.free.{index}",),
            gives=("sent",),
            arrivals=(f"in.there.{index}",),
        )
        yield Work(
            Engine.VECTOR,
            plan.everywhere,
            plan.combine_cycles,
            takes=(f"in.there.{index}", *(("own",) if shift == 0 else ())),
            gives=(f"in.free.{index}", "ready"),
            task=Vector("add", f"c.{there}", f"c.{there}", b=f"in.{index}"),
            label="sum",
        )
    for shift in range(count - 1):
        here, there = (1 - shift) % count, -shift % count
        # A part may be overwritten when the tile has passed on what it had of it.
        yield _shift(
            plan, f"c.{here}", f"c.{there}", slots=("sent",), gives=(), arrivals=("ready",)
        )


def _few_parts(plan: GemvPlan) -> Iterator[Operation]:
    """The same where in each shift some tiles alone have a part to pass on.

    The tile at place i begins with part i. What it had of a part it has passed on long before the
    whole one comes.
    """
    yield plan.product(("ready",))
    # A tile passes a part on before it takes the one before in.
    parts, shifts = range(plan.parts)[::-1], range(plan.rows - 1)
    tile_at = np.argsort(Ring.interleaved(plan.rows).position)
    for shift in shifts:
        index = shift % 2
        for part in parts:
            tile, taker = tile_at[(part + shift + np.arange(2)) % plan.rows].tolist()
            yield _pass_on(
                plan,
                (tile, taker),
                f"c.{part}",
                f"in.{index}",
                takes=("ready",),
                slots=(f"in.free.{index}",),
                gives=("ready",),
                arrivals=(f"in.there.{index}",),
            )
            yield Work(
                Engine.VECTOR,
                TileSet(range(taker, taker + 1), range(plan.cols)),
                plan.combine_cycles,
                takes=("ready", f"in.there.{index}"),
                gives=("ready", f"in.free.{index}"),
                task=Vector("add", f"c.{part}", f"c.{part}", b=f"in.{index}"),
                label="sum",
            )
    for shift in shifts:
        ready = ("whole",) if shift else ("ready",)
        for part in parts:
            tiles = tile_at[(part + shift - 1 + np.arange(2)) % plan.rows].tolist()
            yield _pass_on(
                plan,
                tiles,
                f"c.{part}",
                f"c.{part}",
                takes=ready,
                gives=() if shift else ready,
                arrivals=("whole",),
            )


def _pass_on(
    plan: GemvPlan, tiles: Sequence[int], source: str, target: str, **tokens: tuple[str, ...]
) -> Send:
    """On every column a tile sends a part to another."""
    tile, taker = tiles
    return Send(
        TileSet(range(tile, tile + 1), range(plan.cols)),
        np.array([taker]),
        np.arange(plan.cols),
        plan.c_flits,
        source=source,
        target=target,
        label="sum",
        **tokens,
    )


def _shift(
    plan: GemvPlan,
    source: str,
    target: str,
    *,
    slots: tuple[str, ...],
    gives: tuple[str, ...],
    arrivals: tuple[str, ...],
) -> Send:
    """Every tile sends a part to the next on its column's ring."""
    return Send(
        plan.everywhere,
        Ring.interleaved(plan.rows).neighbours(1),
        np.arange(plan.cols),
        plan.c_flits,
        takes=("ready",),
        slots=slots,
        gives=gives,
        arrivals=arrivals,
        source=source,
        target=target,
        label="sum",
    )
