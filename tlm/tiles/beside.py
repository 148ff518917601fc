"""Tiles in step with a network that runs elsewhere, which says what it offers and what it takes."""

from functools import cache
from typing import Annotated

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import compiled, prepare
from tlm.tiles import records as at
from tlm.tiles.banked import Routes
from tlm.tiles.banks import step
from tlm.tiles.records import Tiles, Words

#: By node the packet of the flit that the network offers, or `NO_FLIT`, and its place there.
Offers = Annotated[NDArray[np.int64], types.int64[:, ::1]]
#: A bit a node of what tiles have done (`TOOK`, ...), by these numbers.
Done = Annotated[NDArray[np.int64], types.int64[::1]]
NO_FLIT = -1
#: Took what they were offered; have a flit to send next; ended a job of the matrix engine, of the
#: vector engine, or read a transfer's last word.
TOOK, HOLD, MATRIX, VECTOR, READ, DONE_COLUMNS = range(6)


@compiled
def run_beside(
    t: Tiles, words: Words, routes: Routes, offers: Offers, room: int, done: Done, now: int,
    until: int,
) -> int:  # fmt: skip
    """Simulate from ``now`` until ``until``, or the first cycle that brings anything.

    Args:
        t: Records of tiles.
        words: Banks of words.
        routes: By packet, where the words begin that its flits are written to.
        offers: What the network offers; nothing if there are more cycles than one.
        room: A bit a node at which the network takes a flit.
        done: Filled with what the last cycle brought.
        now: The cycle.
        until: First cycle that is not simulated.

    Returns:
        The cycle to simulate next.
    """
    while now < until:
        done[:] = 0
        stirs = False
        for number, tile in enumerate(range(at.HEADER_COLUMNS, len(t), t[at.RECORD_SIZE])):
            packet, bit = offers[number, 0], 1 << number
            if t[tile + at.LIVE] > 0 or packet != NO_FLIT:
                comes = at.NOBODY
                if packet != NO_FLIT:
                    comes = words[routes[packet] + offers[number, 1]]
                brought = step(t, words, tile, now, comes, room & bit != 0)
                stirs = stirs or brought & at.STIRS > 0
                done[TOOK] |= bit if brought & at.CAME else 0
                done[MATRIX] |= bit if brought & at.MATRIX_ENDS else 0
                done[VECTOR] |= bit if brought & at.VECTOR_ENDS else 0
                done[READ] |= bit if brought & at.READ_ENDS else 0
                done[HOLD] |= bit if t[tile + at.GOING * at.PORT_COLUMNS + at.HELD] > 0 else 0
        t[at.STIRRING] = stirs
        now += 1
        if not stirs or done.any():
            break
    return now


@cache
def ready() -> None:
    """Compile the tiles, or load what was compiled."""
    prepare(run_beside)
