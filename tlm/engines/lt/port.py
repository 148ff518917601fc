"""The laws of a tile's ports: its interface, and one flit a cycle at its ejection port.

Whole transfers go through in program order. An interface has two of them under way: it launches one
while the one before leaves.

A transfer that waits at its port holds its source, but for what the buffers on the way take.
"""

from typing import Annotated, Any

import numpy as np
from numba import types

from tlm.compiled import compiled, inlined
from tlm.engines.lt.state import Columns, Spare, TileSlot, Times, read, write_back
from tlm.program.operations import Engine

Time = Annotated[Any, types.int32]


@inlined
def through_port(come: Time, since: Time, until: Time, flits: Time) -> tuple[Time, Time, Time]:
    """Write a transfer that could have been written at ``come`` through a port.

    The port has been busy ``since`` then without a pause, and is ``until`` then. The transfer waits
    for what the program has given the port before, unless it is through before that begins.

    Returns:
        When the transfer has been written; since when, and until when the port is busy now.
    """
    come, turn = np.int32(come), np.int32(until + flits)
    early = come <= since
    time = come if early else max(come, turn)
    return time, since if early | (turn > come) else np.int32(come - flits), max(until, time)


@inlined
def held_until(time: Time, come: Time, buffers: Time, most: Time, room: Time) -> Time:
    """Until when a transfer that could have been written at ``come`` holds its source; or 0.

    It was written at ``time``. Each of the ``buffers`` on its way lets its source go ``room``
    cycles earlier; more than ``most`` of them take all its flits.
    """
    # What so many buffers take may be no 32-bit number.
    held = np.int32(time - np.int32(buffers * room))
    return held if (time > come) & (buffers <= most) else np.int32(0)


@inlined
def next_flit(left: Time, before: Time, launch: Time) -> Time:
    """When the first flit of the next transfer may leave.

    The last one ``left`` its interface, the one before it ``before``: then the next was launched.
    """
    return max(left, np.int32(before + launch))


@compiled
def leave(row: Times, columns: Columns, left: Times, launch: int) -> None:
    """Have transfers leave the interfaces of some columns, whose times `read` gave as ``left``."""
    if launch == 0:
        write_back(row[Engine.TRANSFER], columns, left)
        return
    begins, last = row[Engine.TRANSFER], row[TileSlot.LEFT]
    for j in range(len(left)):
        column = columns.indices[j]
        before, last[column] = last[column], left[j]
        begins[column] = next_flit(left[j], before, launch)


@compiled
def through_ports(
    scratch: Times, row: Times, columns: Columns, come: Times, flits: int, times: Times
) -> int:
    """`through_port` at each of some columns; the longest wait. ``times``: when all are written."""
    since = read(row[TileSlot.BUSY], columns, scratch[Spare.SINCE])
    until = read(row[TileSlot.PORT], columns, scratch[Spare.UNTIL])
    wait = np.int32(0)
    for j in range(len(come)):
        times[j], since[j], until[j] = through_port(come[j], since[j], until[j], flits)
        wait = max(wait, np.int32(times[j] - come[j]))
    write_back(row[TileSlot.BUSY], columns, since)
    write_back(row[TileSlot.PORT], columns, until)
    return int(wait)
