"""Compiled cycle of a tile's vector engine: a pipeline between readers and a writer.

The Verilog is rtl/tile/vector_unit.sv.
"""

from tlm.compiled import compiled
from tlm.tiles.records import PORT_COLUMNS, Column, Header, PortColumn, TilePort, Tiles, Words
from tlm.tiles.scratchpad import all_asked, holds, move, read, write


@compiled
def ask_for_vector(t: Tiles, words: Words, tile: int) -> int:
    """The engine asks for words; a bit a port."""
    asking = read(t, words, tile, TilePort.LEFT) | read(t, words, tile, TilePort.RIGHT)
    if _offers(t, tile) and _completes(t, tile):
        asking |= write(t, words, tile, TilePort.OUT)
    return asking


@compiled
def step_vector(t: Tiles, tile: int, granted: int) -> bool:
    """A cycle of the engine; whether its last result is written."""
    out, complete = _offers(t, tile), _completes(t, tile)
    written = granted >> TilePort.OUT & 1
    moves = not out or not complete or written > 0
    two = t[tile + Column.TWO] != 0
    enters = moves and holds(t, tile, TilePort.LEFT) and (not two or holds(t, tile, TilePort.RIGHT))
    if moves:
        if out:
            t[tile + Column.PARTS] = 0 if complete else t[tile + Column.PARTS] + 1
        if enters:
            ends = t[tile + Column.ENTERED] + 1 == t[tile + Column.ROW_WORDS]
            t[tile + Column.ENTERED] = 0 if ends else t[tile + Column.ENTERED] + 1
        result = enters and (t[tile + Column.OF_ROWS] == 0 or t[tile + Column.ENTERED] == 0)
        pipe = t[tile + Column.UNIT_PIPE] << 1 | int(result)
        t[tile + Column.UNIT_PIPE] = pipe & ((1 << t[Header.VECTOR_STEPS]) - 1)
    move(t, tile, TilePort.LEFT, granted, enters)
    move(t, tile, TilePort.RIGHT, granted, enters and two)
    t[tile + TilePort.OUT * PORT_COLUMNS + PortColumn.ASKS] += written
    return all_asked(t, tile, TilePort.OUT)


@compiled
def _offers(t: Tiles, tile: int) -> bool:
    """Whether a result leaves the unit."""
    return t[tile + Column.UNIT_PIPE] >> (t[Header.VECTOR_STEPS] - 1) & 1 != 0


@compiled
def _completes(t: Tiles, tile: int) -> bool:
    """Whether it is the last one of a word."""
    return t[tile + Column.PARTS] + 1 == t[tile + Column.PACKED]
