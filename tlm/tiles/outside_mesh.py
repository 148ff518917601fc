"""Tiles in step with a network that runs elsewhere, which says what it offers and what it takes."""

from enum import IntEnum
from functools import cache
from typing import Annotated

import numpy as np
from numba import types
from numpy.typing import NDArray

from tlm.compiled import compiled, prepare
from tlm.tiles.cycle import step
from tlm.tiles.records import HEADER_COLUMNS, NOBODY, Brought, Column, Header, TilePort, TileTables
from tlm.tiles.scratchpad import holds

#: By node the packet of the flit that the network offers, or `NO_FLIT`, and its place there.
Offers = Annotated[NDArray[np.int64], types.int64[:, ::1]]
#: By `Done`, a bit a node.
DoneBits = Annotated[NDArray[np.int64], types.int64[::1]]
NO_FLIT = -1


class Done(IntEnum):
    """What tiles have done."""

    TOOK = 0  # took what they were offered
    HOLD = 1  # have a flit to send next
    MATRIX = 2  # ended a job of the matrix engine
    VECTOR = 3  # ended a job of the vector engine
    READ = 4  # read a transfer's last word


@compiled
def run_beside(
    tiles: TileTables, offers: Offers, room: int, done: DoneBits, now: int, until: int
) -> int:
    """Simulate from ``now`` until ``until``, or the first cycle that brings anything.

    Args:
        tiles: All tiles.
        offers: What the network offers; nothing if there are more cycles than one.
        room: A bit a node at which the network takes a flit.
        done: Filled with what the last cycle brought.
        now: The cycle.
        until: First cycle that is not simulated.

    Returns:
        The cycle to simulate next.
    """
    t, words, routes = tiles
    while now < until:
        done[:] = 0
        stirs = False
        for number, tile in enumerate(range(HEADER_COLUMNS, len(t), t[Header.RECORD_SIZE])):
            packet, bit = offers[number, 0], 1 << number
            if t[tile + Column.LIVE] > 0 or packet != NO_FLIT:
                comes = NOBODY
                if packet != NO_FLIT:
                    comes = words[routes[packet] + offers[number, 1]]
                brought = step(t, words, tile, now, comes, room & bit != 0)
                stirs = stirs or brought & Brought.STIRS > 0
                done[Done.TOOK] |= bit if brought & Brought.CAME else 0
                done[Done.MATRIX] |= bit if brought & Brought.MATRIX_ENDS else 0
                done[Done.VECTOR] |= bit if brought & Brought.VECTOR_ENDS else 0
                done[Done.READ] |= bit if brought & Brought.READ_ENDS else 0
                done[Done.HOLD] |= bit if holds(t, tile, TilePort.GOING) else 0
        t[Header.STIRRING] = stirs
        now += 1
        if not stirs or done.any():
            break
    return now


@cache
def ready() -> None:
    """Compile the tiles, or load what was compiled."""
    prepare(run_beside)
