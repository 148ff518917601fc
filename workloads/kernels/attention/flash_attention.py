"""FlashAttention on tiles: every tile works alone, and loads its own keys and values.

A **stream** is a block of rows of a head; streams are dealt out to the tiles in order, and each
goes through all keys and values of its head. No tile shares what it loads, which is what
FlatAttention's multicasts save. ``flash-attention-2`` has one block under way at a time,
``flash-attention-3`` two: the product of the next block's scores hides the softmax of this one.

Sources: T. Dao, "FlashAttention-2", 2023; J. Shah et al., "FlashAttention-3", 2024; mapped to tiles
as in FlatAttention, section III-A and Algorithm 1.

Blocks are loaded, and results stored, if the place has channels of off-chip memory: each is asked
for when its buffer is free. Else a tile sends a block to itself, as if it lay in the tile.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from tlm.program import Load, Operation, Program, Send, Store
from tlm.program.arithmetic import Integers
from tlm.program.data import Buffer, peak_bytes
from tlm.program.functional import TileBlocks
from workloads.kernels.attention.core import (
    AttentionShape,
    Block,
    Core,
    Item,
    key_mask,
    offchip,
    row_blocks,
)
from workloads.kernels.attention.plan import AttentionPlan
from workloads.kernels.parts.inlets import outlet_tokens, staging, store_totals
from workloads.kernels.parts.passes import Factor, Passes
from workloads.machine.moved import Moved
from workloads.machine.place import Place


@dataclass(frozen=True, slots=True)
class FlashPlan(AttentionPlan):
    """Attention on tiles that know nothing of each other.

    Attributes:
        place: The grid.
        shape: The problem.
        block: What a tile works on at a time.
        q_blocks: Blocks into which the rows of a head are cut.
        kv_blocks: Blocks of keys, the last of them filled up.
        turns: Blocks that a tile has under way: 1 or 2.
        exponent: From scores to exponents of two.
    """

    place: Place
    shape: AttentionShape
    block: Block
    q_blocks: int
    kv_blocks: int
    turns: int
    exponent: Factor

    @property
    def streams(self) -> int:
        """Streams of a tile, one after the other."""
        return ceil_div(self._all_streams, self.place.rows * self.place.cols)

    @property
    def tiles(self) -> TileSet:
        """Tiles that have streams: whole rows of the grid, or a part of one."""
        needed, cols = ceil_div(self._all_streams, self.streams), self.place.cols
        return TileSet(range(ceil_div(needed, cols)), range(min(needed, cols)))

    @property
    def depth(self) -> int:
        """Blocks under way at a time."""
        return min(self.turns, self.streams * self.kv_blocks)

    @property
    def core(self) -> Core:
        """The work of a tile."""
        return Core(
            tiles=self.tiles,
            place=self.place,
            block=self.block,
            depth=self.depth,
            streams=self.streams,
            exponent=self.exponent,
            padded=self.block.keys * self.kv_blocks > self.shape.kv_length,
        )

    @property
    def balance(self) -> float:
        """Cycles of an item's products over the flits of its keys and values."""
        products = self.core.scores_cycles + self.core.output_cycles
        return products / (self.flits("k") + self.flits("v"))

    def flits(self, name: str) -> int:
        """Flits of a block of ``q``, ``k``, ``v``, ``mask``, the output ``o``, its ``total``."""
        block = self.block
        lines, elements = {
            "q": (block.qk_depth, block.rows),
            "k": (block.qk_depth, block.keys),
            "v": (block.keys, block.v_depth),
            "o": (block.rows, block.v_depth),
            "total": (block.rows, 1),
            "mask": (block.rows, block.keys),
        }[name]
        bits = self.place.sum_bits if name in ("o", "total", "mask") else self.place.element_bits
        return self.place.flits(lines, elements, bits)

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes, whose results lie elsewhere."""
        return peak_bytes(self._on_tiles(replace(self.core, streams=self.core.states)))

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        loaded = self.flits("q") + self.kv_blocks * (self.flits("k") + self.flits("v"))
        loaded = self.streams * loaded + (self.flits("mask") if self.core.padded else 0)
        stored = self.streams * (self.flits("o") + self.flits("total"))
        each = len(self.tiles) * self.place.timing.flit_bytes
        return Moved(each * loaded, each * stored, each * loaded)

    def buffers(self) -> dict[str, Buffer]:
        """Buffers of the program."""
        buffers = self._on_tiles(self.core)
        blocks = self.streams * self.kv_blocks
        return (
            buffers
            | offchip("q.own", buffers["q.0"], self.streams)
            | offchip("k.own", buffers["k.0"], blocks)
            | offchip("v.own", buffers["v.0"], blocks)
        )

    def _on_tiles(self, core: Core) -> dict[str, Buffer]:
        buffers = core.buffers()
        return buffers if self.place.offchip is None else buffers | staging(buffers, {})

    def places(self) -> Iterator[tuple[int, tuple[int, int], int, int]]:
        """Of every stream its number in its tile, the tile, its head and its block of rows."""
        cols = len(self.tiles.cols)
        for number in range(self._all_streams):
            tile, stream = divmod(number, self.streams)
            yield stream, divmod(tile, cols), *divmod(number, self.q_blocks)

    @property
    def _all_streams(self) -> int:
        return self.shape.heads * self.q_blocks


def flash_attention(plan: FlashPlan) -> Program:
    """Program of all heads; stream i's output is in ``o.out.i``, its sums in ``total.out.i``."""
    core, place, tiles = plan.core, plan.place, plan.tiles
    memory = place.offchip is not None
    buffers = plan.buffers()
    tokens = core.tokens() | (outlet_tokens() if memory else {})
    rows, cols = np.array(tiles.rows), np.array(tiles.cols)

    def bring(name: str, number: int, index: int) -> Operation:
        """The ``number``-th block of its kind comes into a buffer."""
        flits, free, there = plan.flits(name), (f"{name}.free.{index}",), (f"{name}.there.{index}",)
        source, to = f"{name}.own.{number}", f"{name}.{index}"
        if memory:
            return Load(
                tiles, flits, takes=free, arrivals=there, source=source, target=to, label=name
            )
        return Send(
            tiles, rows, cols, flits, slots=free, arrivals=there, source=source, target=to,
            label=name,
        )  # fmt: skip

    def load_keys(item: Item) -> Iterator[Operation]:
        if item.first:
            yield bring("q", item.stream, item.state)
        yield bring("k", item.stream * plan.kv_blocks + item.block, item.slot)

    def load_values(item: Item) -> Iterator[Operation]:
        yield bring("v", item.stream * plan.kv_blocks + item.block, item.slot)
        if core.padded and item.stream == item.block == 0:
            yield bring("mask", 0, 0)

    def finish(item: Item) -> Iterator[Operation]:
        passes = Passes(tiles, place, buffers, "output")
        total, out = f"total.out.{item.stream}", f"o.out.{item.stream}"
        output, there, left = f"o.{item.state}", f"o.there.{item.state}", f"o.{item.state}.left"
        if memory:
            yield from store_totals(passes, item.state, total, plan.flits("total"))
            yield Store(
                tiles, plan.flits("o"), takes=(there,), gives=(left,), source=output, target=out,
                label=passes.label,
            )  # fmt: skip
            return
        yield passes("scale", f"total.{item.state}", total)
        yield passes("scale", output, out, takes=(there,), gives=(left,))

    def operations() -> Iterator[Operation]:
        return core.operations(load_keys, load_values, finish, plan.kv_blocks)

    return Program(place.rows, place.cols, tokens, operations, buffers)


def put(plan: FlashPlan, memory: TileBlocks, q: Integers, k: Integers, v: Integers) -> None:
    """Put Q, K and V where the program expects them.

    Args:
        plan: The plan.
        memory: Of the program.
        q: Shape (heads, rows, depth): the query heads that share K and V one after the other.
        k: Shape (heads, keys, depth).
        v: Shape (heads, keys, depth of V).
    """
    height, blocks = plan.block.rows, plan.kv_blocks
    for stream, tile, head, block in plan.places():
        rows = q[head, block * height : (block + 1) * height]
        memory[f"q.own.{stream}"][tile] = 0
        memory[f"q.own.{stream}"][tile][: len(rows)] = rows
        keys, values = (
            row_blocks(matrix[head], 1, blocks, plan.block.keys)[:, 0] for matrix in (k, v)
        )
        for number in range(blocks):
            memory[f"k.own.{stream * blocks + number}"][tile] = keys[number].T
            memory[f"v.own.{stream * blocks + number}"][tile] = values[number]
    if plan.core.padded:
        real = np.array([plan.shape.kv_length - (blocks - 1) * plan.block.keys])
        memory["mask.own.0"][:] = key_mask(real, plan.block, plan.place.sum_bits)[0]


def result(plan: FlashPlan, memory: TileBlocks) -> tuple[Integers, Integers]:
    """Output, shape (heads, rows, depth of V), and sums of rows, shape (heads, rows)."""
    outputs, totals = (
        np.stack([memory[f"{name}.out.{stream}"][tile] for stream, tile, *_ in plan.places()])
        for name in ("o", "total")
    )
    return _heads(plan, outputs), _heads(plan, totals)[:, :, 0]


def _heads(plan: FlashPlan, parts: Integers) -> Integers:
    """From (streams, rows, columns) to (heads, rows, columns)."""
    whole: Integers = parts.reshape(plan.shape.heads, -1, parts.shape[-1])
    return whole[:, : plan.shape.rows]
