"""How attention is cut over tiles, whatever brings them their blocks."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from workloads.kernels.attention.core import Core
from workloads.kernels.attention.shape import AttentionShape, Block
from workloads.machine.place import Place


class Cut(NamedTuple):
    """How the rows and keys of a head are cut: numbers, or arrays of candidates that broadcast."""

    rows: Any  # rows of a block
    keys: Any  # its keys
    q_blocks: Any  # blocks of rows of a head, of tiles that work on it side by side
    kv_blocks: Any  # blocks of keys of a tile
    run: Any  # tiles that share a stream's keys
    turns: Any  # blocks that a tile has under way, if there are as many
    length: Any  # keys of a head


class AttentionPlan(ABC):
    """Streams through blocks of keys and values.

    Attributes:
        place: The grid.
        shape: The problem.
        block: What a tile works on at a time.
        kv_blocks: Blocks of keys.
    """

    __slots__ = ()

    place: Place
    shape: AttentionShape
    block: Block
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
    def shared(self) -> bool:
        """Whether values are taken from the blocks of keys; not where words hold parts of lines."""
        return self.shape.latent and not self.place.whole_lines

    @property
    def held(self) -> int:
        """Blocks of keys, and of values, that a tile has room for."""
        return int(held(self, self.depth, self.loads))

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
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's products."""
        cycles = self.core.scores_cycles + self.core.output_cycles
        return cycles * self.items

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of the passes that every tile makes, reductions and results apart."""
        core = self.core
        first, later = (core.softmax_cycles(first=first) for first in (True, False))
        masked = sum(map(len, core.masks)) * core.mask_cycles
        return core.streams * first + (self.items - core.streams) * later + masked

    def flits(self, name: str) -> int:
        """Flits of a block of ``q``, ``k``, ``v``, ``mask``, the output ``o``, its ``total``.

        Of ``v`` none if it is taken from ``k``.
        """
        return int(flits(self, name, self.block.rows, self.block.keys))


def held(problem: AttentionPlan, depth: Any, loads: Any) -> Any:
    """`AttentionPlan.held` of so many blocks under way at a time, and brought in all.

    Keys that stay until their values have been used leave no room for the next, but in one more.
    """
    return np.minimum(depth + 1 if problem.shared else depth, loads)


def flits(problem: AttentionPlan, name: str, rows: Any, keys: Any) -> Any:
    """Flits of a block of so many rows and keys: see `AttentionPlan.flits`."""
    place, shape = problem.place, problem.shape
    if name == "v" and problem.shared:
        return 0 * keys
    lines, elements = {
        "q": (shape.qk_depth, rows),
        "k": (shape.qk_depth, keys),
        "v": (keys, shape.v_depth),
        "o": (rows, shape.v_depth),
        "total": (rows, 1),
        "mask": (rows, keys),
    }[name]
    bits = place.sum_bits if name in ("o", "total", "mask") else place.element_bits
    return place.flits(lines, elements, bits)
