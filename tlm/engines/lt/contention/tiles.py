"""Units and ejection ports at any tiles of a grid, one tile after the other.

Times are the state of a run as the tiles lie, shape (slots, rows, columns).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, forget_stale
from tlm.engines.lt.contention.send_packets import Length
from tlm.engines.lt.port import held_until, through_port
from tlm.engines.lt.queue import append_to, oldest_of
from tlm.engines.lt.state import EMPTY, Indices, TileSlot, Times
from tlm.engines.lt.tokens import Place, flat

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


def write_through_ports(
    times: Times, tiles: TileIndex, come: Cycles, buffers: Cycles, length: Length
) -> tuple[Cycles, Cycles]:
    """When transfers that could have been written at ``come`` are, and hold their sources until."""
    written, held = come.flatten(), buffers.flatten()
    _write(times, _flat(tiles), written, held, length)
    return written.reshape(come.shape), held.reshape(come.shape)


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


@compiled
def _write(
    times: Times, tiles: tuple[Indices, Indices], written: Cycles, held: Cycles, length: Length
) -> None:
    most = (length.flits - 1) // (length.room + length.returns)
    for n in range(len(written)):
        tile, come = times[:, tiles[0][n], tiles[1][n]], written[n]
        since, until = tile[TileSlot.BUSY], tile[TileSlot.PORT]
        time, tile[TileSlot.BUSY], tile[TileSlot.PORT] = through_port(
            come, since, until, length.flits
        )
        written[n], held[n] = time, held_until(time, come, held[n], most, length.room)


forget_stale(_take, _give, _write)
