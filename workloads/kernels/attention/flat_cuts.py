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
    lines: NDArray[np.int64], columns: NDArray[np.int64], sizes: Sizes, sharers: int,
    q_length: int, word: int, room: int, part: int,
) -> NDArray[np.int64]:  # fmt: skip
    """Plans to try with a causal mask, of those that a tile has room for.

    They are cuts of the rows and keys of a head, in each group. Blocks of keys that a block of rows
    sees are told by a sample.

    Args:
        lines: Rows of the groups to try.
        columns: Columns of the groups to try with each.
        sizes: Of the problem.
        sharers: Rows of a token.
        q_length: Tokens of a head.
        word: Keys that are filled up to a multiple of this.
        room: Bytes of a tile.
        part: Blocks of less than one part in so many of the largest before them are left out.

    Returns:
        Shape (8, plans): rows and keys of a block, blocks of rows and of keys, rows and columns of
        the group, blocks of keys that as many blocks of rows as the sample has see together, and
        the most that two of them see, as far from the head's begin as from its end.
    """
    rows = q_length * sharers
    keys = [blocks_of_keys(sizes.keys, word, across) for across in columns]
    halvings, most = 1, 0
    while rows >> halvings - 1:
        halvings += 1
    for own in keys:
        most += own.shape[1] * halvings * len(lines)
    found = np.empty((8, most), dtype=np.int64)
    seen, blocks = np.empty(SAMPLES, dtype=np.int64), np.empty(SAMPLES, dtype=np.int64)
    end = largest = 0
    for down in lines:
        for number in range(len(columns)):
            across, of_keys = columns[number], keys[number]
            high, q_blocks = -(-rows // down), 1
            while True:
                own = -(-high // q_blocks)
                for sample in range(SAMPLES):
                    at = int(np.floor(sample * (1 / (SAMPLES - 1)) * (q_blocks - 1)))
                    last = min((at + 1) * down * own, rows) - 1
                    seen[sample] = sizes.keys - q_length + 1 + last // sharers
                for column in range(of_keys.shape[1]):
                    wide, kv_blocks = of_keys[0, column], of_keys[1, column]
                    if own * wide < largest // part:
                        continue
                    cut = own, wide, q_blocks, kv_blocks, down, across
                    if cut_bytes(sizes, *cut) > room:
                        continue
                    largest = max(largest, own * wide)
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
        # As fractions, several at a time: exact below 2 to the 52.
        blocks[sample] = int(np.ceil(seen[sample] / keys))
        together += blocks[sample]
    for sample in range(SAMPLES // 2):
        paired = max(paired, blocks[sample] + blocks[SAMPLES - 1 - sample])
    return together, paired


forget_stale(causal_cuts, blocks_of_keys)
