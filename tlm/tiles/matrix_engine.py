"""Compiled cycle of a tile's matrix engine: the systolic array between readers and a writer.

The Verilog is rtl/tile/systolic_array.sv.
"""

from tlm.compiled import compiled
from tlm.tiles.records import PORT_COLUMNS, Column, Header, PortColumn, TilePort, Tiles, Words
from tlm.tiles.scratchpad import all_asked, holds, move, read, write


@compiled
def ask_for_matrix(t: Tiles, words: Words, tile: int) -> int:
    """The engine asks for words; a bit a port."""
    asking = 0
    for port in range(TilePort.RESULTS):
        asking |= read(t, words, tile, port)
    if t[tile + Column.ROWS] > 0 and (t[tile + Column.ADDS] == 0 or holds(t, tile, TilePort.SUMS)):
        asking |= write(t, words, tile, TilePort.RESULTS)
    return asking


@compiled
def step_matrix(t: Tiles, tile: int, granted: int) -> bool:
    """A cycle of the engine; whether its last result is written."""
    size = t[Header.ARRAY_SIZE]
    # The array moves unless a row of results finds no place.
    out = t[tile + Column.PIPE] >> (2 * size - 2) & 1
    moves = out == 0 or t[tile + Column.ROWS] < size
    if t[tile + Column.STATIONARY] != 0:
        west, north, result = _enter_outputs_stationary(t, tile, moves)
    else:
        west, north, result = _enter_weights_stationary(t, tile, moves)
    if moves:
        pipe = t[tile + Column.PIPE] << 1 | int(result)
        t[tile + Column.PIPE] = pipe & ((1 << (2 * size - 1)) - 1)
        t[tile + Column.ROWS] += out
    written = granted >> TilePort.RESULTS & 1
    if written:
        t[tile + Column.WRITTEN] += 1
        if 2 * t[tile + Column.WRITTEN] == size:
            t[tile + Column.WRITTEN] = 0
            t[tile + Column.ROWS] -= 1
    move(t, tile, TilePort.WEST, granted, west)
    move(t, tile, TilePort.NORTH, granted, north)
    move(t, tile, TilePort.SUMS, granted, written > 0 and t[tile + Column.ADDS] != 0)
    t[tile + TilePort.RESULTS * PORT_COLUMNS + PortColumn.ASKS] += written
    return all_asked(t, tile, TilePort.RESULTS)


@compiled
def _enter_outputs_stationary(t: Tiles, tile: int, moves: bool) -> tuple[bool, bool, bool]:
    """What enters: from the west, from the north, and whether a row of results begins to leave."""
    drain, ends = t[tile + Column.DRAIN], t[tile + Column.STEP] + 1 == t[tile + Column.LENGTH]
    both = holds(t, tile, TilePort.WEST) and holds(t, tile, TilePort.NORTH)
    push = moves and t[tile + Column.FOLDS] > 0 and both and not (ends and drain > 0)
    if push and ends:
        t[tile + Column.DRAIN], t[tile + Column.STEP] = t[Header.ARRAY_SIZE] - 1, 0
        t[tile + Column.FOLDS] -= 1
    else:
        t[tile + Column.DRAIN] -= int(moves and drain > 0)
        t[tile + Column.STEP] += int(push)
    return push, push, drain > 0 or (push and ends)


@compiled
def _enter_weights_stationary(t: Tiles, tile: int, moves: bool) -> tuple[bool, bool, bool]:
    """As `_enter_outputs_stationary`; weights come from the north."""
    loaded = t[tile + Column.LOADED] > 0
    west = moves and holds(t, tile, TilePort.WEST) and (t[tile + Column.REMAINING] > 0 or loaded)
    swap = west and t[tile + Column.REMAINING] == 0
    north = moves and t[tile + Column.FOLDS] > 0 and holds(t, tile, TilePort.NORTH)
    north = north and (not loaded or swap)
    if swap:
        t[tile + Column.REMAINING], t[tile + Column.LOADED] = t[tile + Column.LENGTH], 0
    t[tile + Column.REMAINING] -= int(west)
    t[tile + Column.LOADING] += int(north)
    if t[tile + Column.LOADING] == t[Header.ARRAY_SIZE]:
        t[tile + Column.LOADING], t[tile + Column.LOADED] = 0, 1
        t[tile + Column.FOLDS] -= 1
    return west, north, west
