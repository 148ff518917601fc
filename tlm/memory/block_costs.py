"""How long blocks hold the data bus of a channel that is not always at its peak."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class BlockCosts:
    """What the bus could have moved at its peak while it moves blocks of some lengths, in bytes.

    Between the lengths it is on a straight line, from nothing on; past them it goes on as the last
    line does. Lengths rise, and so do costs.

    Attributes:
        lengths: Of blocks, in bytes; two or more.
        loads: What each of them costs if it is read.
        stores: If it is written.
    """

    lengths: tuple[int, ...]
    loads: tuple[float, ...]
    stores: tuple[float, ...]

    def busy_bytes(self, length_bytes: Any, *, writes: bool) -> Any:
        """What a block costs, in whole bytes; of an array of lengths an array."""
        costs = self.stores if writes else self.loads
        line = (costs[-1] - costs[-2]) / (self.lengths[-1] - self.lengths[-2])
        past = np.maximum(0, length_bytes - self.lengths[-1]) * line
        found = np.rint(np.interp(length_bytes, (0, *self.lengths), (0, *costs)) + past)
        return int(found) if isinstance(length_bytes, int) else found.astype(np.int64)

    def of_channels(self, count: int, grain_bytes: int) -> "BlockCosts":
        """Of so many channels in a row, ``grain_bytes`` of a block to each in turn.

        A block that is no longer than that lies in one of them, and others in the rest; from as
        many times that on each has its part of every block. The grain is one of the lengths.
        """
        if count == 1:
            return self
        grain = self.lengths.index(grain_bytes)
        return BlockCosts(
            *(
                (*values[: grain + 1], *(count * each for each in values[grain:]))
                for values in (self.lengths, self.loads, self.stores)
            )
        )
