"""A heap of numbers in an array, for compiled event loops: the smallest comes out first.

The array begins with its length. A caller packs time, kind and who it is about into one number.
Three event loops of tlm have queues of other kinds, and say why: `tlm.dies.core`,
`tlm.interconnect.handshake.events` and `tlm.engines.lt.contention.multicast_packets`.
"""

from typing import Annotated

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import compiled

Heap = Annotated[NDArray[np.int64], types.int64[::1]]


@compiled
def push(heap: Heap, key: int) -> None:
    """Enter a number."""
    heap[0] += 1
    at = heap[0]
    while at > 1 and heap[at // 2] > key:
        heap[at] = heap[at // 2]
        at //= 2
    heap[at] = key


@compiled
def pop(heap: Heap) -> int:
    """The smallest number, which leaves the heap."""
    first, last, size = heap[1], heap[heap[0]], heap[0] - 1
    heap[0] = size
    at = 1
    while 2 * at <= size:
        child = 2 * at
        if child < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return int(first)
