"""Compiled banks of a tile's scratchpad: who asks which, and whose turn it is.

Streams read and write words at addresses that are known beforehand, one a cycle each, and take
turns where they meet at a bank (rtl/tile/scratchpad.sv). A reader asks only for words that it has
places for (rtl/tile/stream_reader.sv).
"""

from tlm.compiled import compiled, lowest
from tlm.tiles.records import PORT_COLUMNS, Column, Header, PortColumn, Tiles, Words


@compiled
def read(t: Tiles, words: Words, tile: int, port: int) -> int:
    """A reader asks for its next word if it has a place for it; its bit if it does."""
    state = tile + port * PORT_COLUMNS
    asks, has = t[state + PortColumn.ASKS], t[state + PortColumn.HELD]
    has += t[state + PortColumn.UNDER_WAY]
    if asks == t[state + PortColumn.END] or has >= t[Header.PLACES]:
        return 0
    return ask(t, tile, port, words[asks])


@compiled
def write(t: Tiles, words: Words, tile: int, port: int) -> int:
    """A writer asks for the place of its next word; its bit."""
    return ask(t, tile, port, words[t[tile + port * PORT_COLUMNS + PortColumn.ASKS]])


@compiled
def ask(t: Tiles, tile: int, port: int, bank: int) -> int:
    """A port asks for a bank; its bit."""
    t[tile + port * PORT_COLUMNS + PortColumn.BANK] = bank
    t[tile + t[Header.RECORD_SIZE] - 1 - bank] |= 1 << port
    return 1 << port


@compiled
def grant(t: Tiles, tile: int, asking: int) -> int:
    """Each bank serves, of those that ask it, the first behind the one that it served last."""
    granted = 0
    while asking:
        bank = t[tile + lowest(asking) * PORT_COLUMNS + PortColumn.BANK]
        asked = tile + t[Header.RECORD_SIZE] - 1 - bank
        line = t[asked] & ~t[tile + Column.TURNS + bank]
        winner = lowest(line if line else t[asked])
        t[tile + Column.TURNS + bank] = (2 << winner) - 1
        granted |= 1 << winner
        asking &= ~t[asked]
        t[asked] = 0
    return granted


@compiled
def holds(t: Tiles, tile: int, port: int) -> bool:
    """Whether a reader has a word."""
    return t[tile + port * PORT_COLUMNS + PortColumn.HELD] > 0


@compiled
def all_asked(t: Tiles, tile: int, port: int) -> bool:
    """Whether a port has asked for all of its words."""
    state = tile + port * PORT_COLUMNS
    return t[state + PortColumn.ASKS] == t[state + PortColumn.END]


@compiled
def move(t: Tiles, tile: int, port: int, granted: int, taken: bool) -> None:
    """A reader's words at the end of a cycle; what it got comes at the end of the next one."""
    state, got = tile + port * PORT_COLUMNS, granted >> port & 1
    t[state + PortColumn.HELD] += t[state + PortColumn.UNDER_WAY] - int(taken)
    t[state + PortColumn.UNDER_WAY] = got
    t[state + PortColumn.ASKS] += got
