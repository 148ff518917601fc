"""Compiled cycle of a tile: its engines and its network interface at the banks they share.

Beside the engines' streams words go out to the network and come in
(rtl/tile/network_interface.sv).
"""

from tlm.compiled import compiled
from tlm.tiles.matrix_engine import ask_for_matrix, step_matrix
from tlm.tiles.records import (
    NEVER,
    NOBODY,
    PORT_COLUMNS,
    Brought,
    Column,
    PortColumn,
    TilePort,
    Tiles,
    Words,
)
from tlm.tiles.scratchpad import all_asked, ask, grant, holds, move, read
from tlm.tiles.vector_engine import ask_for_vector, step_vector


@compiled
def step(t: Tiles, words: Words, tile: int, now: int, comes: int, room: bool) -> int:
    """A cycle of a tile.

    Args:
        t: Records of tiles.
        words: Banks of words.
        tile: The tile.
        now: The cycle.
        comes: Bank of the word that the network offers, or NOBODY.
        room: Whether the network would take a word.

    Returns:
        What it brought, a bit each (`Brought`).
    """
    matrix, vector = t[tile + Column.MATRIX_FROM] <= now, t[tile + Column.VECTOR_FROM] <= now
    asking = ask_for_matrix(t, words, tile) if matrix else 0
    if vector:
        asking |= ask_for_vector(t, words, tile)
    if t[tile + Column.GOING_FROM] <= now:
        asking |= read(t, words, tile, TilePort.GOING)
    if comes != NOBODY:
        asking |= ask(t, tile, TilePort.COMING, comes)
    granted, brought = grant(t, tile, asking), 0
    if matrix and step_matrix(t, tile, granted):
        t[tile + Column.MATRIX_FROM] = NEVER
        t[tile + Column.LIVE] -= 1
        brought |= Brought.MATRIX_ENDS
    if vector and step_vector(t, tile, granted):
        t[tile + Column.VECTOR_FROM] = NEVER
        t[tile + Column.LIVE] -= 1
        brought |= Brought.VECTOR_ENDS
    if granted >> TilePort.COMING & 1:
        brought |= Brought.CAME
    coming = t[tile + TilePort.GOING * PORT_COLUMNS + PortColumn.UNDER_WAY] > 0
    sent = room and holds(t, tile, TilePort.GOING)
    if sent:
        t[tile + Column.LIVE] -= 1
        brought |= Brought.SENT
    move(t, tile, TilePort.GOING, granted, sent)
    if granted >> TilePort.GOING & 1 and all_asked(t, tile, TilePort.GOING):
        brought |= Brought.READ_ENDS
    if matrix or vector or asking or sent or coming or _starts_later(t, tile, now):
        brought |= Brought.STIRS
    return brought


@compiled
def _starts_later(t: Tiles, tile: int, now: int) -> bool:
    """Whether something begun has not yet asked for a word."""
    first = min(t[tile + Column.MATRIX_FROM], t[tile + Column.VECTOR_FROM])
    return now < first < NEVER or now < t[tile + Column.GOING_FROM]
