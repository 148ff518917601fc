"""How streams are dealt out: with a causal mask those of late rows have more blocks of keys."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.packets import TileSet


def dealt(streams: int, places: int, count: int) -> NDArray[np.int64]:
    """Numbers of the streams of each place, shape (streams, places); below 0: it has one less.

    Higher numbers are longer streams. They are dealt out to and fro, so that who gets the longer
    one of one turn gets the shorter one of the next; the last turn rises.
    """
    turns = np.arange(streams)[:, None]
    numbers: NDArray[np.int64] = dealt_number(turns, np.arange(places), streams, places, count)
    return numbers


def dealt_number(turn: Any, place: Any, turns: int, places: int, count: int) -> Any:
    """The number that a place gets in a turn: see `dealt`; or the numbers, of arrays of them."""
    back = (turns - 1 - turn) % 2
    return turn * places + place + back * (places - 1 - 2 * place) - (turns * places - count)


def alike(
    work: Sequence[tuple[int, ...]], places: TileSet
) -> Iterator[tuple[TileSet, tuple[int, ...]]]:
    """Rectangles of places next to each other with the same work; those without are left out."""
    first = 0
    for same, run in groupby(work):
        end = first + len(list(run))
        if same:
            for part in _rectangles(places, first, end):
                yield part, same
        first = end


def _rectangles(places: TileSet, first: int, end: int) -> Iterator[TileSet]:
    """Some places of a set, which count those of the first row, then those of the next."""
    rows, cols = places.rows, places.cols
    (top, left), (bottom, right) = divmod(first, len(cols)), divmod(end, len(cols))
    if top == bottom:
        yield TileSet(rows[top : top + 1], cols[left:right])
        return
    if left:
        yield TileSet(rows[top : top + 1], cols[left:])
    if top + bool(left) < bottom:
        yield TileSet(rows[top + bool(left) : bottom], cols)
    if right:
        yield TileSet(rows[bottom : bottom + 1], cols[:right])
