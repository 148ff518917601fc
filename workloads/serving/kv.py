"""Paged key-value memory: blocks of 16 tokens, counted rather than placed.

A paged cache has no fragmentation between requests, so the number of free blocks is all that
decides admission and preemption.
"""

BLOCK_TOKENS = 16


def blocks_of(tokens: int) -> int:
    """Blocks that hold ``tokens`` tokens."""
    return -(-tokens // BLOCK_TOKENS)


class BlockPool:
    """Free and used blocks of a cache of ``capacity_tokens`` tokens (whole blocks count)."""

    def __init__(self, capacity_tokens: int) -> None:
        self.total = capacity_tokens // BLOCK_TOKENS
        self.free = self.total
        self.least_free = self.total

    @property
    def capacity_tokens(self) -> int:
        """Tokens that fit."""
        return self.total * BLOCK_TOKENS

    @property
    def peak_tokens(self) -> int:
        """Most tokens' worth of blocks ever in use."""
        return (self.total - self.least_free) * BLOCK_TOKENS

    def take(self, blocks: int) -> None:
        """Use free blocks.

        Raises:
            RuntimeError: if there are not as many: the caller's books are wrong.
        """
        if not 0 <= blocks <= self.free:
            raise RuntimeError(f"{blocks} blocks taken with {self.free} free")
        self.free -= blocks
        self.least_free = min(self.least_free, self.free)

    def give(self, blocks: int) -> None:
        """Return used blocks.

        Raises:
            RuntimeError: if more come back than are in use: the caller's books are wrong.
        """
        if not 0 <= blocks <= self.total - self.free:
            raise RuntimeError(f"{blocks} blocks returned with {self.total - self.free} in use")
        self.free += blocks
