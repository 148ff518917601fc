"""The law of sends at level lt: unicasts from tiles of a row to tiles of a row.

A transfer starts when its interface is free, its tokens are there and its credits are known; it
goes through the port at its end after a latency.

A send goes row by row. Takes come before gives over the whole set. So one that leaves its rows, and
takes from a place that it gives to, is done in halves, each over all rows.
"""

from typing import NamedTuple

import numpy as np

from tlm.compiled import address, compiled, inlined
from tlm.engines.lt.laws import Fields, Laws, rows_of
from tlm.engines.lt.line import row_of
from tlm.engines.lt.order import order_of, reorder
from tlm.engines.lt.port import Time, held_until, leave, next_flit, through_port
from tlm.engines.lt.queue import append_to, give, oldest_of, place_of, single, take_two, tokens_at
from tlm.engines.lt.state import (
    EMPTY,
    Columns,
    GridArrays,
    Spare,
    TileSlot,
    Times,
    columns_of,
    read,
    write,
    write_back,
)
from tlm.engines.lt.step import StepKind, StepRecord
from tlm.interconnect.transfer_times import arrival_cycles
from tlm.program.operations import Engine


def row_fields(laws: Laws, rows: range, targets: bytes) -> tuple[Fields, int]:
    """Fields of the rows of unicasts; and the rows between a source and its target, at most."""
    to_rows = np.frombuffer(targets, dtype=np.int64)
    hops = np.abs(to_rows - np.array(rows))
    fields = {
        **rows_of(rows),
        "to_rows": laws.pools.put_indices(to_rows),
        "extra": laws.pools.put_delays(hops * laws.timing.hop_cycles),
    }
    return fields, int(hops.max())


def column_fields(laws: Laws, cols: range, targets: bytes, flits: int) -> tuple[Fields, int, bool]:
    """Fields of the columns of unicasts; the columns crossed at most; whether none are."""
    to_cols = np.frombuffer(targets, dtype=np.int64)
    order = np.argsort(to_cols, kind="stable")
    hops = np.abs(to_cols - np.array(cols))[order]
    there = laws.columns(to_cols[order])
    fields = {
        **laws.columns(cols),
        "to_columns": there["columns"],
        "to_first": there["first"],
        "order": -1,
        **laws.delays(hops, lambda hop: arrival_cycles(laws.timing, hop, flits)),
        **laws.buffers(hops, flits),
    }
    if (order != np.arange(len(order))).any():
        inverse = np.argsort(order, kind="stable")
        fields["order"] = laws.pools.put_indices(order_of(order))
        fields["inverse"] = laws.pools.put_indices(order_of(inverse))
    straight = bool((to_cols == np.array(cols)).all())
    return fields, int(hops.max()), straight


class Delays(NamedTuple):
    """Of a row's sends, by target: delays in cycles over the columns, and ``extra`` over the rows.

    The last three are those of `held_until`.
    """

    credit: Times
    latency: Times
    extra: int
    buffers: Times
    away: int  # further buffers over the rows
    most: int
    room: int


class Pairs(NamedTuple):
    """Sources in a row, and their targets in another."""

    row: Times
    here: Columns
    to_row: Times
    there: Columns  # rising, in an order of their own
    delays: Delays


@compiled
def send(step: StepRecord, grid: GridArrays, i: int, begin: int, end: int) -> int:
    """Do the sends, or this half of them, of the ``i``-th row; the fault."""
    if step.few and step.kind == StepKind.SEND:
        return _send_few(step, grid, i, begin, end)
    pairs = _pairs(step, grid, i, begin, end)
    missing = unfree = 0
    known = besides = grid.scratch[Spare.NEVER][: end - begin]
    if step.kind == StepKind.END_SEND:
        starts = _resume(step, grid, pairs)
    else:
        starts, missing = _start(step, grid, pairs)
        slots = tokens_at(grid, step.slots)
        known, besides, unfree = take_two(
            grid.scratch, pairs.to_row, slots, pairs.there, Spare.SLOTS
        )
    if step.kind == StepKind.BEGIN_SEND:
        _interrupt(step, grid, pairs, starts, known, besides)
        return missing or unfree
    full = _deliver(step, grid, pairs, starts, known, besides)
    return missing or unfree or full


@inlined
def _pairs(step: StepRecord, grid: GridArrays, i: int, begin: int, end: int) -> Pairs:
    """Sources and targets of a row."""
    return Pairs(
        row_of(step, grid, i),
        columns_of(grid, step.columns, step.first, begin, end),
        grid.state[grid.indices[step.to_rows + i]],
        columns_of(grid, step.to_columns, step.to_first, begin, end),
        _delays(step, grid, i, begin, end),
    )


@inlined
def _delays(step: StepRecord, grid: GridArrays, i: int, begin: int, end: int) -> Delays:
    """The delays of the sends of a row."""
    credit = grid.delays[step.credit + begin : step.credit + end]
    latency = grid.delays[step.latency + begin : step.latency + end]
    buffers, extra, away = latency, grid.delays[step.extra + i], 0
    if step.most > 0:
        buffers = grid.delays[step.buffers + begin : step.buffers + end]
        away = extra // step.per_hop
    return Delays(credit, latency, extra, buffers, away, step.most, step.room)


@inlined
def _known(start: Time, known: Time, delays: Delays, j: int) -> Time:
    """When a transfer starts whose place is known to be free, which it was at ``known``."""
    return max(start, np.int32(known + np.int32(delays.credit[j] + delays.extra)))


@inlined
def _arrive(
    start: Time, since: Time, until: Time, flits: Time, delays: Delays, j: int
) -> tuple[Time, Time, Time, Time]:
    """End a transfer (`through_port`); and when its source is free."""
    come = np.int32(start + np.int32(delays.latency[j] + delays.extra))
    time, since, until = through_port(come, since, until, flits)
    buffers = np.int32(delays.buffers[j] + delays.away)
    held = held_until(time, come, buffers, np.int32(delays.most), delays.room)
    return time, since, until, max(np.int32(start + flits), held)


@compiled
def _send_few(step: StepRecord, grid: GridArrays, i: int, begin: int, end: int) -> int:
    """Do sends tile by tile."""
    pairs = _pairs(step, grid, i, begin, end)
    row, to_row, delays = pairs.row, pairs.to_row, pairs.delays
    here, there = pairs.here.indices, pairs.there.indices
    taken, taken_depth = single(tokens_at(grid, step.takes))
    slot, slot_depth = single(tokens_at(grid, step.slots))
    starts, launch = grid.scratch[Spare.STARTS], np.int32(step.launch)
    missing = unfree = False
    for j in range(len(here)):
        column = address(here[j])
        units = oldest_of(row, taken, taken_depth, column)
        known = oldest_of(to_row, slot, slot_depth, address(there[j]))
        missing, unfree = missing | (units == EMPTY), unfree | (known == EMPTY)
        start = max(row[Engine.TRANSFER, column], np.int32(units + launch))
        starts[j] = _known(start, known, delays, j)
    wrong = _deliver_few(step, grid, pairs)
    if missing and taken_depth > 0:
        return taken
    return slot if unfree and slot_depth > 0 else wrong


@compiled
def _deliver_few(step: StepRecord, grid: GridArrays, pairs: Pairs) -> int:
    """`_deliver` tile by tile."""
    row, to_row, delays = pairs.row, pairs.to_row, pairs.delays
    here, there = pairs.here.indices, pairs.there.indices
    arrived, arrived_depth = single(tokens_at(grid, step.arrivals))
    given, given_depth = single(tokens_at(grid, step.gives))
    starts, flits = grid.scratch[Spare.STARTS], np.int32(step.flits)
    full = over = False
    for j in range(len(here)):
        column, target = address(here[j]), address(there[j])
        since, until = to_row[TileSlot.BUSY, target], to_row[TileSlot.PORT, target]
        time, since, until, free = _arrive(starts[j], since, until, flits, delays, j)
        to_row[TileSlot.BUSY, target], to_row[TileSlot.PORT, target] = since, until
        before = row[TileSlot.LEFT, column]
        row[TileSlot.LEFT, column] = free
        row[Engine.TRANSFER, column] = next_flit(free, before, np.int32(step.launch))
        full |= not append_to(to_row, arrived, arrived_depth, target, time)
        over |= not append_to(row, given, given_depth, column, free)
    return -given if over else (-arrived if full else 0)


@inlined
def _start(step: StepRecord, grid: GridArrays, pairs: Pairs) -> tuple[Times, int]:
    """When sends start as far as their sources know, by target; the fault."""
    row, here = pairs.row, pairs.here
    one, two, missing = take_two(grid.scratch, row, tokens_at(grid, step.takes), here, Spare.UNITS)
    free = read(row[Engine.TRANSFER], here, grid.scratch[Spare.FREE])
    starts, launch = grid.scratch[Spare.STARTS][: len(free)], np.int32(step.launch)
    for j in range(len(free)):
        starts[j] = max(free[j], np.int32(max(one[j], two[j]) + launch))
    return _ordered(step, grid, starts), missing


@inlined
def _ordered(step: StepRecord, grid: GridArrays, starts: Times) -> Times:
    """Starts in the order of the targets."""
    ordered = starts if step.order < 0 else grid.scratch[Spare.ORDERED][: len(starts)]
    if step.order >= 0:
        reorder(grid.indices, step.order, starts, ordered)
    return ordered


@inlined
def _interrupt(
    step: StepRecord, grid: GridArrays, pairs: Pairs, starts: Times, known: Times, besides: Times
) -> None:
    """Leave when sends start with their interfaces: those are free so many flits later."""
    row, here, delays = pairs.row, pairs.here, pairs.delays
    for j in range(len(starts)):
        starts[j] = _known(starts[j], max(known[j], besides[j]), delays, j) + np.int32(step.flits)
    if step.order < 0:
        write(row[Engine.TRANSFER], here, starts)
    else:
        free = grid.scratch[Spare.STARTS][: len(starts)]
        reorder(grid.indices, step.inverse, starts, free)
        write(row[Engine.TRANSFER], here, free)


@inlined
def _resume(step: StepRecord, grid: GridArrays, pairs: Pairs) -> Times:
    """Starts that the first half has left."""
    free = read(pairs.row[Engine.TRANSFER], pairs.here, grid.scratch[Spare.FREE])
    starts = grid.scratch[Spare.STARTS][: len(free)]
    for j in range(len(free)):
        starts[j] = free[j] - np.int32(step.flits)
    return _ordered(step, grid, starts)


@inlined
def _deliver(
    step: StepRecord, grid: GridArrays, pairs: Pairs, starts: Times, known: Times, besides: Times
) -> int:
    """Write transfers through the ports at their ends, and give what they give; the fault.

    They start when ``starts`` says and places at their ends are known to be free, which they were
    at the later of ``known`` and ``besides``.
    """
    row, here, to_row, there, delays = pairs
    flits = np.int32(step.flits)
    since = read(to_row[TileSlot.BUSY], there, grid.scratch[Spare.SINCE])
    until = read(to_row[TileSlot.PORT], there, grid.scratch[Spare.UNTIL])
    left = read(row[Engine.TRANSFER], here, grid.scratch[Spare.LEFT])
    free = left if step.order < 0 else grid.scratch[Spare.FREE][: len(starts)]
    arrivals = tokens_at(grid, step.arrivals)
    times, others, full = place_of(to_row, arrivals, there, grid.scratch[Spare.TIMES])
    for j in range(len(starts)):
        start = _known(starts[j], max(known[j], besides[j]), delays, j)
        times[j], since[j], until[j], free[j] = _arrive(start, since[j], until[j], flits, delays, j)
    write_back(to_row[TileSlot.BUSY], there, since)
    write_back(to_row[TileSlot.PORT], there, until)
    more = give(to_row, others, there, times) if len(others) else 0
    if step.order >= 0:
        reorder(grid.indices, step.inverse, free, left)
    gives = tokens_at(grid, step.gives)
    over = give(row, gives, here, left) if len(gives) else 0
    leave(row, here, left, step.launch)
    return over or full or more
