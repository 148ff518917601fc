"""FlatAttention: all tiles of a grid work on a head together.

A head's block of Q lies over the rows of tiles, its block of keys and values over the columns.
Slices come from off-chip memory to the tiles of the diagonal, which multicast those of Q along
their rows and those of K and V along their columns. Maxima and sums of rows are all-reduced along
the rows of tiles, and the output is reduced to the diagonal at the end of a stream. ``naive`` does
one after the other; ``async`` has two streams under way, so that matrix products of one hide the
rest of the other.

Source: FlatAttention, section III: Algorithm 2, and III-C for the asynchronous schedule.

Slices are loaded, and results stored, if the place has channels of off-chip memory: ``naive``
asks for a slice when it is its turn, ``async`` when the tile has sent the one before it. Else a
multicast begins as if its slice lay in the tile.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from tlm.program import Operation, Program, Store, Token
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.attention.core import (
    AttentionShape,
    Block,
    Core,
    Item,
    items,
    key_mask,
    offchip,
    row_blocks,
)
from workloads.kernels.attention.plan import AttentionPlan, Cut
from workloads.kernels.parts.broadcast import Broadcast
from workloads.kernels.parts.collectives import (
    Reduction,
    all_reduce_messages,
    reduce_messages,
)
from workloads.kernels.parts.inlets import (
    Inlet,
    inlet_tokens,
    outlet_tokens,
    staging,
    store_totals,
)
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.passes import Factor, Passes
from workloads.kernels.parts.pieces import Pieces
from workloads.kernels.vector.softmax import diagonal, reductions
from workloads.machine.moved import Moved
from workloads.machine.place import Place

SCHEDULES = ("naive", "async")


@dataclass(frozen=True)  # without slots: the work of a tile is kept
class FlatPlan(AttentionPlan):
    """Attention on a grid that works as one group.

    Attributes:
        place: The grid.
        shape: The problem.
        block: What a tile works on at a time.
        q_blocks: Blocks into which the rows of a head are cut beside the rows of tiles.
        kv_blocks: Blocks of keys beside the columns of tiles, the last of them filled up.
        method: How parts of rows come together (`workloads.kernels.parts.collectives`).
        schedule: One of `SCHEDULES`.
        exponent: From scores to exponents of two.
        operands: How slices are sent to many (`workloads.kernels.parts.broadcast`).
    """

    place: Place
    shape: AttentionShape
    block: Block
    q_blocks: int
    kv_blocks: int
    method: str
    schedule: str
    exponent: Factor
    operands: str = "network"

    @property
    def cut(self) -> Cut:
        """How rows and keys are cut."""
        block, turns = self.block, 2 if self.schedule == "async" else 1
        blocks = self.q_blocks, self.kv_blocks
        return Cut(block.rows, block.keys, *blocks, self.place.cols, turns, self.shape.kv_length)

    @property
    def depth(self) -> int:
        """Blocks under way at a time."""
        return 2 if self.schedule == "async" and self.streams * self.kv_blocks > 1 else 1

    @property
    def padded(self) -> bool:
        """Whether a stream's last blocks have keys that are padding."""
        return self.block.keys * self.kv_blocks * self.place.cols > self.shape.kv_length

    @property
    def streams(self) -> int:
        """Blocks of rows of Q of all heads."""
        return self.shape.heads * self.q_blocks

    @property
    def balance(self) -> float:
        """Cycles of a block's products over the flits that a tile of the diagonal sends for it."""
        flits = self.flits
        sent = flits("k") + flits("v") + (flits("q") + flits("o")) / self.kv_blocks
        return (self.core.scores_cycles + self.core.output_cycles) / sent

    @property
    def pieces(self) -> Pieces:
        """All tiles share a block of rows."""
        group = self.place.rows, self.place.cols
        size = {"rows": self.block.rows, "keys": self.block.keys}
        return Pieces(group, size, {"rows": self.streams, "keys": self.kv_blocks})

    @cached_property
    def core(self) -> Core:
        """The work of a tile."""
        place, block = self.place, self.block
        flits = place.flits(block.rows, 1, place.sum_bits)
        maximum, total = reductions(place, self.method, flits, block.rows)
        return Core(
            tiles=TileSet(range(place.rows), range(place.cols)),
            place=place,
            block=block,
            depth=self.depth,
            streams=self.streams,
            exponent=self.exponent,
            held=self.held,
            shared=self.shared,
            padded=self.padded,
            maximum=maximum,
            total=total,
        )

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes, whose results lie elsewhere."""
        place, block, memory = self.place, self.block, self.place.offchip is not None
        sums, elements = place.sum_bits, place.element_bits

        def size(rows: int, columns: int, bits: int) -> int:
            return ceil_div(rows * columns * bits, 8)

        column, output = size(block.rows, 1, sums), size(block.rows, block.v_depth, sums)
        q = size(block.rows, block.qk_depth, elements)
        kv = size(block.qk_depth, block.keys, elements)
        if not self.shared:
            kv += size(block.keys, block.v_depth, elements)
        scores = size(block.rows, block.keys, sums)
        mask = scores if self.padded else 0
        # What comes together: the sum, or two parts that come.
        parts = 1 if self.method == "network" else 2
        states = min(self.depth, self.streams) * (q + (1 + parts) * output + 2 * column)
        items = self.depth * (scores + size(block.rows, block.keys, elements)) + self.held * kv
        staged = q + kv + mask + column if memory else 0
        return (4 + 2 * parts) * column + mask + states + items + staged

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        flits, (rows, cols) = self.flits, (self.place.rows, self.place.cols)
        items = self.streams * self.kv_blocks
        mask = flits("mask") if self.padded else 0
        kept = items * (flits("k") + flits("v")) + mask
        read = self.streams * rows * flits("q") + cols * kept
        written = self.streams * rows * (flits("o") + flits("total"))
        # All tiles take in what is multicast, and rows what comes together.
        taken = rows * cols * (self.streams * flits("q") + kept)
        output = self.output(0)
        summed = rows * self.streams * reduce_messages(output) * flits("o")
        for each in (self.core.maximum, self.core.total):
            assert each is not None
            summed += rows * items * all_reduce_messages(each) * each.flits
        unit = self.place.timing.flit_bytes
        return Moved(read * unit, written * unit, (read + taken + summed) * unit)

    def roots(self, name: str) -> list[TileSet]:
        """Tiles of the diagonal that multicast slices of ``q``, ``k``, ``v`` or the ``mask``."""
        rows, cols = self.place.rows, self.place.cols
        if name == "q":
            return [TileSet.tile(row, col) for row, col in enumerate(diagonal(rows, cols))]
        return [TileSet.tile(row, col) for col, row in enumerate(diagonal(cols, rows))]

    def broadcast(self, name: str, index: int) -> Broadcast:
        """Of slices of ``q`` along rows, of others along columns, to the buffer of a number."""
        rows, cols = self.place.rows, self.place.cols
        lines = (
            Lines("row", range(rows), cols) if name == "q" else Lines("column", range(cols), rows)
        )
        return Broadcast(
            lines,
            tuple(diagonal(len(lines.lines), lines.length)),
            self.operands,
            self.flits(name),
            source="",
            target=f"{name}.{index}",
            free=(f"{name}.free.{index}",),
            there=f"{name}.there.{index}",
            label=name,
        )

    @property
    def multicasts(self) -> tuple[str, ...]:
        """What is multicast from the diagonal."""
        return ("q", *self.kept, *(("mask",) if self.padded else ()))

    @property
    def kept(self) -> tuple[str, ...]:
        """What is multicast for every block of keys."""
        return ("k",) if self.shared else ("k", "v")

    def inlets(self) -> dict[str, Inlet]:
        """How slices come from off-chip memory."""
        order = items(self.streams, self.kv_blocks, self.depth, self.held)
        keys = [_keys(self, item) for item in order]
        sources = {name: [f"{name}.own.{number}" for number in keys] for name in self.kept}
        sources["q"] = [f"q.own.{stream}" for stream in range(self.streams)]
        sources |= {"mask": ["mask.own.0"]} if self.padded else {}
        return {
            name: Inlet(name, self.roots(name), sources[name], self.flits(name), self.depth > 1)
            for name in self.multicasts
        }

    def output(self, state: int) -> Reduction:
        """The reduction of a stream's output to the diagonal."""
        place, block = self.place, self.block
        return Reduction(
            Lines("row", range(place.rows), place.cols),
            tuple(diagonal(place.rows, place.cols)),
            self.method,
            f"o.{state}",
            f"o.{state}",
            f"o.there.{state}",
            self.flits("o"),
            place.vector.pass_cycles(block.rows, block.v_depth),
        )


def flat_attention(plan: FlatPlan) -> Program:
    """Program of all heads; stream i's output is in ``o.out.i``, its sums in ``total.out.i``."""
    place, core = plan.place, plan.core
    tokens, buffers = core.tokens(), core.buffers()
    for state in range(core.states):
        output = plan.output(state)
        tokens |= output.tokens() | {f"o.{state}.left": Token(initial=1)}
        buffers |= output.buffers(buffers[f"o.{state}"])
    buffers |= offchip("q.own", buffers["q.0"], plan.streams)
    for name in plan.kept:
        blocks = plan.shape.heads * plan.kv_blocks
        buffers |= offchip(f"{name}.own", buffers[f"{name}.0"], blocks)
    if place.offchip is not None:
        tokens |= inlet_tokens(plan.multicasts) | outlet_tokens()
        buffers |= staging(buffers, {name: f"{name}.0" for name in plan.multicasts})
    inlets = {} if place.offchip is None else plan.inlets()

    for name in plan.multicasts:
        slots = {"q": core.states, "mask": 1}.get(name, plan.held)
        for index in range(slots):
            tokens |= plan.broadcast(name, index).tokens()

    def load(name: str, number: int, source: str, index: int) -> Iterator[Operation]:
        """The ``number``-th slice of its kind, which lies in ``source``."""
        hand_on = plan.broadcast(name, index)
        if not inlets:
            yield from replace(hand_on, source=source).operations()
            return
        yield from inlets[name].before(number)
        there, free = (f"{name}.in.there",), (f"{name}.in.free",)
        yield from replace(hand_on, source=f"{name}.in", takes=there, gives=free).operations()
        yield from inlets[name].after(number)

    order = items(plan.streams, plan.kv_blocks, plan.depth, plan.held)
    number = {item: n for n, item in enumerate(order)}

    def load_keys(item: Item) -> Iterator[Operation]:
        if item.first:
            yield from load("q", item.stream, f"q.own.{item.stream}", item.state)
        yield from load("k", number[item], f"k.own.{_keys(plan, item)}", item.held)

    def load_values(item: Item) -> Iterator[Operation]:
        if core.padded and number[item] == 0:
            yield from load("mask", 0, "mask.own.0", 0)
        if not core.shared:
            yield from load("v", number[item], f"v.own.{_keys(plan, item)}", item.held)

    def finish(item: Item) -> Iterator[Operation]:
        output = plan.output(item.state)
        yield from output.reduce()
        everywhere = Passes(core.tiles, place, buffers, "output")
        total, out = f"total.out.{item.stream}", f"o.out.{item.stream}"
        if not inlets:
            yield everywhere("scale", f"total.{item.state}", total)
        for root in plan.roots("q"):
            passes = replace(everywhere, tiles=root)
            there, free = (f"{output.name}.total",), (output.released,)
            if not inlets:
                yield passes("scale", output.result, out, takes=there, gives=free)
                continue
            yield from store_totals(passes, item.state, total, plan.flits("total"))
            yield Store(
                root, plan.flits("o"), takes=there, gives=free, source=output.result, target=out,
                label=passes.label,
            )  # fmt: skip

    def operations() -> Iterator[Operation]:
        for inlet in inlets.values():
            yield from inlet.first()
        yield from core.operations(load_keys, load_values, finish, plan.kv_blocks)

    return Program(place.rows, place.cols, tokens, operations, buffers)


def _keys(plan: FlatPlan, item: Item) -> int:
    """Number of an item's block of keys among those of all heads."""
    return item.stream // plan.q_blocks * plan.kv_blocks + item.block


def put(plan: FlatPlan, memory: TileBlocks, q: Integers, k: Integers, v: Integers) -> None:
    """Put Q, K and V where the program expects them.

    Args:
        plan: The plan.
        memory: Of the program.
        q: Shape (heads, rows, depth): the query heads that share K and V one after the other.
        k: Shape (heads, keys, depth).
        v: Shape (heads, keys, depth of V); of a latent cache the first elements of ``k``.
    """
    rows, cols = plan.place.rows, plan.place.cols
    for head in range(plan.shape.heads):
        for block, part in enumerate(row_blocks(q[head], rows, plan.q_blocks, plan.block.rows)):
            memory[f"q.own.{head * plan.q_blocks + block}"][:] = part[:, None]
        keys = row_blocks(k[head], cols, plan.kv_blocks, plan.block.keys)
        values = row_blocks(v[head], cols, plan.kv_blocks, plan.block.keys)
        for block in range(plan.kv_blocks):
            number = head * plan.kv_blocks + block
            memory[f"k.own.{number}"][:] = keys[block].swapaxes(1, 2)[None]
            if not plan.shared:
                memory[f"v.own.{number}"][:] = values[block][None]
    if plan.core.padded:
        height = plan.block.keys
        first = ((plan.kv_blocks - 1) * cols + np.arange(cols)) * height
        real = np.clip(plan.shape.kv_length - first, 0, height)
        memory["mask.own.0"][:] = key_mask(real, plan.block, plan.place.sum_bits)[None]


def result(plan: FlatPlan, memory: TileBlocks) -> tuple[Integers, Integers]:
    """Output, shape (heads, rows, depth of V), and sums of rows, shape (heads, rows)."""
    rows = np.arange(plan.place.rows)
    roots = np.array(diagonal(plan.place.rows, plan.place.cols))
    outputs = [memory[f"o.out.{stream}"][rows, roots] for stream in range(plan.streams)]
    totals = [memory[f"total.out.{stream}"][rows, roots] for stream in range(plan.streams)]
    return (
        _heads(plan, np.stack(outputs)),
        _heads(plan, np.stack(totals))[:, :, 0],
    )


def _heads(plan: FlatPlan, parts: Integers) -> Integers:
    """From (streams, rows of tiles, rows, columns) to (heads, rows, columns)."""
    whole: Integers = parts.reshape(plan.shape.heads, -1, parts.shape[-1])
    return whole[:, : plan.shape.rows]
