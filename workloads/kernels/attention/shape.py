"""Shapes of attention, how rows and keys are cut into blocks, and which keys a row sees."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.program import Buffer
from tlm.program.arithmetic import Integers
from workloads.machine.place import Place

#: Blocks of rows, evenly over all of a head, that stand for the others in an estimate.
SAMPLES = 16


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Sizes of attention, in the order of ``--shape``.

    Attributes:
        batch: Sequences.
        q_heads: Heads of Q, a multiple of ``kv_heads``.
        kv_heads: Heads of K and V.
        q_length: Rows of Q of a head.
        kv_length: Rows of K and V of a head.
        qk_depth: Columns of Q and K.
        v_depth: Columns of V.
        latent: V is the first columns of K.
        causal: Rows of Q are of the last tokens, and none sees the keys of tokens after its own.

    Raises:
        InputError: for a size below 1, heads that cannot share, values that keys do not hold, or
            rows that see no key.
    """

    batch: int
    q_heads: int
    kv_heads: int
    q_length: int
    kv_length: int
    qk_depth: int
    v_depth: int
    latent: bool = False
    causal: bool = False

    def __post_init__(self) -> None:
        # As numbers: `dataclasses.astuple` copies deeply, which shows in a search.
        lengths = self.q_length, self.kv_length, self.qk_depth, self.v_depth
        sizes = self.batch, self.q_heads, self.kv_heads, *lengths
        if min(sizes) < 1:
            text = ",".join(map(str, sizes))
            raise InputError(f"--shape: found {text}; allowed: sizes of 1 or more")
        if self.q_heads % self.kv_heads:
            raise InputError(
                f"--shape: found {self.q_heads} heads of Q for {self.kv_heads} of K and V; "
                "allowed: a multiple"
            )
        if self.latent and (self.kv_heads > 1 or self.v_depth > self.qk_depth):
            raise InputError(
                f"--latent: found {self.kv_heads} heads of K and V, values of {self.v_depth} "
                f"elements in keys of {self.qk_depth}; allowed: one head, values no longer than "
                "keys"
            )
        if self.causal and self.q_length > self.kv_length:
            raise InputError(
                f"--causal: found {self.q_length} rows of Q on {self.kv_length} keys; allowed: no "
                "more rows than keys, of whose tokens they are the last"
            )

    @property
    def heads(self) -> int:
        """Problems of their own: heads of K and V over the batch."""
        return self.batch * self.kv_heads

    @property
    def sharers(self) -> int:
        """Heads of Q that share one of K and V."""
        return self.q_heads // self.kv_heads

    @property
    def rows(self) -> int:
        """Rows of Q of each: those of the heads that share K and V.

        They lie head after head; with a causal mask token after token, so that rows next to each
        other see about the same keys.
        """
        return self.q_length * self.sharers

    @property
    def macs(self) -> int:
        """Multiply-accumulates of rows with the keys that they see."""
        pairs = self.rows * self.kv_length
        if self.causal:
            pairs -= self.sharers * self.q_length * (self.q_length - 1) // 2
        return self.heads * pairs * (self.qk_depth + self.v_depth)

    def seen(self, row: int) -> int:
        """Keys that a row sees, the first ones; behind the last row as many as that."""
        if not self.causal:
            return self.kv_length
        return min(self.kv_length, self.kv_length - self.q_length + 1 + row // self.sharers)


@dataclass(frozen=True, slots=True)
class Block:
    """What a tile works on at a time.

    Attributes:
        rows: Rows of Q.
        keys: Rows of K and V.
        qk_depth: Columns of Q and K.
        v_depth: Columns of V.
    """

    rows: int
    keys: int
    qk_depth: int
    v_depth: int


class Pattern(NamedTuple):
    """Which keys of a block some rows see: row r the first ``seen + (phase + r) // sharers``."""

    seen: int
    phase: int


def extent(shape: AttentionShape, first: int, rows: int, keys: int) -> tuple[int, list[Pattern]]:
    """Blocks of so many keys that some rows see, and patterns of those not seen whole: the last.

    Args:
        shape: The problem.
        first: The first of the rows.
        rows: How many they are.
        keys: Keys of a block.
    """
    of_head = shape.rows, shape.sharers, shape.kv_length, shape.q_length - 1
    blocks, whole = blocks_seen(first, rows, keys, *of_head)
    token, phase = divmod(first, shape.sharers)
    seen = shape.kv_length - shape.q_length + 1 + token
    return blocks, [Pattern(seen - at * keys, phase) for at in range(whole, blocks)]


def blocks_seen(
    first: int, rows: int, keys: int, of_head: int, sharers: int, kv_length: int, unseen: int
) -> tuple[int, int]:
    """Blocks of so many keys that some rows see with a causal mask, and those that all of them see.

    Args:
        first: The first of the rows.
        rows: How many they are.
        keys: Keys of a block.
        of_head: Rows of a head; behind the last one as many keys are seen as by that.
        sharers: Rows of a token.
        kv_length: Keys of a head.
        unseen: Of these, those of tokens after the first row's.
    """
    last = min(first + rows, of_head) - 1
    blocks = -(-min(kv_length, kv_length - unseen + last // sharers) // keys)
    whole = min(kv_length, kv_length - unseen + first // sharers) // keys
    return blocks, min(whole, blocks)


class Seen(NamedTuple):
    """Blocks of keys that a head's blocks of rows see.

    Attributes:
        mean: Of one.
        paired: Of two, as far from the head's begin as from its end; the most.
    """

    mean: Any
    paired: Any


def seen_blocks(shape: AttentionShape, rows: Any, keys: Any, q_blocks: Any, length: Any) -> Seen:
    """How many blocks of so many keys blocks of rows see with a causal mask, by a sample.

    Args:
        shape: The problem; its keys do not matter.
        rows: Rows of a block, shape (cuts, 1).
        keys: Keys of a block, of any shape that broadcasts to (cuts, lengths).
        q_blocks: Blocks of rows, shape (cuts, 1).
        length: Keys of a head, like ``keys``.
    """
    at = np.floor(np.linspace(0, 1, SAMPLES) * (q_blocks - 1))
    last = np.minimum((at + 1) * rows, shape.rows) - 1
    seen = length - shape.q_length + 1 + (last // shape.sharers)[:, :, None]
    blocks = np.ceil(seen / keys)
    return Seen(blocks.mean(axis=1), (blocks + blocks[:, ::-1]).max(axis=1))


def filled_keys(place: Place, keys: int) -> int:
    """Keys of a block, filled up to whole words where the vector engine writes rows of words."""
    if not place.whole_lines:
        return keys
    word = max(1, 8 * place.timing.flit_bytes // place.element_bits)
    return ceil_div(keys, word) * word


def unseen_score(bits: int) -> int:
    """What is added to the score of a key that does not count: a quarter of the lowest number.

    No score of sums that do not wrap comes near it, and it leaves them room below.

    Args:
        bits: Width of sums.
    """
    return -(1 << (bits - 2))


def seen_of_tiles(
    pattern: Pattern, shape: AttentionShape, team: tuple[int, int], block: Block
) -> tuple[Integers, Integers]:
    """Of its keys those that the first and the last row of each tile see, of the shape of a team.

    Args:
        pattern: Of the rows and keys of all of them.
        shape: The problem.
        team: Rows and columns of tiles.
        block: What a tile works on.
    """
    rows = pattern.phase + block.rows * np.arange(team[0])[:, None]
    keys = pattern.seen - block.keys * np.arange(team[1])
    return rows // shape.sharers + keys, (rows + block.rows - 1) // shape.sharers + keys


def key_mask(seen: Integers, block: Block, bits: int) -> Integers:
    """What is added to scores: 0, or `unseen_score` where a key does not count.

    Args:
        seen: Keys of the block that count, the first ones: shape (tiles, rows), or (tiles, 1).
        block: What a tile works on.
        bits: Width of sums.

    Returns:
        Shape (tiles, rows, keys).
    """
    unseen = np.arange(block.keys) >= seen[:, :, None]
    mask = np.where(unseen, unseen_score(bits), 0)
    whole: Integers = np.broadcast_to(mask, (len(seen), block.rows, block.keys))
    return whole


def pattern_mask(pattern: Pattern, shape: AttentionShape, block: Block, bits: int) -> Integers:
    """The mask of a pattern: see `key_mask`; shape (rows, keys)."""
    seen = pattern.seen + (pattern.phase + np.arange(block.rows)) // shape.sharers
    mask: Integers = key_mask(seen[None], block, bits)[0]
    return mask


def token_by_token(shape: AttentionShape, rows: Integers) -> Integers:
    """A head's rows as they lie: from head after head to `AttentionShape.rows`."""
    return _turned(rows, shape.sharers) if shape.causal else rows


def head_by_head(shape: AttentionShape, rows: Integers) -> Integers:
    """The way back from `token_by_token`."""
    return _turned(rows, shape.q_length) if shape.causal else rows


def _turned(rows: Integers, lots: int) -> Integers:
    """Rows of some lots, one of each in turn."""
    return rows.reshape(lots, -1, rows.shape[-1]).swapaxes(0, 1).reshape(rows.shape)


def row_blocks(matrix: Integers, tiles: int, blocks: int, height: int) -> Integers:
    """Shape (blocks, tiles, height, columns): a head's rows, block by block, tile by tile."""
    padded = np.zeros((blocks * tiles * height, matrix.shape[1]), dtype=np.int64)
    padded[: len(matrix)] = matrix
    return padded.reshape(blocks, tiles, height, -1)


def offchip(name: str, buffer: Buffer, count: int) -> dict[str, Buffer]:
    """Buffers ``NAME.0``, ``NAME.1``, ... in off-chip memory."""
    return {f"{name}.{index}": replace(buffer, offchip=True) for index in range(count)}
