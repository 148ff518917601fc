"""FlashAttention on tiles: every tile works on rows of its own, and gets all keys for itself.

A column of tiles has a head; each of its tiles has a part of the rows of Q, and goes through all
blocks of keys and values. Block j comes from off-chip memory to tile j mod R of the column, which
sends it to each of the R tiles, one message after the other: no tile shares what it loads, which is
what FlatAttention's multicasts save. ``flash-attention-2`` has one block under way at a time,
``flash-attention-3`` two: the product of the next block's scores hides the softmax of this one.

Sources: T. Dao, "FlashAttention-2", 2023; J. Shah et al., "FlashAttention-3", 2024; mapped to tiles
as in FlatAttention, section III-A and Algorithm 1.

Blocks are loaded, and results stored, if the target has channels of off-chip memory:
``flash-attention-2`` asks for a block of keys or values when it is its turn, ``flash-attention-3``
when its owner has sent the one before it. Else a block begins its way as if it lay in the tile.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Load, Operation, Program, Send, Store
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.attention import (
    AttentionShape,
    Block,
    Core,
    Item,
    items,
    offchip,
    row_blocks,
    whole_keys,
)
from workloads.kernels.attention_plan import AttentionPlan
from workloads.kernels.inlets import (
    Inlet,
    inlet_tokens,
    outlet_tokens,
    staging,
    store_totals,
)
from workloads.kernels.line import Lines
from workloads.kernels.passes import Factor, Passes
from workloads.kernels.target import Target


@dataclass(frozen=True, slots=True)
class FlashPlan(AttentionPlan):
    """Attention on a grid whose columns have a head each.

    Attributes:
        target: The grid.
        shape: The problem.
        block: What a tile works on at a time.
        q_blocks: Blocks into which the rows of a head are cut beside the rows of tiles.
        kv_blocks: Blocks of keys.
        turns: Blocks that a tile has under way: 1 or 2.
        exponent: From scores to exponents of two.
    """

    target: Target
    shape: AttentionShape
    block: Block
    q_blocks: int
    kv_blocks: int
    turns: int
    exponent: Factor

    @property
    def columns(self) -> int:
        """Columns of tiles that have a head; heads go round if there are more."""
        return min(self.target.cols, self.shape.heads)

    @property
    def streams(self) -> int:
        """Blocks of rows of all heads that a tile goes through, one after the other."""
        return ceil_div(self.shape.heads, self.columns) * self.q_blocks

    @property
    def depth(self) -> int:
        """Blocks under way at a time."""
        return min(self.turns, self.streams * self.kv_blocks)

    @property
    def core(self) -> Core:
        """The work of a tile."""
        return Core(
            tiles=TileSet(range(self.target.rows), range(self.columns)),
            target=self.target,
            block=self.block,
            depth=self.depth,
            streams=self.streams,
            exponent=self.exponent,
        )

    @property
    def balance(self) -> float:
        """Cycles of an item's products over the flits of its keys and values, sent to every row."""
        flits = self.target.rows * (self.flits("k") + self.flits("v"))
        return (self.core.scores_cycles + self.core.output_cycles) / flits

    def flits(self, name: str) -> int:
        """Flits of a block of ``q``, ``k`` or ``v``."""
        block = self.block
        lines, elements = {
            "q": (block.qk_depth, block.rows),
            "k": (block.qk_depth, block.keys),
            "v": (block.keys, block.v_depth),
            "o": (block.rows, block.v_depth),
            "total": (block.rows, 1),
        }[name]
        bits = self.target.sum_bits if name in ("o", "total") else self.target.element_bits
        return self.target.flits(lines, elements, bits)

    def own(self, item: Item) -> int:
        """Number of an item's block among those of its owner."""
        rounds = item.block // self.target.rows
        return item.stream // self.q_blocks * (self.kv_blocks // self.target.rows) + rounds

    def owned(self) -> list[list[Item]]:
        """The items whose keys and values each tile of a column sends, in order."""
        order = items(self.streams, self.kv_blocks, self.depth)
        tiles = self.target.rows
        return [[item for item in order if item.block % tiles == row] for row in range(tiles)]

    def inlets(self) -> list[dict[str, Inlet]]:
        """How blocks of keys and values come from off-chip memory to each tile of a column."""
        return [
            {
                name: Inlet(
                    name,
                    [TileSet(range(row, row + 1), range(self.columns))],
                    [f"{name}.own.{self.own(item)}" for item in owned],
                    self.flits(name),
                    self.turns > 1,
                )
                for name in "kv"
            }
            for row, owned in enumerate(self.owned())
        ]


def plan_flash(
    shape: AttentionShape, target: Target, turns: int, unit: float | None = None
) -> FlashPlan:
    """Plan attention: a block of keys a tile of a column, or smaller ones if memory asks for it.

    Args:
        shape: The problem.
        target: The grid.
        turns: Blocks that a tile has under way: 1 or 2.
        unit: Of a score; by default one over the root of the depth, by 16.

    Raises:
        InputError: if no block fits.
    """
    unit = shape.qk_depth**-0.5 / 16 if unit is None else unit
    rows, keys = ceil_div(shape.rows, target.rows), whole_keys(shape, target.rows, "row")
    q_blocks = cut = 1
    while True:
        block = Block(ceil_div(rows, q_blocks), keys // cut, shape.qk_depth, shape.v_depth)
        exponent = Factor.of_exponent(unit)
        plan = FlashPlan(target, shape, block, q_blocks, cut * target.rows, turns, exponent)
        needed = flash_attention(plan).tile_bytes
        if needed <= target.tile_bytes:
            return plan
        if block.keys >= block.rows and block.keys > 1:
            cut = next(n for n in range(cut + 1, keys + 1) if keys % n == 0)
        elif block.rows > 1:
            q_blocks *= 2
        else:
            raise InputError(
                f"--shape: a single row takes {needed} bytes of a tile's memory; "
                f"allowed: {target.tile_bytes}"
            )


def flash_attention(plan: FlashPlan) -> Program:
    """Program of all heads; stream i's output is in ``o.out.i``, its sums in ``total.out.i``."""
    core, target = plan.core, plan.target
    buffers = core.buffers() | offchip("q.own", core.buffers()["q.0"], plan.streams)
    for name in "kv":
        own = plan.streams // plan.q_blocks * plan.kv_blocks // target.rows
        buffers |= offchip(f"{name}.own", buffers[f"{name}.0"], own)
    tokens = core.tokens()
    if target.offchip is not None:
        tokens |= inlet_tokens("kv") | outlet_tokens()
        buffers |= staging(buffers, {name: f"{name}.0" for name in "kv"})
    inlets = [] if target.offchip is None else plan.inlets()
    number = {item: n for owned in plan.owned() for n, item in enumerate(owned)}
    tiles = core.tiles
    stay_rows, stay_cols = np.array(tiles.rows), np.array(tiles.cols)
    columns = Lines("column", tiles.cols, target.rows)

    def load_query(item: Item) -> Operation:
        free, there = (f"q.free.{item.state}",), (f"q.there.{item.state}",)
        source, target, flits = f"q.own.{item.stream}", f"q.{item.state}", plan.flits("q")
        if inlets:
            return Load(
                tiles, flits, takes=free, arrivals=there, source=source, target=target, label="q"
            )
        return Send(
            tiles, stay_rows, stay_cols, flits, slots=free, arrivals=there, source=source,
            target=target, label="q",
        )  # fmt: skip

    def load(name: str, item: Item) -> Iterator[Operation]:
        """The owner of a block of keys or values sends it to each tile of its column."""
        owner, last = item.block % target.rows, target.rows - 1
        if inlets:
            yield from inlets[owner][name].before(number[item])
        for row in range(target.rows):
            yield columns.send(
                range(owner, owner + 1),
                [row],
                plan.flits(name),
                takes=(f"{name}.in.there",) if inlets and row == 0 else (),
                slots=(f"{name}.free.{item.slot}",),
                gives=(f"{name}.in.free",) if inlets and row == last else (),
                arrivals=(f"{name}.there.{item.slot}",),
                source=f"{name}.in" if inlets else f"{name}.own.{plan.own(item)}",
                target=f"{name}.{item.slot}",
                label=name,
            )
        if inlets:
            yield from inlets[owner][name].after(number[item])

    def load_keys(item: Item) -> Iterator[Operation]:
        if item.first:
            yield load_query(item)
        yield from load("k", item)

    def load_values(item: Item) -> Iterator[Operation]:
        yield from load("v", item)

    def finish(item: Item) -> Iterator[Operation]:
        passes = Passes(tiles, target, buffers, "output")
        total, out = f"total.out.{item.stream}", f"o.out.{item.stream}"
        output, there, left = f"o.{item.state}", f"o.there.{item.state}", f"o.{item.state}.left"
        if inlets:
            yield from store_totals(passes, item.state, total, plan.flits("total"))
            yield Store(
                tiles, plan.flits("o"), takes=(there,), gives=(left,), source=output, target=out,
                label=passes.label,
            )  # fmt: skip
            return
        yield passes("scale", f"total.{item.state}", total)
        yield passes("scale", output, out, takes=(there,), gives=(left,))

    def operations() -> Iterator[Operation]:
        for owner in inlets:
            for inlet in owner.values():
                yield from inlet.first()
        yield from core.operations(load_keys, load_values, finish, plan.kv_blocks)

    return Program(target.rows, target.cols, tokens, operations, buffers)


def place(plan: FlashPlan, memory: TileBlocks, q: Integers, k: Integers, v: Integers) -> None:
    """Put Q, K and V where the program expects them.

    Args:
        plan: The plan.
        memory: Of the program.
        q: Shape (heads, rows, depth): the query heads that share K and V one after the other.
        k: Shape (heads, keys, depth).
        v: Shape (heads, keys, depth of V).
    """
    tiles = plan.target.rows
    rounds = plan.kv_blocks // tiles
    for head in range(plan.shape.heads):
        turn, col = divmod(head, plan.columns)
        for block, part in enumerate(row_blocks(q[head], tiles, plan.q_blocks, plan.block.rows)):
            memory[f"q.own.{turn * plan.q_blocks + block}"][:, col] = part
        keys, values = (row_blocks(m[head], tiles, rounds, plan.block.keys) for m in (k, v))
        for block in range(rounds):
            memory[f"k.own.{turn * rounds + block}"][:, col] = keys[block].swapaxes(1, 2)
            memory[f"v.own.{turn * rounds + block}"][:, col] = values[block]


def result(plan: FlashPlan, memory: TileBlocks) -> tuple[Integers, Integers]:
    """Output, shape (heads, rows, depth of V), and sums of rows, shape (heads, rows)."""
    outputs, totals = (
        np.stack([memory[f"{name}.out.{stream}"] for stream in range(plan.streams)])
        for name in ("o", "total")
    )
    return _heads(plan, outputs), _heads(plan, totals)[:, :, 0]


def _heads(plan: FlashPlan, parts: Integers) -> Integers:
    """From (streams, tile rows, tile columns, rows, columns) to (heads, rows, columns)."""
    _, rows, _, height, width = parts.shape
    used = parts[:, :, : plan.columns].reshape(-1, plan.q_blocks, rows, plan.columns, height, width)
    heads: Integers = used.transpose(0, 3, 1, 2, 4, 5).reshape(
        -1, plan.q_blocks * rows * height, width
    )
    return heads[: plan.shape.heads, : plan.shape.rows]
