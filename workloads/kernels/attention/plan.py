"""What a tile has to do in all by a plan of attention, whatever brings it its blocks."""

from abc import ABC, abstractmethod

from workloads.kernels.attention.core import Block, Core


class AttentionPlan(ABC):
    """Streams through blocks of keys and values.

    Attributes:
        block: What a tile works on at a time.
        kv_blocks: Blocks of keys.
    """

    __slots__ = ()

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
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile, those of padding among them."""
        block = self.block
        each = block.rows * block.keys * (block.qk_depth + block.v_depth)
        return each * self.streams * self.kv_blocks

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's products."""
        cycles = self.core.scores_cycles + self.core.output_cycles
        return cycles * self.streams * self.kv_blocks

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of the passes that every tile makes, reductions and results apart."""
        core = self.core
        later = (self.kv_blocks - 1) * core.softmax_cycles(first=False)
        return (core.softmax_cycles(first=True) + later + core.mask_cycles) * self.streams
