"""Blocks that FlatAttention may cut a head into, compiled: rows and keys, from the largest on."""

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import allocating, compiled, forget_stale
from workloads.kernels.attention.shape import SAMPLES


@allocating
def blocks_of_keys(length: int, word: int, across: int) -> NDArray[np.int64]:
    """Keys of a block and how many there are, from the largest blocks to those of a key.

    Args:
        length: Keys of a head.
        word: Keys that are filled up to a multiple of this.
        across: Columns of a group.

    Returns:
        Shape (2, cuts).
    """
    keys, cut, cuts = -(-length // across), 1, [1]
    while cut < keys:
        cut = _next_cut(length, across, keys, cut)
        cuts.append(cut)
    found = np.empty((2, len(cuts)), dtype=np.int64)
    for number in range(len(cuts)):
        block = _keys_of_a_block(length, word, across, -(-keys // cuts[number]))
        found[0, number], found[1, number] = block, -(-length // (block * across))
    return found


@compiled
def _keys_of_a_block(length: int, word: int, cols: int, keys: int) -> int:
    """Whole words of them, but for a few that need no padding: a mask would cost more."""
    filled = -(-keys // word) * word
    few = filled % keys == 0 and length % (keys * cols) == 0
    return keys if few else filled


@compiled
def _next_cut(length: int, cols: int, keys: int, cut: int) -> int:
    """More blocks of keys of a column: without padding, if up to three times as many allow it.

    Else at least twice as many. No block is padding alone.
    """
    for more in range(cut + 1, min(3 * cut, keys) + 1):
        if length % (more * cols) == 0 and -(-keys // -(-keys // more)) == more:
            return more
    more = min(2 * cut, keys)
    while -(-keys // -(-keys // more)) != more:
        more += 1
    return more


@allocating
def causal_cuts(
    groups: NDArray[np.int64], rows: int, sharers: int, q_length: int, length: int, word: int
) -> NDArray[np.int64]:
    """Plans to try with a causal mask: all cuts of the rows and keys of a head, in each group.

    Blocks of keys that a block of rows sees are told by a sample.

    Args:
        groups: Rows and columns of each group to try; shape (groups, 2).
        rows: Of a head.
        sharers: Rows of a token.
        q_length: Tokens of a head.
        length: Keys of a head.
        word: Keys that are filled up to a multiple of this.

    Returns:
        Shape (8, plans): rows and keys of a block, blocks of rows and of keys, rows and columns of
        the group, blocks of keys that as many blocks of rows as the sample has see together, and
        the most that two of them see, as far from the head's begin as from its end.
    """
    keys = [blocks_of_keys(length, word, group[1]) for group in groups]
    count = 0
    for number in range(len(groups)):
        high = -(-rows // groups[number, 0])
        while True:
            count += keys[number].shape[1]
            if high == 1:
                break
            high = -(-high // 2)
    found = np.empty((8, count), dtype=np.int64)
    blocks = np.empty(SAMPLES, dtype=np.int64)
    end = 0
    for number in range(len(groups)):
        down, across = groups[number]
        high, q_blocks = -(-rows // down), 1
        while True:
            own = -(-high // q_blocks)
            for column in range(keys[number].shape[1]):
                wide, kv_blocks = keys[number][:, column]
                for sample in range(SAMPLES):
                    at = int(np.floor(sample * (1 / (SAMPLES - 1)) * (q_blocks - 1)))
                    last = min((at + 1) * down * own, rows) - 1
                    seen = length - q_length + 1 + last // sharers
                    blocks[sample] = -(-seen // (across * wide))
                paired = (blocks + blocks[::-1]).max()
                found[:, end] = own, wide, q_blocks, kv_blocks, down, across, blocks.sum(), paired
                end += 1
            if own == 1:
                break
            q_blocks *= 2
    return found[:, :end]


forget_stale(causal_cuts, blocks_of_keys)
