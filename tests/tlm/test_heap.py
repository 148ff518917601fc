"""Numbers leave a heap in order, whatever order they came in and whatever left between."""

from heapq import heappop, heappush

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tlm.heap import pop, push


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=60))
def test_the_smallest_number_comes_out_first(entries: list[int | None]) -> None:
    heap, reference = np.zeros(1 + len(entries), dtype=np.int64), list[int]()
    for entry in entries:
        if entry is not None:
            push(heap, entry)
            heappush(reference, entry)
        elif reference:
            assert pop(heap) == heappop(reference)
    assert heap[0] == len(reference)
    assert [pop(heap) for _ in range(heap[0])] == sorted(reference)
