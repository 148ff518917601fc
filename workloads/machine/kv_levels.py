"""Levels of key-value memory of a place. It is paged: blocks are counted rather than placed."""

from typing import NamedTuple

BLOCK_TOKENS = 16


class KvLevels(NamedTuple):
    """What keys and values have of a place, level by level, in bytes of all its tiles together.

    Attributes:
        sram: Of the tiles' own memory, set aside: kernels have the rest for their buffers.
        memory: Of off-chip memory, beside the weights.
    """

    sram: int = 0
    memory: int = 0

    def sram_tokens(self, bytes_per_token: int) -> int:
        """Tokens of a model that the tiles' own memory has room for."""
        return self.sram // bytes_per_token

    def memory_tokens(self, bytes_per_token: int) -> int:
        """Tokens that off-chip memory has room for, in whole blocks."""
        return self.memory // bytes_per_token // BLOCK_TOKENS * BLOCK_TOKENS


def blocks_of(tokens: int) -> int:
    """Blocks that hold ``tokens`` tokens."""
    return -(-tokens // BLOCK_TOKENS)
