"""Rings on a line: what INTERLEAVE promises, and which links a shift uses."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.kernels.gemm.ring import Ring

sizes = st.integers(2, 400)
RINGS: list[Callable[[int], Ring]] = [Ring.natural, Ring.interleaved]


def interleave(index: int, size: int) -> tuple[int, int]:
    """Whom a tile of a line sends to and receives from, as WaferLLM's Algorithm 1 has it."""
    if size == 1:
        return 0, 0
    up, down = min(index + 2, size - 1), max(index - 2, 0)
    send, receive = (up, down) if index % 2 == 0 else (down, up)
    if index == 0:
        receive = 1
    if index == size - 1:
        if size % 2 == 0:
            receive = size - 2
        else:
            send = size - 2
    return send, receive


def links(source: int, place: int) -> list[tuple[int, int]]:
    """Directed links between neighbours on the way."""
    step = 1 if place > source else -1
    return [(tile, tile + step) for tile in range(source, place, step)]


@given(sizes)
def test_senders_and_receivers_are_inverse(size: int) -> None:
    for tile in range(size):
        send, receive = interleave(tile, size)
        assert interleave(send, size)[1] == tile
        assert interleave(receive, size)[0] == tile


@given(sizes)
def test_interleave_is_one_cycle_of_short_edges(size: int) -> None:
    tile, seen, hops = 0, [], []
    while tile not in seen:
        seen.append(tile)
        following = interleave(tile, size)[0]
        hops.append(abs(following - tile))
        tile = following
    assert (tile, sorted(seen)) == (0, list(range(size)))
    assert Counter(hops) == +Counter({1: 2, 2: size - 2})


@given(st.integers(1, 400))
def test_the_ring_is_that_of_interleave(size: int) -> None:
    ring = Ring.interleaved(size)
    pairs = [interleave(tile, size) for tile in range(size)]
    assert np.stack([ring.neighbours(1), ring.neighbours(-1)], axis=1).tolist() == [
        *map(list, pairs)
    ]
    half = -(-size // 2)
    tile_at = [2 * place if place < half else 2 * (size - place) - 1 for place in range(size)]
    assert np.argsort(ring.position).tolist() == tile_at


@pytest.mark.parametrize("make", RINGS)
@given(size=sizes)
def test_a_shift_uses_every_directed_link_once(make: Callable[[int], Ring], size: int) -> None:
    targets = make(size).neighbours(1).tolist()
    used = Counter(link for tile, place in enumerate(targets) for link in links(tile, place))
    every = [(tile, tile + 1) for tile in range(size - 1)]
    assert used == Counter(every + [(b, a) for a, b in every])


@pytest.mark.parametrize("make", RINGS)
def test_a_line_of_one_tile_sends_to_itself(make: Callable[[int], Ring]) -> None:
    ring = make(1)
    assert ring.neighbours(1).tolist() == ring.neighbours(-1).tolist() == [0]
    assert ring.longest_hops == 0
    assert interleave(0, 1) == (0, 0)


@given(sizes)
def test_longest_edges(size: int) -> None:
    assert Ring.natural(size).longest_hops == size - 1
    assert Ring.interleaved(size).longest_hops == min(2, size - 1)
