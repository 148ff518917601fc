"""FlatAttention: groups of tiles, each of which works on a head together.

A head's block of Q lies over the rows of a group, its block of keys and values over the columns.
Slices come from off-chip memory to the tiles of the diagonal, which multicast those of Q along
their rows and those of K and V along their columns. Maxima and sums of rows are all-reduced along
the rows of tiles, and the output is reduced to the diagonal at the end of a stream. ``naive`` does
one after the other; ``async`` has two streams under way, so that matrix products of one hide the
rest of the other: two heads, or two blocks of rows of one, which share its keys and values. With
one stream under way it is the blocks of keys of that one which overlap.

Groups lie side by side on the grid, and do the same on streams of their own.

Source: FlatAttention, section III: Algorithm 2, and III-C for the asynchronous schedule.

Slices are loaded, and results stored, if the place has channels of off-chip memory: into the buffer
from which the tile sends them on and uses its own. ``naive`` asks for a slice when it is its turn,
``async`` when the buffer has been used. Else a multicast begins as if its slice lay in the tile.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from tlm.compute.base import ceil_div
from tlm.program import Buffer, Load, Operation, Program, Store, Token
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.attention.core import Bringing
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.items import Item
from workloads.kernels.attention.shape import key_mask, offchip, row_blocks
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.inlets import outlet_tokens, store_totals
from workloads.kernels.parts.passes import Passes


def flat_attention(plan: FlatPlan) -> Program:
    """Program of all heads; stream i's output is in ``o.out.i``, its sums in ``total.out.i``."""
    place, core = plan.place, plan.core
    tokens, buffers = core.tokens(), core.buffers()
    for state in range(core.states):
        output = plan.outputs(state)[0]
        tokens |= output.tokens() | {f"o.{state}.left": Token(initial=1)}
        buffers |= output.buffers(buffers[f"o.{state}"])
    buffers |= offchip("q.own", buffers["q.0"], plan.streams)
    for name in plan.kept:
        blocks = ceil_div(plan.streams, plan.alike) * plan.kv_blocks
        buffers |= offchip(f"{name}.own", buffers[f"{name}.0"], blocks)
    if place.offchip is not None:
        tokens |= outlet_tokens()
        buffers |= {"total.to": buffers["total.0"]}
    for name in plan.multicasts:
        slots = {"q": core.states, "mask": 1}.get(name, plan.held)
        for index in range(slots):
            tokens |= plan.broadcasts(name, index)[0].tokens()
            tokens |= {f"{name}.in.{index}": Token()}

    def operations() -> Iterator[Operation]:
        return chain.from_iterable(core.steps(_Bringing(plan, buffers)))

    return Program(place.rows, place.cols, tokens, operations, buffers)


@dataclass(frozen=True)  # without slots: the order of loads is kept
class _Bringing(Bringing):
    """Tiles of the diagonal load slices, and send them on."""

    plan: FlatPlan
    buffers: dict[str, Buffer]

    def alone(self, item: Item) -> Iterator[Operation]:
        """One after the other."""
        if item.first:
            yield from self._ask_queries(item.stream)
        if item.brings:
            yield from self._ask("k", item.load)
        if item.stream == item.block == 0:
            yield from self._ask("mask", 0)
        yield from self.keys(item)
        if item.brings:
            yield from self._ask("v", item.load)
        yield from self._send_values(item)

    def begin(self, item: Item) -> Iterator[Operation]:
        """All for which there is room is asked for; the first keys are sent on."""
        plan = self.plan
        yield from self._ask_queries(0)
        yield from self._ask("k", 0)
        yield from self._ask("mask", 0)
        yield from self._ask("v", 0)
        for stream in range(1, plan.core.states):
            yield from self._ask_queries(stream)
        for load in range(1, plan.held):
            yield from self._ask("k", load)
        for load in range(1, plan.held):
            yield from self._ask("v", load)
        yield from self.keys(item)

    def keys(self, item: Item) -> Iterator[Operation]:
        """At a stream's first block behind Q; the mask behind the first."""
        core = self.plan.core
        if item.first and item.stream and core.states < core.depth:
            yield from self._ask_queries(item.stream)  # its room was that of the stream before
        if item.first:
            yield from self._send("q", item.stream, item.state)
        if item.brings:
            yield from self._send("k", item.load, item.held)
        if self.plan.padded and item.stream == item.block == 0:
            yield from self._send("mask", 0, 0)

    def within(self, item: Item) -> Iterator[Operation]:
        """Values, and what has room since the item's scores."""
        yield from self._send_values(item)
        if item.last and self.plan.core.states > 1:
            yield from self._ask_queries(item.stream + self.plan.core.states)
        if item.frees and not self.plan.shared:
            yield from self._ask("k", item.load + self.plan.held)

    def behind(self, before: Item | None, after: Item | None) -> Iterator[Operation]:
        """What has room since the product with V of the item before."""
        if before is not None and before.frees:
            name = "k" if self.plan.shared else "v"
            yield from self._ask(name, before.load + self.plan.held)

    def finish(self, item: Item) -> Iterator[Operation]:
        """The output comes together at the diagonal, which puts it where it belongs."""
        plan, buffers = self.plan, self.buffers
        outputs = plan.outputs(item.state)
        for each in outputs:
            yield from each.reduce()
        everywhere = Passes(plan.tiles, plan.place, buffers, "output")
        total, out = f"total.out.{item.stream}", f"o.out.{item.stream}"
        there, free = (f"{outputs[0].name}.total",), (outputs[0].released,)
        memory, source = plan.place.offchip is not None, outputs[0].result
        if not memory:
            yield everywhere("scale", f"total.{item.state}", total)
        for root in plan.roots("q"):
            passes = replace(everywhere, tiles=root)
            if not memory:
                yield passes("scale", source, out, takes=there, gives=free)
                continue
            yield from store_totals(passes, item.state, total, plan.flits("total"))
            yield Store(
                root, plan.flits("o"), takes=there, gives=free, source=source, target=out,
                label=passes.label,
            )  # fmt: skip

    def _ask_queries(self, stream: int) -> Iterator[Operation]:
        if stream < self.plan.streams:
            yield from self._load("q", stream, stream % self.plan.core.states)

    def _ask(self, name: str, load: int) -> Iterator[Operation]:
        """Load slices of ``k``, ``v`` or the ``mask``; nothing if there are none."""
        if name == "mask":
            yield from self._load(name, 0, 0) if self.plan.padded else ()
        elif load < len(self._numbers) and name in self.plan.kept:
            yield from self._load(name, self._numbers[load], load % self.plan.held)

    def _load(self, name: str, number: int, index: int) -> Iterator[Operation]:
        """The ``number``-th slice of its kind to a buffer of the diagonal."""
        plan = self.plan
        if plan.place.offchip is None:
            return
        free = f"{name}.free.{index}"
        # The network writes to the root's buffer, too: it has room for that copy.
        there = [f"{name}.in.{index}", free]
        if plan.operands in BY_MESSAGES:
            there = [f"{name}.{'there' if plan.operands == 'tree' else 'in'}.{index}"]
        for root in plan.roots(name):
            yield Load(
                root,
                plan.flits(name),
                takes=(free,),
                arrivals=tuple(there),
                source=f"{name}.own.{number}",
                target=f"{name}.{index}",
                label=name,
            )

    def _send_values(self, item: Item) -> Iterator[Operation]:
        if item.brings and not self.plan.shared:
            yield from self._send("v", item.load, item.held)

    def _send(self, name: str, load: int, index: int) -> Iterator[Operation]:
        """A slice from the diagonal to all tiles of its lines."""
        plan = self.plan
        number = self._numbers[load] if name in plan.kept else load
        how: dict[str, Any] = {"source": f"{name}.own.{number}"}
        if plan.place.offchip is not None:
            how = {"source": f"{name}.{index}"}
            if plan.operands != "tree":
                how["takes"] = (f"{name}.in.{index}",)
        for each in plan.broadcasts(name, index):
            yield from replace(each, **how).operations()

    @cached_property
    def _numbers(self) -> list[int]:
        """Of each load the number of its block of keys among those that a group has."""
        plan = self.plan
        order = plan.core.items()
        brought = (item for item in order if item.brings)
        return [item.stream // plan.alike * plan.kv_blocks + item.block for item in brought]


def put(plan: FlatPlan, memory: TileBlocks, q: Integers, k: Integers, v: Integers) -> None:
    """Put Q, K and V where the program expects them.

    Args:
        plan: The plan.
        memory: Of the program.
        q: Shape (heads, rows, depth): the query heads that share K and V one after the other.
        k: Shape (heads, keys, depth).
        v: Shape (heads, keys, depth of V); of a latent cache the first elements of ``k``.
    """
    height, (down, across) = plan.block.keys, plan.group
    for stream, (rows, cols), head, block in _places(plan):
        parts = row_blocks(q[head], down, plan.q_blocks, plan.block.rows)
        memory[f"q.own.{stream}"][rows, cols] = parts[block][:, None]
        for name in plan.kept:
            slices = row_blocks((k if name == "k" else v)[head], across, plan.kv_blocks, height)
            first = stream // plan.alike * plan.kv_blocks
            for number, each in enumerate(slices):
                each = each.swapaxes(1, 2) if name == "k" else each
                memory[f"{name}.own.{first + number}"][rows, cols] = each[None]
    if plan.padded:
        filled = ((plan.kv_blocks - 1) * across + np.arange(across)) * height
        real = np.clip(plan.shape.kv_length - filled, 0, height)
        masks = key_mask(real[:, None], plan.block, plan.place.sum_bits)
        memory["mask.own.0"][:] = masks[np.arange(plan.place.cols) % across]


def result(plan: FlatPlan, memory: TileBlocks) -> tuple[Integers, Integers]:
    """Output, shape (heads, rows, depth of V), and sums of rows, shape (heads, rows)."""
    roots, first = np.array(plan.diagonals("q")), plan.tiles.rows.start

    def part(name: str, stream: int, rows: slice, cols: slice) -> Integers:
        own = cols.start + roots[(rows.start - first) // plan.group[0]]
        found: Integers = memory[f"{name}.out.{stream}"][np.arange(rows.start, rows.stop), own]
        return found

    def heads(name: str) -> Integers:
        parts = [part(name, stream, *tiles) for stream, tiles, *_ in _places(plan)]
        whole: Integers = np.stack(parts).reshape(plan.shape.heads, -1, parts[0].shape[-1])
        return whole[:, : plan.shape.rows]

    return heads("o"), heads("total")[:, :, 0]


def _places(plan: FlatPlan) -> Iterator[tuple[int, tuple[slice, slice], int, int]]:
    """Of every stream its number in its group, that group, its head and its block of rows."""
    (rows, cols), across, first = plan.group, plan.groups[1], plan.tiles.rows.start
    for number in range(plan.shape.heads * plan.q_blocks):
        at, stream = divmod(number, plan.streams)
        down, right = divmod(at, across)
        row, col = first + down * rows, right * cols
        tiles = slice(row, row + rows), slice(col, col + cols)
        yield stream, tiles, *divmod(number, plan.q_blocks)
