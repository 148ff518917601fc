"""How blocks of integers lie in a tile's words (rtl/tile/descriptors.md)."""

import numpy as np
from numpy.typing import NDArray

from cosim.tiles.descriptors import Words
from tlm.tiles.layout import SUM_BITS, WORD_BITS, BufferPlace, Order

Block = NDArray[np.int64]


def encode(place: BufferPlace, block: Block) -> Words:
    """The block's words."""
    if place.order is Order.COLUMN:
        return rows_of(np.repeat(block, 2, axis=1))
    rows, columns = place.padded
    if place.order is Order.SUMS:  # which may lie apart
        columns = place.row_words * WORD_BITS // SUM_BITS
    padded = np.zeros((rows, columns), dtype=np.int64)
    padded[: block.shape[0], : block.shape[1]] = block
    if place.order is Order.LEFT:
        return panels(padded, place.buffer.bits)
    if place.order is Order.RIGHT:
        return panels(padded.T, place.buffer.bits)
    return rows_of(padded, place.buffer.bits)


def decode(place: BufferPlace, words: Words) -> Block:
    """The block of some words."""
    rows, columns = place.buffer.shape
    bits = place.buffer.bits
    if place.order is Order.LEFT:
        whole = block_of_panels(words, place.padded, bits)
    elif place.order is Order.RIGHT:
        whole = block_of_panels(words, place.padded[::-1], bits).T
    elif place.order is Order.COLUMN:
        whole = block_of(words, (rows, 1))
    else:
        whole = block_of(words, place.padded, bits)
    return whole[:rows, :columns]


def panels(block: Block, bits: int) -> Words:
    """Words of a block cut into panels of as many rows as a word holds elements.

    Word s of panel i holds column s of its rows, the first row lowest; rows that are missing are
    zero. This is A of an output-stationary product. B and a weight-stationary W are `panels` of
    their transpose, and so is A of a weight-stationary product.

    Args:
        block: Shape (rows, columns).
        bits: Bits of an element, which must hold all.

    Returns:
        Shape (panels * columns,).
    """
    size = WORD_BITS // bits
    rows, columns = block.shape
    padded = np.zeros((-(-rows // size) * size, columns), dtype=np.int64)
    padded[:rows] = block
    steps = padded.reshape(-1, size, columns).transpose(0, 2, 1)
    return _words(steps.reshape(-1, size), bits)


def rows_of(block: Block, bits: int = SUM_BITS) -> Words:
    """Words of a block row after row; a row is padded with zeros to whole words.

    Args:
        block: Shape (rows, columns).
        bits: Bits of an element, which must hold all.

    Returns:
        Shape (rows * words of a row,).
    """
    size = WORD_BITS // bits
    rows, columns = block.shape
    padded = np.zeros((rows, -(-columns // size) * size), dtype=np.int64)
    padded[:, :columns] = block
    return _words(padded.reshape(-1, size), bits)


def block_of(words: Words, shape: tuple[int, int], bits: int = SUM_BITS) -> Block:
    """The block that `rows_of` gave as words."""
    rows, columns = shape
    elements = words.astype("<u8").view(f"<i{bits // 8}").astype(np.int64)
    return elements.reshape(rows, -1)[:, :columns]


def block_of_panels(words: Words, shape: tuple[int, int], bits: int) -> Block:
    """The block that `panels` gave as words."""
    rows, columns = shape
    elements = words.astype("<u8").view(f"<i{bits // 8}").astype(np.int64)
    return (
        elements.reshape(-1, columns, WORD_BITS // bits)
        .transpose(0, 2, 1)
        .reshape(-1, columns)[:rows]
    )


def wrapped(block: Block, bits: int = SUM_BITS) -> Block:
    """Elements as two's complement of so many bits, wrapping."""
    half = 1 << (bits - 1)
    return (block + half) % (2 * half) - half


def _words(elements: Block, bits: int) -> Words:
    elements = np.ascontiguousarray(elements, dtype=f"<i{bits // 8}")
    return elements.view("<u8").astype(np.uint64).reshape(-1)
