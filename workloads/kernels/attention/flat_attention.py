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
from itertools import product, zip_longest
from typing import Any

import numpy as np

from tlm.program import Buffer, Load, Operation, Program, Store, Token
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.attention.core import Bringing, Core
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.groups import Groups
from workloads.kernels.attention.items import Item
from workloads.kernels.attention.plan import put_masks
from workloads.kernels.attention.shape import head_by_head, offchip, row_blocks, token_by_token
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.inlets import outlet_tokens, store_totals
from workloads.kernels.parts.passes import Passes


def flat_attention(plan: FlatPlan) -> Program:
    """Program of all heads; stream i's output is in ``o.out.i``, its sums in ``total.out.i``."""
    place, core = plan.place, plan.core
    tokens, buffers = core.tokens(), core.buffers()
    for state in range(core.states):
        output = plan.outputs(plan.groups, state)[0]
        tokens |= output.tokens() | {f"o.{state}.left": Token(initial=1)}
        buffers |= output.buffers(buffers[f"o.{state}"])
    buffers |= offchip("q.own", buffers["q.0"], plan.streams)
    for name in plan.kept:
        block = replace(buffers[f"{name}.0"], offchip=True)
        brought = {one for _, each in plan.cores for one in _brought(plan, each)}
        buffers |= {f"{name}.own.{number}": block for number in sorted(brought)}
    if place.offchip is not None:
        tokens |= outlet_tokens()
        buffers |= {"total.to": buffers["total.0"]}
    for name in ("total", "o"):
        buffers |= offchip(f"{name}.out", buffers[f"{name}.0"], plan.streams)
    if plan.shape.causal:
        for name in core.mask_names:
            buffers |= offchip(f"{name}.own", buffers[f"{name}.0"], len(plan.patterns))
    for name in plan.multicasts:
        slots = {"q": core.states, "mask": 1}.get(name, plan.held)
        for index in range(slots):
            tokens |= plan.broadcasts(plan.groups, name, index)[0].tokens()
            tokens |= {f"{name}.in.{index}": Token()}

    def operations() -> Iterator[Operation]:
        # Groups that know nothing of each other go on side by side, as they do in time.
        every = [own.steps(_Bringing(plan, groups, own, buffers)) for groups, own in plan.cores]
        for steps in zip_longest(*every, fillvalue=()):
            for beside in zip_longest(*steps):
                yield from (each for each in beside if each is not None)

    return Program(place.rows, place.cols, tokens, operations, buffers)


@dataclass(frozen=True)  # without slots: the order of loads is kept
class _Bringing(Bringing):
    """Tiles of the diagonal load slices, and send them on."""

    plan: FlatPlan
    groups: Groups
    core: Core
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
        yield from self._own_mask(item)

    def begin(self, item: Item) -> Iterator[Operation]:
        """All for which there is room is asked for; the first keys are sent on."""
        yield from self._ask_queries(0)
        yield from self._ask("k", 0)
        yield from self._ask("mask", 0)
        yield from self._ask("v", 0)
        for stream in range(1, self.core.states):
            yield from self._ask_queries(stream)
        for load in range(1, self.plan.held):
            yield from self._ask("k", load)
        for load in range(1, self.plan.held):
            yield from self._ask("v", load)
        yield from self.keys(item)
        yield from self._own_mask(item)

    def keys(self, item: Item) -> Iterator[Operation]:
        """At a stream's first block behind Q; the mask behind the first."""
        core = self.core
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
        if item.last and self.core.states > 1:
            yield from self._ask_queries(item.stream + self.core.states)
        if item.frees and not self.plan.shared:
            yield from self._ask("k", item.load + self.plan.held)

    def behind(self, before: Item | None, after: Item | None) -> Iterator[Operation]:
        """What has room since the product with V of the item before."""
        if before is not None and before.frees:
            name = "k" if self.plan.shared else "v"
            yield from self._ask(name, before.load + self.plan.held)
        if after is not None:
            yield from self._own_mask(after)

    def finish(self, item: Item) -> Iterator[Operation]:
        """The output comes together at the diagonal, which puts it where it belongs."""
        plan, buffers = self.plan, self.buffers
        outputs = plan.outputs(self.groups, item.state)
        for each in outputs:
            yield from each.reduce()
        everywhere = Passes(self.core.tiles, plan.place, buffers, "output")
        total, out = f"total.out.{item.stream}", f"o.out.{item.stream}"
        there, free = (f"{outputs[0].name}.total",), (outputs[0].released,)
        memory, source = plan.place.offchip is not None, outputs[0].result
        if not memory:
            yield everywhere("scale", f"total.{item.state}", total)
        for root in self.groups.roots("q"):
            passes = replace(everywhere, tiles=root)
            if not memory:
                yield passes("scale", source, out, takes=there, gives=free)
                continue
            yield from store_totals(passes, item.state, total, plan.flits("total"))
            yield Store(
                root, plan.flits("o"), takes=there, gives=free, source=source, target=out,
                label=passes.label,
            )  # fmt: skip

    def _own_mask(self, item: Item) -> Iterator[Operation]:
        """Tiles of a group have causal masks of their own."""
        core, number = self.core, item.brought
        if not self.plan.shape.causal or number is None:
            return
        if core.parts:
            yield self.plan.brings(core.tiles, "unseen", number, 0)
        for tiles in core.parts.of(number) if core.parts else (core.tiles,):
            yield self.plan.brings(tiles, "mask", number, 0)

    def _ask_queries(self, stream: int) -> Iterator[Operation]:
        if stream < self.core.streams:
            yield from self._load("q", stream, stream % self.core.states)

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
        for root in self.groups.roots(name):
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
        for each in plan.broadcasts(self.groups, name, index):
            yield from replace(each, **how).operations()

    @cached_property
    def _numbers(self) -> list[int]:
        return _brought(self.plan, self.core)


def _brought(plan: FlatPlan, core: Core) -> list[int]:
    """Of each load the number of its block of keys among those that a group has."""
    brought = (item for item in core.items() if item.brings)
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
        own = token_by_token(plan.shape, q[head])
        parts = row_blocks(own, down, plan.q_blocks, plan.block.rows)
        memory[f"q.own.{stream}"][rows, cols] = parts[block][:, None]
        for name in plan.kept:
            slices = row_blocks((k if name == "k" else v)[head], across, plan.kv_blocks, height)
            first = stream // plan.alike * plan.kv_blocks
            seen = plan.extents[block][0] if plan.shape.causal else plan.kv_blocks
            for number, each in enumerate(slices[:seen]):
                each = each.swapaxes(1, 2) if name == "k" else each
                memory[f"{name}.own.{first + number}"][rows, cols] = each[None]
    put_masks(plan, memory)


def result(plan: FlatPlan, memory: TileBlocks) -> tuple[Integers, Integers]:
    """Output, shape (heads, rows, depth of V), and sums of rows, shape (heads, rows)."""
    roots, first = np.array(plan.groups.diagonals("q")), plan.tiles.rows.start
    shape = plan.shape

    def part(name: str, stream: int, rows: slice, cols: slice) -> Integers:
        own = cols.start + roots[(rows.start - first) // plan.group[0]]
        found: Integers = memory[f"{name}.out.{stream}"][np.arange(rows.start, rows.stop), own]
        return found.reshape(-1, found.shape[-1])

    def heads(name: str) -> Integers:
        parts = {
            (head, block): part(name, stream, *tiles)
            for stream, tiles, head, block in _places(plan)
        }
        every = [
            np.concatenate([parts[head, block] for block in range(plan.q_blocks)])[: shape.rows]
            for head in range(shape.heads)
        ]
        return np.stack([head_by_head(shape, rows) for rows in every])

    return heads("o"), heads("total")[:, :, 0]


def _places(plan: FlatPlan) -> Iterator[tuple[int, tuple[slice, slice], int, int]]:
    """Of every stream its number in its group, that group, its head and its block of rows."""
    (rows, cols), groups = plan.group, plan.groups
    for (down, right), own in zip(product(groups.down, groups.across), plan.dealt, strict=True):
        row, col = down * rows, right * cols
        tiles = slice(row, row + rows), slice(col, col + cols)
        for stream, (head, block) in enumerate(own):
            yield stream, tiles, head, block
