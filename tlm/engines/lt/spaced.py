"""Compiled work and sends of the loosely-timed engine at few or spaced tiles of a row.

What `tlm.engines.lt.send` does in a pass for each token is done here tile by tile: vectors do not
pay where a row's tiles are few, or do not lie side by side. A step takes and gives at most one
token in a place. Arguments and faults are as there.
"""

from typing import Any

import numpy as np

from tlm.compiled import address, compiled, inlined
from tlm.engines.lt.queue import BUSY, EMPTY, PORT, Indices, Times
from tlm.engines.lt.send import count_overlap

FEW_TILES = 16
_TRANSFER = 2


@inlined
def _token(indices: Indices, offset: int, count: int) -> tuple[int, int]:
    """Slot and depth of a step's token, if it has one."""
    return (indices[offset], indices[offset + 1]) if count else (0, 0)


@inlined
def _oldest(row: Times, slot: int, depth: int, column: int) -> np.int32:
    """Take a token's oldest unit."""
    time: np.int32 = row[slot, column]
    if depth > 0:
        for place in range(slot + 1, slot + depth):
            row[place - 1, column] = row[place, column]
        row[slot + depth - 1, column] = EMPTY
    return time


@inlined
def _append(row: Times, slot: int, depth: int, column: int, time: np.int32) -> bool:
    """Give a unit of a token; whether there was room."""
    place, last = slot, slot + depth - 1
    while place < last and row[place, column] != EMPTY:
        place += 1
    room = depth == 0 or row[place, column] == EMPTY
    if room:
        row[place, column] = time
    return room


@compiled
def spaced_work(
    step: Any, indices: Indices, tables: Times, row: Times, number: int, begin: int, end: int
) -> int:
    """Occupy an engine of the tiles of row ``number``."""
    taken, taken_depth = _token(indices, step.takes, step.n_takes)
    given, given_depth = _token(indices, step.gives, step.n_gives)
    takes, gives, engine, beside = step.n_takes, step.n_gives, step.engine, step.beside
    table, same = step.table, step.cycles
    columns = indices[step.columns + begin : step.columns + end]
    missing = over = False
    for j in range(len(columns)):
        column = address(columns[j])
        start = row[engine, column]
        if takes:
            time = _oldest(row, taken, taken_depth, column)
            missing |= time == EMPTY
            start = max(start, time)
        cycles = same if table < 0 else np.int64(tables[table, number, column])
        finish = np.int32(start + cycles)
        if beside >= 0:
            count_overlap(row, engine, beside, column, start, finish)
        row[engine, column] = finish
        if gives:
            over |= not _append(row, given, given_depth, column, finish)
    return taken if missing else (-given if over else 0)


@compiled
def spaced_send(
    step: Any,
    indices: Indices,
    delays: Times,
    row: Times,
    to_row: Times,
    extra: int,
    begin: int,
    end: int,
    scratch: Times,
) -> int:
    """Send from tiles of a row to tiles in the same order."""
    columns = indices[step.columns + begin : step.columns + end]
    targets = indices[step.to_columns + begin : step.to_columns + end]
    credit = delays[step.credit + begin : step.credit + end]
    taken, taken_depth = _token(indices, step.takes, step.n_takes)
    slot, slot_depth = _token(indices, step.slots, step.n_slots)
    takes, slots, launch = step.n_takes, step.n_slots, step.launch
    starts = scratch[0]
    missing = unfree = False
    for j in range(len(columns)):
        column = address(columns[j])
        start = row[_TRANSFER, column]
        if takes:
            time = _oldest(row, taken, taken_depth, column)
            missing |= time == EMPTY
            start = max(start, np.int32(time + launch))
        if slots:
            time = _oldest(to_row, slot, slot_depth, address(targets[j]))
            unfree |= time == EMPTY
            start = max(start, np.int32(time + credit[j] + extra))
        starts[j] = start
    full = _end(step, indices, delays, row, to_row, extra, begin, columns, targets, starts)
    return taken if missing else (slot if unfree else full)


@compiled
def _end(
    step: Any,
    indices: Indices,
    delays: Times,
    row: Times,
    to_row: Times,
    extra: int,
    begin: int,
    columns: Indices,
    targets: Indices,
    starts: Times,
) -> int:
    """End the sends that start when ``starts`` says."""
    latency = delays[step.latency + begin : step.latency + begin + len(columns)]
    arrived, arrived_depth = _token(indices, step.arrivals, step.n_arrivals)
    given, given_depth = _token(indices, step.gives, step.n_gives)
    arrivals, gives, flits = step.n_arrivals, step.n_gives, step.flits
    buffers, packet, room = step.buffers, step.packet, step.room
    away = extra // step.per_hop
    over = full = False
    for j in range(len(columns)):
        target, start = address(targets[j]), starts[j]
        begun, until = to_row[BUSY, target], to_row[PORT, target]
        come = np.int32(start + latency[j] + extra)
        turn = np.int32(until + flits)
        time = come if come <= begun else max(come, turn)
        if come > begun and turn <= come:
            to_row[BUSY, target] = come - flits
        to_row[PORT, target] = max(until, time)
        if arrivals:
            full |= not _append(to_row, arrived, arrived_depth, target, time)
        free = np.int32(start + flits)
        if time > come and buffers >= 0:
            count = delays[buffers + begin + j] + away
            if flits > count * packet:
                free = max(free, np.int32(time - count * room))
        column = address(columns[j])
        row[_TRANSFER, column] = free
        if gives:
            over |= not _append(row, given, given_depth, column, free)
    return -given if over else (-arrived if full else 0)
