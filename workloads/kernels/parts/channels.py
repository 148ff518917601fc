"""Which tiles share a channel of off-chip memory: of the last rows and first columns of a place."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import law
from tlm.interconnect.lines import hops
from tlm.offchip.edge import Edge


class Sharing(NamedTuple):
    """The tiles of a channel: numbers, or arrays of candidates."""

    most: Any  # of one channel
    farthest: Any  # hops
    nearest: Any

    def sooner(self, cycles: Any, hop_cycles: int) -> Any:
        """How many tiles ask so many cycles sooner than the last one, or more."""
        return sooner(self.most, hop_cycles * (self.farthest - self.nearest), cycles)


@law
def sooner(tiles: Any, apart: Any, cycles: Any) -> Any:
    """How many tiles of a channel ask so many cycles sooner than the last one, or more.

    A channel serves blocks in the order in which they are asked for. All tiles ask at once, and one
    after the other they are nearer by as much.

    Args:
        tiles: Of the channel.
        apart: Cycles from the request of the nearest, at the channel, to that of the farthest.
        cycles: More than 0.
    """
    ahead = tiles - -(-cycles * (tiles - 1) // np.maximum(apart, 1))
    return (apart > 0) * np.minimum(np.maximum(ahead, 0), tiles - 1)


def sharing(edge: Edge, rows: Any, cols: Any) -> Sharing:
    """Of so many rows and columns of tiles; a row alone may have some columns only."""
    if edge.at_tiles:
        return Sharing(np.ones_like(rows), np.zeros_like(rows), np.zeros_like(rows))
    beside, most = _columns(edge)
    aside = edge.rows_below + beside[cols - 1]
    return Sharing(rows * most[cols - 1], rows + aside, 1 + aside)


@lru_cache(16)
def of_tiles(edge: Edge, rows: int, cols: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the first rows and columns of tiles each one's channel, and the hops between them.

    Both have shape (rows, columns) and are not to be written to.
    """
    tile: Any = np.arange(rows)[:, None], np.arange(cols)
    channel = np.broadcast_to(edge.channel(tile), (rows, cols))
    if edge.at_tiles:
        return channel, np.zeros_like(channel)
    # The tiles of a column have one channel.
    place = np.array([edge.place(each) for each in channel[0].tolist()])
    return channel, hops(tile, (place[:, 0], place[:, 1]))


@lru_cache(256)
def _columns(edge: Edge) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of so many columns the farthest from its channel, and most columns of a channel."""
    channel = np.array([edge.channel((0, col)) for col in range(edge.cols)])
    at = np.array([edge.place(each)[1] for each in channel.tolist()])
    number = [edge.number((0, col)) + 1 for col in range(edge.cols)]
    beside = np.abs(at - np.arange(edge.cols))
    return np.maximum.accumulate(beside), np.maximum.accumulate(np.array(number))
