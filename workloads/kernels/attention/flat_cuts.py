"""Blocks that FlatAttention may cut a head into, compiled: rows and keys, from the largest on."""

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import Numbers, allocating, compiled, forget_stale
from workloads.kernels.attention.flat_memory import Sizes, cut_bytes
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
    groups: NDArray[np.int64], sizes: Sizes, sharers: int, q_length: int, word: int, room: int
) -> NDArray[np.int64]:
    """Plans to try with a causal mask, of those that a tile has room for.

    They are cuts of the rows and keys of a head, in each group. Blocks of keys that a block of rows
    sees are told by a sample.

    Args:
        groups: Rows and columns of each group to try; shape (groups, 2).
        sizes: Of the problem.
        sharers: Rows of a token.
        q_length: Tokens of a head.
        word: Keys that are filled up to a multiple of this.
        room: Bytes of a tile.

    Returns:
        Shape (8, plans): rows and keys of a block, blocks of rows and of keys, rows and columns of
        the group, blocks of keys that as many blocks of rows as the sample has see together, and
        the most that two of them see, as far from the head's begin as from its end.
    """
    rows = q_length * sharers
    keys = [blocks_of_keys(sizes.keys, word, group[1]) for group in groups]
    most = 0
    for number in range(len(groups)):
        most += keys[number].shape[1] * 64  # rows are halved less often
    found = np.empty((8, most), dtype=np.int64)
    seen, blocks = np.empty(SAMPLES, dtype=np.int64), np.empty(SAMPLES, dtype=np.int64)
    end = 0
    for number in range(len(groups)):
        down, across = groups[number, 0], groups[number, 1]
        high, q_blocks = -(-rows // down), 1
        while True:
            own = -(-high // q_blocks)
            for sample in range(SAMPLES):
                at = int(np.floor(sample * (1 / (SAMPLES - 1)) * (q_blocks - 1)))
                last = min((at + 1) * down * own, rows) - 1
                seen[sample] = sizes.keys - q_length + 1 + last // sharers
            for column in range(keys[number].shape[1]):
                wide, kv_blocks = keys[number][0, column], keys[number][1, column]
                cut = own, wide, q_blocks, kv_blocks, down, across
                if cut_bytes(sizes, *cut) > room:
                    continue
                together, paired = _sampled(seen, blocks, across * wide)
                found[:, end] = *cut, together, paired
                end += 1
            if own == 1:
                break
            q_blocks *= 2
    return found[:, :end].copy()


@compiled
def _sampled(seen: Numbers[int], blocks: Numbers[int], keys: int) -> tuple[int, int]:
    """Blocks of so many keys that a sample sees, and the most that two of it do."""
    together = paired = 0
    for sample in range(SAMPLES):
        if sample and seen[sample] == seen[sample - 1]:
            blocks[sample] = blocks[sample - 1]
        else:
            blocks[sample] = -(-seen[sample] // keys)
        together += blocks[sample]
    for sample in range(SAMPLES // 2):
        paired = max(paired, blocks[sample] + blocks[SAMPLES - 1 - sample])
    return together, paired


forget_stale(causal_cuts, blocks_of_keys)
