"""How attention is cut over tiles, whatever brings them their blocks."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tlm.compiled import law
from tlm.interconnect.packets import TileSet
from tlm.program import Load, Operation, Send
from tlm.program.functional import TileBlocks
from workloads.kernels.attention.core import Core, products, softmax_cycles
from workloads.kernels.attention.shape import (
    AttentionShape,
    Block,
    Pattern,
    extent,
    key_mask,
    pattern_mask,
    seen_of_tiles,
    unseen_score,
)
from workloads.machine.place import Place, block_flits


class Cut(NamedTuple):
    """How the rows and keys of a head are cut: numbers, or arrays of candidates that broadcast."""

    rows: Any  # rows of a block
    keys: Any  # its keys
    q_blocks: Any  # blocks of rows of a head, of tiles that work on it side by side
    kv_blocks: Any  # blocks of keys of a tile
    run: Any  # tiles that share a stream's keys
    turns: Any  # blocks that a tile has under way, if there are as many
    length: Any  # keys of a head


class TileWork(NamedTuple):
    """Of a tile.

    Attributes:
        streams: Blocks of rows of a head.
        items: Blocks of keys, of all streams.
        masked: Of these, masked ones.
    """

    streams: int
    items: int
    masked: int


class AttentionPlan(ABC):
    """Streams through blocks of keys and values.

    Attributes:
        place: The grid.
        shape: The problem.
        block: What a tile works on at a time.
        q_blocks: Blocks into which the rows of a head are cut.
        kv_blocks: Blocks of keys.
    """

    __slots__ = ()

    place: Place
    shape: AttentionShape
    block: Block
    q_blocks: int
    kv_blocks: int

    @property
    @abstractmethod
    def streams(self) -> int:
        """Blocks of rows that a tile goes through, one after the other."""

    @property
    @abstractmethod
    def core(self) -> Core:
        """The work of a tile."""

    @property
    @abstractmethod
    def team(self) -> tuple[int, int]:
        """Rows and columns of the tiles that work on a block of rows together."""

    @property
    def mask_parts(self) -> bool:
        """Whether tiles share causal masks: each brings a part of one, if it has any."""
        return False

    @property
    def span(self) -> Block:
        """What they work on at a time."""
        rows, cols = self.team
        block = self.block
        return Block(rows * block.rows, cols * block.keys, block.qk_depth, block.v_depth)

    @cached_property
    def extents(self) -> list[tuple[int, list[Pattern]]]:
        """Of each block of rows of a head the blocks of keys that it sees, and their masks."""
        rows, keys = self.span.rows, self.span.keys
        return [extent(self.shape, at * rows, rows, keys) for at in range(self.q_blocks)]

    @cached_property
    def patterns(self) -> dict[Pattern, int]:
        """All masks of a causal plan, and the number of each."""
        found = sorted({pattern for _, patterns in self.extents for pattern in patterns})
        return {pattern: number for number, pattern in enumerate(found)}

    def masks(self, row_blocks: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Numbers of the masks of streams with a causal mask, as `Core` has them."""
        extents = (self.extents[block] for block in row_blocks)
        return tuple(tuple(self.patterns[one] for one in patterns) for _, patterns in extents)

    @cached_property
    def partly(self) -> list[list[tuple[int, int]]]:
        """Of each mask the tiles of a team that see some of their keys alone."""
        found = []
        for pattern in self.patterns:
            first, last = seen_of_tiles(pattern, self.shape, self.team, self.block)
            rows, cols = np.nonzero((first < self.block.keys) & (last > 0))
            found.append([*zip(rows.tolist(), cols.tolist(), strict=True)])
        return found

    def brings(self, tiles: TileSet, name: str, number: int, index: int) -> Operation:
        """Each of some tiles brings the ``number``-th block of its kind into a buffer."""
        free, there = (f"{name}.free.{index}",), (f"{name}.there.{index}",)
        how: dict[str, Any] = {"source": f"{name}.own.{number}", "target": f"{name}.{index}"}
        how |= {"arrivals": there, "label": name}
        if self.place.offchip is not None:
            return Load(tiles, self.flits(name), takes=free, **how)
        # As if it lay in the tile.
        rows, cols = np.array(tiles.rows), np.array(tiles.cols)
        return Send(tiles, rows, cols, self.flits(name), slots=free, **how)

    @property
    def shared(self) -> bool:
        """Whether values are taken from the blocks of keys."""
        return shares(self.place, self.shape)

    @property
    def held(self) -> int:
        """Blocks of keys, and of values, that a tile has room for."""
        return int(held_blocks(self.shared, self.depth, self.loads))

    @property
    def loads(self) -> int:
        """Blocks of keys that are brought to a tile, one after the other."""
        return self.items

    @property
    def items(self) -> int:
        """Blocks of keys that a tile works on, of all its streams; of the tile with the most."""
        return self.streams * self.kv_blocks

    @property
    @abstractmethod
    def depth(self) -> int:
        """Blocks under way at a time."""

    @property
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile, those of padding among them."""
        block = self.block
        each = block.rows * block.keys * (block.qk_depth + block.v_depth)
        return each * self.items

    @property
    @abstractmethod
    def work(self) -> TileWork:
        """Of a tile with the most."""

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's products."""
        return sum(products(self.place, self.block)) * self.items

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of the passes that every tile makes, reductions and results apart."""
        place, block, (streams, items, masked) = self.place, self.block, self.work
        first, later = (softmax_cycles(place, block, first=first) for first in (True, False))
        # Of tiles that share a block each has a part of the mask, and a column beside it.
        passes = 2 if self.mask_parts else 1
        mask = passes * place.vector.pass_cycles(block.rows, block.keys)
        return streams * first + (items - streams) * later + masked * mask

    def flits(self, name: str) -> int:
        """Flits of a block of ``q``, ``k``, ``v``, of a mask, the output ``o``, its ``total``.

        Of ``v`` none if it is taken from ``k``.
        """
        return self.all_flits[NAMES.index(name)]

    @cached_property
    def all_flits(self) -> tuple[int, ...]:
        """The same of all of them, in the order of `NAMES`."""
        of, rows, keys = widths(self), self.block.rows, self.block.keys
        return tuple(int(flits_of(of, number, rows, keys)) for number in range(len(NAMES)))


def shares(place: Place, shape: AttentionShape) -> bool:
    """Whether values are taken from the blocks of keys; not where words hold parts of lines."""
    return shape.latent and not place.whole_lines


@law
def held_blocks(shared: bool, depth: Any, loads: Any) -> Any:
    """`AttentionPlan.held` of so many blocks under way at a time, and brought in all.

    Keys that stay until their values have been used leave no room for the next, but in one more.
    """
    return np.minimum(depth + 1 if shared else depth, loads)


class Widths(NamedTuple):
    """What decides how many flits blocks of rows and keys have.

    Attributes:
        qk_depth: Columns of Q and K.
        v_depth: Columns of V.
        element_bits: Bits of an operand.
        sum_bits: Bits of a sum.
        flit_bits: Bits of a flit.
        whole_lines: Whether each line begins in a flit of its own.
        shared: Whether values are taken from the blocks of keys.
    """

    qk_depth: int
    v_depth: int
    element_bits: int
    sum_bits: int
    flit_bits: int
    whole_lines: bool
    shared: bool


#: Blocks by name, and their numbers for compiled code.
NAMES = ("q", "k", "v", "o", "mask", "unseen", "total")
_Q, _K, _V, _O, _MASK, _UNSEEN, _TOTAL = range(len(NAMES))


def widths(problem: AttentionPlan) -> Widths:
    """Those of a problem's blocks."""
    place, shape = problem.place, problem.shape
    return Widths(
        shape.qk_depth, shape.v_depth, place.element_bits, place.sum_bits,
        8 * place.timing.flit_bytes, place.whole_lines, problem.shared,
    )  # fmt: skip


def flits(problem: AttentionPlan, name: str, rows: Any, keys: Any) -> Any:
    """Flits of a block of so many rows and keys: see `AttentionPlan.flits`."""
    return flits_of(widths(problem), NAMES.index(name), rows, keys)


@law
def flits_of(of: Widths, block: int, rows: Any, keys: Any) -> Any:
    """`flits` of a block by its number in `NAMES`."""
    if block == _V and of.shared:
        return 0 * keys
    bits = of.element_bits if block in (_Q, _K, _V) else of.sum_bits
    lines, elements = rows, 1
    if block == _Q:
        lines, elements = of.qk_depth, rows
    elif block == _K:
        lines, elements = of.qk_depth, keys
    elif block == _V:
        lines, elements = keys, of.v_depth
    elif block == _O:
        elements = of.v_depth
    elif block == _MASK:
        elements = keys
    return block_flits(of.whole_lines, of.flit_bits, lines, elements, bits)


def put_masks(plan: AttentionPlan, memory: TileBlocks) -> None:
    """Put the masks of a plan where its program expects them, if it has any."""
    place, (down, across), block = plan.place, plan.team, plan.block
    rows, cols = np.arange(place.rows) % down, np.arange(place.cols) % across
    if plan.shape.causal:
        for pattern, number in plan.patterns.items():
            mask = pattern_mask(pattern, plan.shape, plan.span, place.sum_bits)
            parts = mask.reshape(down, block.rows, across, block.keys).swapaxes(1, 2)
            memory[f"mask.own.{number}"][:] = parts[rows[:, None], cols]
            if plan.core.parts:
                _, last = seen_of_tiles(pattern, plan.shape, plan.team, block)
                unseen = np.where(last > 0, 0, unseen_score(place.sum_bits))[rows[:, None], cols]
                memory[f"unseen.own.{number}"][:] = unseen[:, :, None, None]
    elif plan.core.padded:
        first = ((plan.kv_blocks - 1) * across + np.arange(across)) * block.keys
        real = np.clip(plan.shape.kv_length - first, 0, block.keys)
        memory["mask.own.0"][:] = key_mask(real[:, None], block, place.sum_bits)[cols]
