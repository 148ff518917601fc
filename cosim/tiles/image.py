"""What a tile is loaded with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.tiles.descriptors import DESCRIPTOR_WORDS, Descriptor, Words
from tlm.program.operations import Engine

#: Addresses and the words that go there.
Load = tuple[NDArray[np.uint16], Words]


@dataclass(slots=True)
class TileImage:
    """What a tile is loaded with before a run.

    Attributes:
        queues: Descriptors of each engine, in order.
        tokens: Units of tokens that are there from the start.
        memory: Words of the scratchpad by their first address.
    """

    queues: dict[Engine, list[Descriptor]] = field(default_factory=dict)
    tokens: dict[int, int] = field(default_factory=dict)
    memory: dict[int, Words] = field(default_factory=dict)

    def loads(self, queue_depth: int) -> tuple[Load, Load, Load]:
        """What is loaded into the scratchpad, the queues and the tokens, in this order.

        Args:
            queue_depth: Descriptors that a queue of the tile holds.

        Returns:
            Of each, addresses as rtl/tile/tile.sv has them, and words.

        Raises:
            InputError: for a descriptor that cannot be encoded.
        """
        queue_words = queue_depth * DESCRIPTOR_WORDS
        descriptors = {
            engine * queue_words: np.concatenate([item.encode() for item in queue])
            for engine, queue in self.queues.items()
            if queue
        }
        tokens = {token: np.array([units]) for token, units in self.tokens.items()}
        return _joined(self.memory), _joined(descriptors), _joined(tokens)


def _joined(blocks: Mapping[int, NDArray[Any]]) -> Load:
    """Addresses and words of blocks by their first address."""
    addresses = [np.arange(first, first + len(words)) for first, words in blocks.items()]
    return (
        np.concatenate([[], *addresses]).astype(np.uint16),
        np.concatenate(
            [np.zeros(0, np.uint64), *(words.astype(np.uint64) for words in blocks.values())]
        ),
    )
