"""Blocks as words, in the order in which a buffer's place holds them."""

import numpy as np

from cosim.tiles.descriptors import Words
from cosim.tiles.layout import Block, block_of, block_of_panels, panels, rows_of
from tlm.tiles.layout import BufferPlace, Order


def encode(place: BufferPlace, block: Block) -> Words:
    """The block's words."""
    if place.order is Order.COLUMN:
        return rows_of(np.repeat(block, 2, axis=1))
    padded = np.zeros(place.padded, dtype=np.int64)
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
