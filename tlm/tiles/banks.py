"""A tile cycle by cycle: streams of its engines and its network interface at the banks they share.

Streams read and write words at addresses that are known beforehand, one a cycle each, and take
turns where they meet at a bank (rtl/tile/scratchpad.sv). A reader asks only for words that it has
places for (rtl/tile/stream_reader.sv). Between readers and writer lies the systolic array
(rtl/tile/systolic_array.sv) or the vector unit (rtl/tile/vector_unit.sv); beside them words go out
to the network and come in (rtl/tile/network_interface.sv).
"""

from tlm.compiled import compiled
from tlm.tiles import records as at
from tlm.tiles.records import Tiles, Words

# mypy: disable-error-code="no-any-return"
# What comes out of an array is no int to the type checker, as it is to Numba.


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
        What it brought, a bit each.
    """
    matrix, vector = t[tile + at.MATRIX_FROM] <= now, t[tile + at.VECTOR_FROM] <= now
    asking = 0
    if matrix:
        for port in range(at.RESULTS):
            asking |= _read(t, words, tile, port)
        if t[tile + at.ROWS] > 0 and (t[tile + at.ADDS] == 0 or _held(t, tile, at.SUMS)):
            asking |= _write(t, words, tile, at.RESULTS)
    if vector:
        asking |= _read(t, words, tile, at.LEFT) | _read(t, words, tile, at.RIGHT)
        if _unit_offers(t, tile) and t[tile + at.PARTS] + 1 == t[tile + at.PACKED]:
            asking |= _write(t, words, tile, at.OUT)
    if t[tile + at.GOING_FROM] <= now:
        asking |= _read(t, words, tile, at.GOING)
    if comes != at.NOBODY:
        asking |= _ask(t, tile, at.COMING, comes)
    granted, brought = _grant(t, tile, asking), 0
    if matrix and _matrix(t, tile, granted):
        t[tile + at.MATRIX_FROM] = at.NEVER
        t[tile + at.LIVE] -= 1
        brought |= at.MATRIX_ENDS
    if vector and _vector(t, tile, granted):
        t[tile + at.VECTOR_FROM] = at.NEVER
        t[tile + at.LIVE] -= 1
        brought |= at.VECTOR_ENDS
    if granted >> at.COMING & 1:
        brought |= at.CAME
    read = t[tile + at.GOING * at.PORT_COLUMNS + at.UNDER_WAY] > 0
    sent = room and _held(t, tile, at.GOING)
    if sent:
        t[tile + at.LIVE] -= 1
        brought |= at.SENT
    _move(t, tile, at.GOING, granted, sent)
    if granted >> at.GOING & 1 and _all_asked(t, tile, at.GOING):
        brought |= at.READ_ENDS
    if matrix or vector or asking or sent or read or _starts_later(t, tile, now):
        brought |= at.STIRS
    return brought


@compiled
def _starts_later(t: Tiles, tile: int, now: int) -> bool:
    """Whether something begun has not yet asked for a word."""
    first = min(t[tile + at.MATRIX_FROM], t[tile + at.VECTOR_FROM])
    return now < first < at.NEVER or now < t[tile + at.GOING_FROM]


@compiled
def _read(t: Tiles, words: Words, tile: int, port: int) -> int:
    """A reader asks for its next word if it has a place for it."""
    state = tile + port * at.PORT_COLUMNS
    asks = t[state + at.ASKS]
    if asks == t[state + at.END] or t[state + at.HELD] + t[state + at.UNDER_WAY] >= t[at.PLACES]:
        return 0
    return _ask(t, tile, port, words[asks])


@compiled
def _write(t: Tiles, words: Words, tile: int, port: int) -> int:
    """A writer asks for the place of its next word."""
    return _ask(t, tile, port, words[t[tile + port * at.PORT_COLUMNS + at.ASKS]])


@compiled
def _ask(t: Tiles, tile: int, port: int, bank: int) -> int:
    t[tile + port * at.PORT_COLUMNS + at.BANK] = bank
    t[tile + t[at.RECORD_SIZE] - 1 - bank] |= 1 << port
    return 1 << port


@compiled
def _grant(t: Tiles, tile: int, asking: int) -> int:
    """Each bank serves, of those that ask it, the first behind the one that it served last."""
    granted = 0
    while asking:
        bank = t[tile + _lowest(asking) * at.PORT_COLUMNS + at.BANK]
        asked = tile + t[at.RECORD_SIZE] - 1 - bank
        line = t[asked] & ~t[tile + at.TURNS + bank]
        winner = _lowest(line if line else t[asked])
        t[tile + at.TURNS + bank] = (2 << winner) - 1
        granted |= 1 << winner
        asking &= ~t[asked]
        t[asked] = 0
    return granted


@compiled
def _lowest(bits: int) -> int:
    """Number of the lowest bit that is set, of the first nine; found without a branch."""
    bit = bits & -bits
    return (
        (bit > 1) + (bit > 2) + (bit > 4) + (bit > 8)
        + (bit > 16) + (bit > 32) + (bit > 64) + (bit > 128)
    )  # fmt: skip


@compiled
def _matrix(t: Tiles, tile: int, granted: int) -> bool:
    """A cycle of the matrix engine; whether its last result is written."""
    size = t[at.ARRAY_SIZE]
    # The array moves unless a row of results finds no place.
    out = t[tile + at.PIPE] >> (2 * size - 2) & 1
    moves = out == 0 or t[tile + at.ROWS] < size
    west, north = _held(t, tile, at.WEST), _held(t, tile, at.NORTH)
    if t[tile + at.STATIONARY] != 0:
        drain, ends = t[tile + at.DRAIN], t[tile + at.STEP] + 1 == t[tile + at.LENGTH]
        push = moves and t[tile + at.FOLDS] > 0 and west and north and not (ends and drain > 0)
        result = drain > 0 or (push and ends)
        west = north = push
        if push and ends:
            t[tile + at.DRAIN], t[tile + at.STEP] = size - 1, 0
            t[tile + at.FOLDS] -= 1
        else:
            t[tile + at.DRAIN] -= int(moves and drain > 0)
            t[tile + at.STEP] += int(push)
    else:
        west = moves and west and (t[tile + at.REMAINING] > 0 or t[tile + at.LOADED] > 0)
        swap = west and t[tile + at.REMAINING] == 0
        north = moves and t[tile + at.FOLDS] > 0 and north and (t[tile + at.LOADED] == 0 or swap)
        result = west
        if swap:
            t[tile + at.REMAINING], t[tile + at.LOADED] = t[tile + at.LENGTH], 0
        t[tile + at.REMAINING] -= int(west)
        t[tile + at.LOADING] += int(north)
        if t[tile + at.LOADING] == size:
            t[tile + at.LOADING], t[tile + at.LOADED] = 0, 1
            t[tile + at.FOLDS] -= 1
    if moves:
        t[tile + at.PIPE] = (t[tile + at.PIPE] << 1 | int(result)) & ((1 << (2 * size - 1)) - 1)
        t[tile + at.ROWS] += out
    written = granted >> at.RESULTS & 1
    if written:
        t[tile + at.WRITTEN] += 1
        if 2 * t[tile + at.WRITTEN] == size:
            t[tile + at.WRITTEN] = 0
            t[tile + at.ROWS] -= 1
    _move(t, tile, at.WEST, granted, west)
    _move(t, tile, at.NORTH, granted, north)
    _move(t, tile, at.SUMS, granted, written > 0 and t[tile + at.ADDS] != 0)
    t[tile + at.RESULTS * at.PORT_COLUMNS + at.ASKS] += written
    return _all_asked(t, tile, at.RESULTS)


@compiled
def _unit_offers(t: Tiles, tile: int) -> int:
    return t[tile + at.UNIT_PIPE] >> (t[at.VECTOR_STEPS] - 1) & 1


@compiled
def _vector(t: Tiles, tile: int, granted: int) -> bool:
    """A cycle of the vector engine; whether its last result is written."""
    out, complete = _unit_offers(t, tile) != 0, t[tile + at.PARTS] + 1 == t[tile + at.PACKED]
    written = granted >> at.OUT & 1
    moves = not out or not complete or written > 0
    two = t[tile + at.TWO] != 0
    enters = moves and _held(t, tile, at.LEFT) and (not two or _held(t, tile, at.RIGHT))
    if moves:
        if out:
            t[tile + at.PARTS] = 0 if complete else t[tile + at.PARTS] + 1
        if enters:
            ends = t[tile + at.ENTERED] + 1 == t[tile + at.ROW_WORDS]
            t[tile + at.ENTERED] = 0 if ends else t[tile + at.ENTERED] + 1
        result = enters and (t[tile + at.OF_ROWS] == 0 or t[tile + at.ENTERED] == 0)
        steps = (1 << t[at.VECTOR_STEPS]) - 1
        t[tile + at.UNIT_PIPE] = (t[tile + at.UNIT_PIPE] << 1 | int(result)) & steps
    _move(t, tile, at.LEFT, granted, enters)
    _move(t, tile, at.RIGHT, granted, enters and two)
    t[tile + at.OUT * at.PORT_COLUMNS + at.ASKS] += written
    return _all_asked(t, tile, at.OUT)


@compiled
def _held(t: Tiles, tile: int, port: int) -> bool:
    return t[tile + port * at.PORT_COLUMNS + at.HELD] > 0


@compiled
def _all_asked(t: Tiles, tile: int, port: int) -> bool:
    state = tile + port * at.PORT_COLUMNS
    return t[state + at.ASKS] == t[state + at.END]


@compiled
def _move(t: Tiles, tile: int, port: int, granted: int, taken: bool) -> None:
    """A reader's words at the end of a cycle; what it got comes at the end of the next one."""
    state, got = tile + port * at.PORT_COLUMNS, granted >> port & 1
    t[state + at.HELD] += t[state + at.UNDER_WAY] - int(taken)
    t[state + at.UNDER_WAY] = got
    t[state + at.ASKS] += got
