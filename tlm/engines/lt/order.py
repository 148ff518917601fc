"""Orders in which times of a row are read: kept short, since those of rings are nearly regular.

Rings shift even and odd places each by one distance, but for a few at their ends. So an order is:
the distances, the part of the places that have both neighbours, the number of exceptions, and each
exception's place and where it comes from.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import address, compiled
from tlm.engines.lt.state import Indices, Times


def order_of(places: NDArray[np.int64]) -> list[int]:
    """An order, given where each of some times comes from: ``places``, shape (times,)."""
    own = np.arange(len(places))
    distance = places - own
    even, odd = _commonest(distance[::2]), _commonest(distance[1::2])
    low = max(0, -even, -odd)
    high = max(low, len(places) - max(0, even, odd))
    regular = (own >= low) & (own < high) & (distance == np.where(own & 1, odd, even))
    exceptions = np.stack([own, places], axis=1)[~regular]
    return [even, odd, low, high, len(exceptions), *exceptions.ravel().tolist()]


def _commonest(distances: NDArray[np.int64]) -> int:
    values, counts = np.unique(distances, return_counts=True)
    return int(values[counts.argmax()]) if len(values) else 0


@compiled
def reorder(indices: Indices, order: int, times: Times, out: Times) -> None:
    """Times in an order that lies at an offset."""
    even, odd, low, high, exceptions = indices[order : order + 5]
    at_even, at_odd, part = times[low + even :], times[low + odd :], out[low:high]
    for j in range(high - low):
        from_even, from_odd = at_even[j], at_odd[j]
        part[j] = from_odd if (low + j) & 1 else from_even
    pairs = indices[order + 5 : order + 5 + 2 * exceptions]
    for k in range(exceptions):
        out[address(pairs[2 * k])] = times[address(pairs[2 * k + 1])]
