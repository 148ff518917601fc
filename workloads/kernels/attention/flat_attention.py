"""FlatAttention: groups of tiles, each of which works on a head together.

A head's block of Q lies over the rows of a group, its block of keys and values over the columns.
Slices come from off-chip memory to the tiles of the diagonal, which multicast those of Q along
their rows and those of K and V along their columns. Maxima and sums of rows are all-reduced along
the rows of tiles, and the output is reduced to the diagonal at the end of a stream. ``naive`` does
one after the other; ``async`` has two streams under way, so that matrix products of one hide the
rest of the other: two heads, or two blocks of rows of one, which share its keys and values.

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
from typing import Any, Literal

import numpy as np

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Load, Operation, Program, Store, Token
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.attention.core import Bringing, Core, in_place
from workloads.kernels.attention.items import Item
from workloads.kernels.attention.plan import AttentionPlan, Cut, held
from workloads.kernels.attention.shape import AttentionShape, Block, key_mask, offchip, row_blocks
from workloads.kernels.parts.broadcast import BY_MESSAGES, Broadcast
from workloads.kernels.parts.collectives import (
    Reduction,
    all_reduce_messages,
    reduce_messages,
)
from workloads.kernels.parts.inlets import outlet_tokens, store_totals
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.passes import Factor, Passes
from workloads.kernels.parts.pieces import Pieces
from workloads.kernels.vector.softmax import diagonal
from workloads.machine.moved import Moved
from workloads.machine.place import Place

SCHEDULES = ("naive", "async")


@dataclass(frozen=True)  # without slots: the work of a tile is kept
class FlatPlan(AttentionPlan):
    """Attention on groups of tiles.

    Attributes:
        place: The grid.
        shape: The problem.
        block: What a tile works on at a time.
        q_blocks: Blocks into which the rows of a head are cut beside the rows of a group.
        kv_blocks: Blocks of keys beside the columns of a group, the last of them filled up.
        group: Rows and columns of a group, of which the grid's are whole numbers.
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
    group: tuple[int, int]
    method: str
    schedule: str
    exponent: Factor
    operands: str = "network"

    @property
    def cut(self) -> Cut:
        """How rows and keys are cut."""
        block, turns = self.block, 2 if self.schedule == "async" else 1
        blocks = self.q_blocks, self.kv_blocks
        return Cut(block.rows, block.keys, *blocks, self.group[1], turns, self.shape.kv_length)

    @property
    def depth(self) -> int:
        """Blocks under way at a time."""
        return 2 if self.schedule == "async" and self.streams * self.kv_blocks > 1 else 1

    @property
    def padded(self) -> bool:
        """Whether a stream's last blocks have keys that are padding."""
        return self.block.keys * self.kv_blocks * self.group[1] > self.shape.kv_length

    @cached_property
    def streams(self) -> int:
        """Blocks of rows of Q that a group goes through, of one head after the other."""
        return ceil_div(self.shape.heads * self.q_blocks, self.most_groups)

    @property
    def alike(self) -> int:
        """Streams of one head, one after the other, in every group."""
        return int(_alike(self.streams, self.q_blocks))

    @property
    def loads(self) -> int:
        """See `AttentionPlan`: streams of a head that take turns share what is brought."""
        return int(_loads(self.cut, self.streams, min(self.depth, self.streams)))

    @property
    def groups(self) -> tuple[int, int]:
        """Rows and columns of groups that have streams: the last of the grid."""
        needed = ceil_div(self.shape.heads * self.q_blocks, self.streams)
        across = min(needed, self.place.cols // self.group[1])
        return ceil_div(needed, across), across

    @property
    def most_groups(self) -> int:
        """Groups that the grid has."""
        return (self.place.rows // self.group[0]) * (self.place.cols // self.group[1])

    @property
    def tiles(self) -> TileSet:
        """Tiles of these groups."""
        (down, across), (rows, cols) = self.groups, self.group
        return TileSet(range(self.place.rows - down * rows, self.place.rows), range(across * cols))

    @property
    def balance(self) -> float:
        """Cycles of a block's products over the flits that a tile of the diagonal sends for it."""
        flits = self.flits
        sent = flits("k") + flits("v") + (flits("q") + flits("o")) / self.kv_blocks
        return (self.core.scores_cycles + self.core.output_cycles) / sent

    @property
    def pieces(self) -> Pieces:
        """The tiles of a group share a block of rows."""
        size = {"rows": self.block.rows, "keys": self.block.keys}
        return Pieces(self.group, size, {"rows": self.streams, "keys": self.kv_blocks})

    @cached_property
    def core(self) -> Core:
        """The work of a tile."""
        return Core(
            tiles=self.tiles,
            place=self.place,
            block=self.block,
            depth=self.depth,
            blocks=(self.kv_blocks,) * self.streams,
            exponent=self.exponent,
            held=self.held,
            shared=self.shared,
            masks=((0,),) * self.streams if self.padded else (),
            maximum=self._all_reductions("top", "maximum"),
            total=self._all_reductions("sum", "sum"),
            alike=self.alike,
        )

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes, whose results lie elsewhere."""
        return int(needed_bytes(self, self.cut))

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        flits, (rows, cols) = self.flits, self.group
        items, groups = self.streams * self.kv_blocks, self.groups[0] * self.groups[1]
        mask = flits("mask") if self.padded else 0
        kept = self.loads * (flits("k") + flits("v")) + mask
        read = self.streams * rows * flits("q") + cols * kept
        written = self.streams * rows * (flits("o") + flits("total"))
        # All tiles take in what is multicast, but for roots that send messages; rows what comes
        # together.
        own = self.operands in BY_MESSAGES and self.place.offchip is not None
        taken = rows * (cols - own) * self.streams * flits("q") + cols * (rows - own) * kept
        summed = rows * self.streams * reduce_messages(self.outputs(0)[0]) * flits("o")
        for each in (self.core.maximum[0], self.core.total[0]):
            summed += rows * items * all_reduce_messages(each) * each.flits
        unit = groups * self.place.timing.flit_bytes
        return Moved(read * unit, written * unit, (read + taken + summed) * unit)

    def lines(self, name: str) -> list[Lines]:
        """Rows of tiles along which slices of ``q`` go, or columns of others; each of a group."""
        (rows, cols), (down, across) = (self.tiles.rows, self.tiles.cols), self.group
        if name == "q":
            return [Lines("row", rows, across, first) for first in cols[::across]]
        return [Lines("column", cols, down, first) for first in rows[::down]]

    def diagonals(self, name: str) -> list[list[int]]:
        """Places of the roots on the lines of each group of a column of groups, or of a row.

        Roots of ``q`` are in other columns of one group than of the next below where columns are
        more than rows: each channel has as many of them as another.
        """
        (rows, cols), (down, across) = self.group, self.groups
        if name != "q":
            return [diagonal(cols, rows)] * across
        apart, places = max(1, cols // rows), diagonal(rows, cols)
        return [[place + number % apart for place in places] for number in range(down)]

    def _roots(self, name: str) -> tuple[int, ...]:
        """Their places on all lines, one after the other."""
        return tuple(chain.from_iterable(self.diagonals(name)))

    def roots(self, name: str) -> list[TileSet]:
        """Tiles that multicast slices of ``q``, ``k``, ``v`` or the ``mask``: one of each group."""
        tiles, (rows, cols) = self.tiles, self.group
        if name != "q":
            places = enumerate(self.diagonals(name)[0])
            return [TileSet(tiles.rows[row::rows], tiles.cols[col::cols]) for col, row in places]
        alike = min(max(1, cols // rows), self.groups[0])  # groups whose roots are in other columns
        return [
            TileSet(tiles.rows[number * rows + row :: alike * rows], tiles.cols[col::cols])
            for number, places in enumerate(self.diagonals(name)[:alike])
            for row, col in enumerate(places)
        ]

    def broadcasts(self, name: str, index: int) -> list[Broadcast]:
        """Of slices of ``q`` along rows, of others along columns, to the buffer of a number."""
        target, there = f"{name}.{index}", f"{name}.there.{index}"
        return [
            Broadcast(
                lines,
                self._roots(name),
                self.operands,
                self.flits(name),
                source="",
                target=target,
                free=(f"{name}.free.{index}",),
                there=there,
                label=name,
            )
            for lines in self.lines(name)
        ]

    @property
    def multicasts(self) -> tuple[str, ...]:
        """What is multicast from the diagonal."""
        return ("q", *self.kept, *(("mask",) if self.padded else ()))

    @property
    def kept(self) -> tuple[str, ...]:
        """What is multicast for every block of keys."""
        return ("k",) if self.shared else ("k", "v")

    def outputs(self, state: int) -> list[Reduction]:
        """The reductions of a stream's output to the diagonal, in each column of groups."""
        output, passes = f"o.{state}", self.place.vector.pass_cycles
        cycles, there = passes(self.block.rows, self.block.v_depth), f"o.there.{state}"
        how = self._roots("q"), self.method, "o.sum", output, there, self.flits("o"), cycles
        return [Reduction(lines, *how, left=f"{output}.left") for lines in self.lines("q")]

    def _all_reductions(
        self, name: str, operation: Literal["sum", "maximum"]
    ) -> tuple[Reduction, ...]:
        """Of ``top`` or ``sum`` along the rows of each column of groups."""
        flits = self.place.flits(self.block.rows, 1, self.place.sum_bits)
        cycles = self.place.vector.pass_cycles(self.block.rows, 1)
        how = self._roots("q"), self.method, name, name, f"{name}.there", flits, cycles, operation
        return tuple(Reduction(lines, *how) for lines in self.lines("q"))


def _alike(streams: Any, q_blocks: Any) -> Any:
    """`FlatPlan.alike` of so many streams, of heads cut into so many blocks of rows."""
    part = np.where(q_blocks % streams == 0, streams, 1)
    return np.where(streams % q_blocks == 0, q_blocks, part)


def _loads(cut: Cut, streams: Any, states: Any) -> Any:
    """`FlatPlan.loads` of so many streams, some of which are under way at a time."""
    alike = _alike(streams, cut.q_blocks)
    turns = np.where(alike > 1, streams // alike * ceil_div(alike, states), streams)
    return turns * cut.kv_blocks


def needed_bytes(problem: FlatPlan, cut: Cut) -> Any:
    """`FlatPlan.tile_bytes` of cuts of a problem, whose own does not matter."""
    place, shape = problem.place, problem.shape
    sums, elements = place.sum_bits, place.element_bits

    def size(rows: Any, columns: Any, bits: int) -> Any:
        return ceil_div(rows * columns * bits, 8)

    streams = ceil_div(shape.heads * cut.q_blocks, problem.most_groups)
    depth = np.minimum(cut.turns, streams * cut.kv_blocks)
    column, output = size(cut.rows, 1, sums), size(cut.rows, shape.v_depth, sums)
    q = size(cut.rows, shape.qk_depth, elements)
    kv = size(shape.qk_depth, cut.keys, elements)
    if not problem.shared:
        kv = kv + size(cut.keys, shape.v_depth, elements)
    scores = size(cut.rows, cut.keys, sums)
    powers = 0 if in_place(place) else size(cut.rows, cut.keys, elements)
    mask = np.where(cut.keys * cut.kv_blocks * cut.run > cut.length, scores, 0)
    # What comes together: the sum, or two parts that come.
    parts = 1 if problem.method == "network" else 2
    states = np.minimum(depth, streams)
    kept = held(problem, depth, _loads(cut, streams, states)) * kv
    items = states * (q + output + 2 * column) + depth * (scores + powers) + kept
    copied = column if place.offchip is not None else 0
    return (4 + 2 * parts) * column + parts * output + mask + items + copied


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
        if item.first:
            yield from self._send("q", item.stream, item.state)
        if item.brings:
            yield from self._send("k", item.load, item.held)
        if self.plan.padded and item.stream == item.block == 0:
            yield from self._send("mask", 0, 0)

    def within(self, item: Item) -> Iterator[Operation]:
        """Values, and what has room since the item's scores."""
        yield from self._send_values(item)
        if item.last:
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
