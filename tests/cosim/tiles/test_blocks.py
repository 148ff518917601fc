"""Blocks as words of a tile's scratchpad, and back."""

import numpy as np
import pytest

from cosim.tiles.blocks import decode, encode
from tlm.program import Buffer
from tlm.tiles.layout import BufferPlace, Order


@pytest.mark.parametrize("row_words", [4, 11])
def test_rows_of_sums_lie_as_far_apart_as_their_place_says(row_words: int) -> None:
    place = BufferPlace(Buffer(3, 6, 32), Order.SUMS, 0, (8, 8), row_words)
    block = np.arange(1, 19).reshape(3, 6)
    words = encode(place, block)
    assert len(words) == place.words
    # Two elements a word, the first one low; the third row begins two rows on.
    assert words[2 * row_words] == 13 + (14 << 32)
    assert not words[2 * row_words + 3 : 3 * row_words].any()
    assert decode(place, words).tolist() == block.tolist()
