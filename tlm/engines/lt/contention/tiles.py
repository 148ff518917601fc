"""Units at any tiles of a grid, one tile after the other.

Times are the state of a run as the tiles lie, shape (slots, rows, columns).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, forget_stale
from tlm.engines.lt.queue import append_to, oldest_of
from tlm.engines.lt.state import EMPTY, Indices, TileSlot, Times
from tlm.engines.lt.tokens import Place, flat
from tlm.program.operations import Engine

Cycles = NDArray[np.int64]
TileIndex = tuple[NDArray[Any], ...]
"""Rows and columns of some tiles, as they index an array over the grid."""


def take_units(times: Times, places: Sequence[Place], tiles: TileIndex) -> tuple[Cycles, int]:
    """When the last of the oldest units of some tokens is there, which are taken; and the fault."""
    each, fault = take_each(times, places, tiles)
    shape = np.broadcast(*tiles).shape
    return each.max(axis=0, initial=int(EMPTY)).reshape(shape), fault


def take_each(times: Times, places: Sequence[Place], tiles: TileIndex) -> tuple[Cycles, int]:
    """Take the oldest unit of each token: its times, shape (tokens, tiles); and the fault."""
    rows, cols = ends_of(tiles)
    each = np.empty((len(places), len(rows)), dtype=np.int64)
    return each, _take(times, flat(places), rows, cols, each)


def give_units(times: Times, places: Sequence[Place], tiles: TileIndex, given: NDArray[Any]) -> int:
    """Give units of some tokens at some times; the fault."""
    return _give(times, flat(places), *ends_of(tiles), given.astype(np.int64).flatten())


def leave_tiles(
    times: Times, tiles: TileIndex, left: NDArray[Any], before: NDArray[Any], launch_cycles: int
) -> None:
    """Have transfers leave the interfaces of some tiles (`tlm.engines.lt.port.next_flit`).

    ``left``: when; ``before``: when those before them did.
    """
    times[Engine.TRANSFER][tiles] = np.maximum(left, before + launch_cycles)
    times[TileSlot.LEFT][tiles] = left


def ends_of(tiles: TileIndex) -> tuple[Indices, Indices]:
    """Rows and columns of some tiles, one after the other."""
    rows, cols = tiles
    return (rows + 0 * cols).ravel(), (cols + 0 * rows).ravel()  # in half the time of NumPy's own


@compiled
def _take(times: Times, tokens: Indices, rows: Indices, cols: Indices, each: Cycles) -> int:
    fault = 0
    for k in range(0, len(tokens), 2):
        slot, depth = tokens[k], tokens[k + 1]
        for n in range(len(rows)):
            time = oldest_of(times[:, rows[n]], slot, depth, cols[n])
            each[k // 2, n] = time
            if depth > 0 and time == EMPTY and fault == 0:
                fault = slot
    return fault


@compiled
def _give(times: Times, tokens: Indices, rows: Indices, cols: Indices, given: Cycles) -> int:
    fault = 0
    for k in range(0, len(tokens), 2):
        slot, depth = tokens[k], tokens[k + 1]
        for n in range(len(rows)):
            room = append_to(times[:, rows[n]], slot, depth, cols[n], given[n])
            if not room and fault == 0:
                fault = -slot
    return fault


forget_stale(_take, _give)
