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
    latest = np.full(np.broadcast(*tiles).shape, EMPTY, dtype=np.int64)
    return latest, _take(times, flat(places), *_flat(tiles), latest.reshape(-1))


def give_units(times: Times, places: Sequence[Place], tiles: TileIndex, given: NDArray[Any]) -> int:
    """Give units of some tokens at some times; the fault."""
    return _give(times, flat(places), *_flat(tiles), given.astype(np.int64).flatten())


def leave_tiles(
    times: Times, tiles: TileIndex, left: NDArray[Any], before: NDArray[Any], launch_cycles: int
) -> None:
    """Have transfers leave the interfaces of some tiles (`tlm.engines.lt.port.next_flit`).

    ``left``: when; ``before``: when those before them did.
    """
    times[Engine.TRANSFER][tiles] = np.maximum(left, before + launch_cycles)
    times[TileSlot.LEFT][tiles] = left


def missing_units(times: Times, places: Sequence[Place], tiles: TileIndex) -> bool:
    """Whether one of the units, to be taken from queues at some tiles, is not there."""
    slots = [slot for slot, depth in places if depth > 0]
    ahead = [slots[:number].count(slot) for number, slot in enumerate(slots)]
    return any(
        bool((times[slot + before][tiles] == EMPTY).any())
        for slot, before in zip(slots, ahead, strict=True)
    )


def _flat(tiles: TileIndex) -> tuple[Indices, Indices]:
    rows, cols = np.broadcast_arrays(*tiles)
    return rows.flatten(), cols.flatten()


@compiled
def _take(times: Times, tokens: Indices, rows: Indices, cols: Indices, latest: Cycles) -> int:
    fault = 0
    for k in range(0, len(tokens), 2):
        slot, depth = tokens[k], tokens[k + 1]
        for n in range(len(rows)):
            time = oldest_of(times[:, rows[n]], slot, depth, cols[n])
            latest[n] = max(latest[n], time)
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
