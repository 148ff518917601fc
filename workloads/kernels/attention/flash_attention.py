"""FlashAttention on tiles: every tile loads its own keys and values, and no tile shares a load.

That is what FlatAttention's multicasts save. ``flash-attention-2`` has one block under way at a
time, ``flash-attention-3`` two: the product of the next block's scores hides the softmax of this
one. Their blocks are square; ``tile-attention`` is the same with any blocks, one or two under way.
``decode-attention`` is for few rows on many keys: the tiles of a run share a stream, each with some
of the keys. What they found comes together at its end: all correct their sums and outputs by how
far their maxima lie below the run's, and the run adds them up.

Sources: T. Dao, "FlashAttention-2", 2023; J. Shah et al., "FlashAttention-3", 2024; mapped to tiles
as in FlatAttention, section III-A and Algorithm 1; T. Dao et al., "Flash-Decoding", 2023.

Blocks are loaded, and results stored, if the place has channels of off-chip memory: each is asked
for when its buffer is free. Else a tile sends a block to itself, as if it lay in the tile.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program import Operation, Program, Store, Token
from tlm.program.arithmetic import Integers
from tlm.program.data import Buffer
from tlm.program.functional import TileBlocks
from workloads.kernels.attention.core import SHARED, Bringing, growth
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.items import Item
from workloads.kernels.attention.plan import put_masks
from workloads.kernels.attention.shape import (
    head_by_head,
    offchip,
    row_blocks,
    token_by_token,
)
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.inlets import outlet_tokens, staging, store_totals
from workloads.kernels.parts.passes import Passes
from workloads.kernels.vector.softmax import NEGATIVE


def flash_attention(plan: FlashPlan) -> Program:
    """Program of all heads; stream i's output is in ``o.out.i``, its sums in ``total.out.i``."""
    core, place, buffers = plan.core, plan.place, _buffers(plan)
    tokens = core.tokens() | (_joining_tokens(plan) if plan.run > 1 else {})
    tokens |= outlet_tokens() if place.offchip is not None and plan.run == 1 else {}

    def operations() -> Iterator[Operation]:
        # Tiles that know nothing of each other go on side by side, as they do in time.
        every = [core.steps(_Bringing(plan, core.tiles, buffers)) for core in plan.cores]
        for steps in zip_longest(*every, fillvalue=()):
            for beside in zip_longest(*steps):
                yield from (each for each in beside if each is not None)

    return Program(place.rows, place.cols, tokens, operations, buffers)


@dataclass(frozen=True, slots=True)
class _Bringing(Bringing):
    """Each tile brings its own blocks, when there is room for them."""

    plan: FlashPlan
    tiles: TileSet
    buffers: dict[str, Buffer]

    def alone(self, item: Item) -> Iterator[Operation]:
        """Keys, then values."""
        yield from self.keys(item)
        yield from self._values(item)

    begin = alone

    def keys(self, item: Item) -> Iterator[Operation]:
        """At a stream's first block behind Q."""
        if item.first:
            yield self.plan.brings(self.tiles, "q", item.stream, item.state)
        yield self.plan.brings(
            self.tiles, "k", item.stream * self.plan.kv_blocks + item.block, item.held
        )

    def behind(self, before: Item | None, after: Item | None) -> Iterator[Operation]:
        """The values of the item after it."""
        if after is not None:
            yield from self._values(after)

    def finish(self, item: Item) -> Iterator[Operation]:
        """The output is stored, or what the tiles of a run found comes together before."""
        plan, tiles = self.plan, self.tiles
        if plan.run > 1:
            yield from _join(plan, item, self.buffers)
            return
        passes = Passes(tiles, plan.place, self.buffers, "output")
        total, out = f"total.out.{item.stream}", f"o.out.{item.stream}"
        output, there, left = f"o.{item.state}", f"o.there.{item.state}", f"o.{item.state}.left"
        if plan.place.offchip is not None:
            yield from store_totals(passes, item.state, total, plan.flits("total"))
            yield Store(
                tiles, plan.flits("o"), takes=(there,), gives=(left,), source=output, target=out,
                label=passes.label,
            )  # fmt: skip
            return
        yield passes("scale", f"total.{item.state}", total)
        yield passes("scale", output, out, takes=(there,), gives=(left,))

    def _values(self, item: Item) -> Iterator[Operation]:
        if not self.plan.shared:
            yield self.plan.brings(
                self.tiles, "v", item.stream * self.plan.kv_blocks + item.block, item.held
            )
        if item.brought is not None:
            yield self.plan.brings(self.tiles, "mask", item.brought, 0)


def _buffers(plan: FlashPlan) -> dict[str, Buffer]:
    buffers = plan.core.buffers()
    if plan.shape.causal:
        buffers |= offchip("mask.own", buffers["mask.0"], len(plan.patterns))
    if plan.place.offchip is not None:
        buffers |= staging(buffers, {})
    if plan.run > 1:
        column = buffers["total.0"]
        buffers |= {"total.to": column}
        for state in range(plan.core.states):
            maximum, total, output = (each[0] for each in plan.reductions(state))
            buffers |= maximum.buffers(column) | total.buffers(column)
            buffers |= output.buffers(buffers[f"o.{state}"])
    buffers |= offchip("q.own", buffers["q.0"], plan.streams)
    for name in ("k",) if plan.shared else ("k", "v"):
        block = replace(buffers[f"{name}.0"], offchip=True)
        buffers |= {f"{name}.own.{number}": block for number in _brought(plan)}
    return buffers


def _brought(plan: FlashPlan) -> list[int]:
    """Numbers of the blocks of keys that tiles bring."""
    most = [0] * plan.streams
    for core in plan.cores:
        most[: core.streams] = map(max, most, core.blocks)
    return [stream * plan.kv_blocks + block for stream, n in enumerate(most) for block in range(n)]


def _joining_tokens(plan: FlashPlan) -> dict[str, Token]:
    """Of what the tiles of a run do together."""
    tokens: dict[str, Token] = {}
    for state in range(plan.core.states):
        for each in plan.reductions(state):
            tokens |= each[0].tokens()
        tokens |= {f"o.{state}.scaled": Token(), f"o.{state}.left": Token(initial=1)}
    tokens |= {"total.to.there": Token(), "total.to.left": Token(initial=1)}
    return tokens


def _join(plan: FlashPlan, item: Item, buffers: dict[str, Buffer]) -> Iterator[Operation]:
    """A stream's end: what the tiles of a run found comes together in one of them."""
    state, place = item.state, plan.place
    passes = Passes(plan.tiles, place, buffers, "output")
    maxima, totals, outputs = plan.reductions(state)
    yield passes("scale", f"maximum.{state}", "top", gives=("top.there",))
    for each in maxima:
        yield from each.all_reduce()
    yield passes("scale", "top", "negative", factor=NEGATIVE, takes=("top.there",))
    yield from growth(passes, f"maximum.{state}", plan.exponent)
    yield passes(
        "multiply", f"total.{state}", "total.to", "share", SHARED,
        takes=("total.to.left",), gives=("total.to.there",),
    )  # fmt: skip
    output = f"o.{state}"
    yield passes(
        "multiply", output, output, "share", SHARED,
        takes=(f"o.there.{state}",), gives=(f"{output}.scaled",),
    )  # fmt: skip
    for name, reductions in (("total", totals), ("o", outputs)):
        for each in reductions:
            yield from each.reduce()
        for each in reductions:
            yield _stored(plan, each, name, item.stream, buffers)


def _stored(
    plan: FlashPlan, reduction: Reduction, name: str, stream: int, buffers: dict[str, Buffer]
) -> Operation:
    """The root puts what has come together where it belongs."""
    root = reduction.lines.tiles(range(plan.root, plan.root + 1))
    out, there = f"{name}.out.{stream}", (f"{reduction.name}.total",)
    free, source = (reduction.released,), reduction.result
    if plan.place.offchip is None:
        passes = Passes(root, plan.place, buffers, "output")
        return passes("scale", source, out, takes=there, gives=free)
    return Store(
        root, plan.flits(name), takes=there, gives=free, source=source, target=out, label="output"
    )


def put(plan: FlashPlan, memory: TileBlocks, q: Integers, k: Integers, v: Integers) -> None:
    """Put Q, K and V where the program expects them.

    Args:
        plan: The plan.
        memory: Of the program.
        q: Shape (heads, rows, depth): the query heads that share K and V one after the other.
        k: Shape (heads, keys, depth).
        v: Shape (heads, keys, depth of V); of a latent cache the first elements of ``k``.
    """
    height, blocks, run = plan.block.rows, plan.kv_blocks, plan.run
    for stream, (row, col), head, block in plan.places():
        rows = token_by_token(plan.shape, q[head])[block * height : (block + 1) * height]
        keys, values = (row_blocks(matrix[head], run, blocks, plan.block.keys) for matrix in (k, v))
        for place in range(run):
            tile = row, col + place
            memory[f"q.own.{stream}"][tile] = 0
            memory[f"q.own.{stream}"][tile][: len(rows)] = rows
            for number in range(plan.extents[block][0] if plan.shape.causal else blocks):
                memory[f"k.own.{stream * blocks + number}"][tile] = keys[number, place].T
                if not plan.shared:
                    memory[f"v.own.{stream * blocks + number}"][tile] = values[number, place]
    put_masks(plan, memory)


def result(plan: FlashPlan, memory: TileBlocks) -> tuple[Integers, Integers]:
    """Output, shape (heads, rows, depth of V), and sums of rows, shape (heads, rows)."""
    outputs, totals = (_heads(plan, memory, name) for name in ("o", "total"))
    return outputs, totals[:, :, 0]


def _heads(plan: FlashPlan, memory: TileBlocks, name: str) -> Integers:
    """Results of a kind, shape (heads, rows, columns)."""
    shape = plan.shape
    parts = {
        (head, block): memory[f"{name}.out.{stream}"][row, col + plan.root]
        for stream, (row, col), head, block in plan.places()
    }
    heads = [
        np.concatenate([parts[head, block] for block in range(plan.q_blocks)])[: shape.rows]
        for head in range(shape.heads)
    ]
    return np.stack([head_by_head(shape, rows) for rows in heads])
