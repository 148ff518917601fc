"""Blocks of key-value memory, which is paged: counted rather than placed."""

BLOCK_TOKENS = 16


def blocks_of(tokens: int) -> int:
    """Blocks that hold ``tokens`` tokens."""
    return -(-tokens // BLOCK_TOKENS)
