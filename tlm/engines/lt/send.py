"""The law of sends at level lt: unicasts from tiles of a row to tiles of a row.

A transfer starts when its interface is free, its tokens are there and its credits are known; it
goes through the port at its end after a latency. If it waits there, it holds its source, but for
what the buffers on the way take.

A send goes row by row. Takes come before gives over the whole set. So one that leaves its rows, and
takes from a place that it gives to, is done in halves, each over all rows.
"""

import numpy as np

from tlm.compiled import address, compiled, inlined
from tlm.engines.lt.laws import Fields, Laws, rows_of
from tlm.engines.lt.port import through_port
from tlm.engines.lt.queue import give, take, tokens_at
from tlm.engines.lt.state import Grid, Slot, Spare, Times, columns_of, read, write, write_back
from tlm.engines.lt.step import Kind, Step
from tlm.engines.transfer_times import arrival_cycles
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
        fields["order"] = laws.pools.put_order(order)
        fields["inverse"] = laws.pools.put_order(np.argsort(order, kind="stable"))
    straight = bool((to_cols == np.array(cols)).all())
    return fields, int(hops.max()), straight


@compiled
def send(step: Step, grid: Grid, i: int, begin: int, end: int) -> int:
    """Do the sends, or this half of them, of the ``i``-th row; the fault."""
    if step.kind == Kind.END_SEND:
        starts = _resume(step, grid, i, begin, end)
        return _deliver(step, grid, i, begin, end, starts, grid.scratch[Spare.NEVER])
    starts, missing = _start(step, grid, i, begin, end)
    to_row = grid.state[grid.indices[step.to_rows + i]]
    there = columns_of(grid, step.to_columns, step.to_first, begin, end)
    slots = tokens_at(grid, step.slots, step.n_slots)
    known, unfree = take(grid.scratch, to_row, slots, there, grid.scratch[Spare.SLOTS])
    if step.kind == Kind.SEND:
        full = _deliver(step, grid, i, begin, end, starts, known)
        return missing or unfree or full
    _interrupt(step, grid, i, begin, end, starts, known)
    return missing or unfree


@inlined
def _start(step: Step, grid: Grid, i: int, begin: int, end: int) -> tuple[Times, int]:
    """When the sends of a row start as far as their sources know, by target; the fault."""
    row = grid.state[step.row_first + i * step.row_step]
    here = columns_of(grid, step.columns, step.first, begin, end)
    takes = tokens_at(grid, step.takes, step.n_takes)
    units, missing = take(grid.scratch, row, takes, here, grid.scratch[Spare.UNITS])
    free = read(row[Engine.TRANSFER], here, grid.scratch[Spare.FREE])
    starts, launch = grid.scratch[Spare.STARTS][: len(free)], np.int32(step.launch)
    for j in range(len(free)):
        starts[j] = max(free[j], np.int32(units[j] + launch))
    return _ordered(step, grid, starts), missing


@inlined
def _ordered(step: Step, grid: Grid, starts: Times) -> Times:
    """Starts in the order of the targets."""
    ordered = starts if step.order < 0 else grid.scratch[Spare.ORDERED][: len(starts)]
    if step.order >= 0:
        reorder(grid, step.order, starts, ordered)
    return ordered


@compiled
def _interrupt(
    step: Step, grid: Grid, i: int, begin: int, end: int, starts: Times, known: Times
) -> None:
    """Leave when sends start with their interfaces: those are free so many flits later."""
    row = grid.state[step.row_first + i * step.row_step]
    here = columns_of(grid, step.columns, step.first, begin, end)
    credit = grid.delays[step.credit + begin : step.credit + end]
    extra = grid.delays[step.extra + i]
    for j in range(len(starts)):
        start = max(starts[j], np.int32(known[j] + np.int32(credit[j] + extra)))
        starts[j] = start + np.int32(step.flits)
    if step.order < 0:
        write(row[Engine.TRANSFER], here, starts)
    else:
        free = grid.scratch[Spare.STARTS][: len(starts)]
        reorder(grid, step.inverse, starts, free)
        write(row[Engine.TRANSFER], here, free)


@inlined
def _resume(step: Step, grid: Grid, i: int, begin: int, end: int) -> Times:
    """Starts that the first half has left."""
    row = grid.state[step.row_first + i * step.row_step]
    here = columns_of(grid, step.columns, step.first, begin, end)
    free = read(row[Engine.TRANSFER], here, grid.scratch[Spare.FREE])
    starts = grid.scratch[Spare.STARTS][: len(free)]
    for j in range(len(free)):
        starts[j] = free[j] - np.int32(step.flits)
    return _ordered(step, grid, starts)


@compiled
def _deliver(
    step: Step, grid: Grid, i: int, begin: int, end: int, starts: Times, known: Times
) -> int:
    """Write transfers through the ports at their ends, and give what they give; the fault.

    They start when ``starts`` says and places at their ends are known to be free, which they were
    at ``known``.
    """
    row = grid.state[step.row_first + i * step.row_step]
    to_row = grid.state[grid.indices[step.to_rows + i]]
    here = columns_of(grid, step.columns, step.first, begin, end)
    there = columns_of(grid, step.to_columns, step.to_first, begin, end)
    size, extra = end - begin, grid.delays[step.extra + i]
    credit = grid.delays[step.credit + begin : step.credit + end]
    latency = grid.delays[step.latency + begin : step.latency + end]
    since = read(to_row[Slot.BUSY], there, grid.scratch[Spare.SINCE])
    until = read(to_row[Slot.PORT], there, grid.scratch[Spare.UNTIL])
    free = grid.scratch[Spare.FREE][:size]
    times, flits = grid.scratch[Spare.TIMES][:size], np.int32(step.flits)
    # A source is held over no more than ``most`` buffers: more take all flits. What they take may
    # be no 32-bit number.
    buffers, most, room, away = latency, np.int32(-1), 0, 0
    if step.buffers >= 0:
        buffers = grid.delays[step.buffers + begin : step.buffers + end]
        most = np.int32((step.flits - 1) // step.packet)
        room, away = step.room, extra // step.per_hop
    for j in range(size):
        start = max(starts[j], np.int32(known[j] + np.int32(credit[j] + extra)))
        come = np.int32(start + np.int32(latency[j] + extra))
        time, since[j], until[j] = through_port(come, since[j], until[j], flits)
        times[j] = time
        count = np.int32(buffers[j] + away)
        held = np.int32(time - np.int32(count * room))
        waits = (time > come) & (count <= most)
        free[j] = max(np.int32(start + flits), held if waits else np.int32(0))
    write_back(to_row[Slot.BUSY], there, since)
    write_back(to_row[Slot.PORT], there, until)
    full = give(to_row, tokens_at(grid, step.arrivals, step.n_arrivals), there, times)
    left = free if step.order < 0 else grid.scratch[Spare.ORDERED][:size]
    if step.order >= 0:
        reorder(grid, step.inverse, free, left)
    write(row[Engine.TRANSFER], here, left)
    return give(row, tokens_at(grid, step.gives, step.n_gives), here, left) or full


@compiled
def reorder(grid: Grid, order: int, times: Times, out: Times) -> None:
    """Times in an order that lies at an offset (`Pools.put_order`)."""
    even, odd, low, high, exceptions = grid.indices[order : order + 5]
    at_even, at_odd, part = times[low + even :], times[low + odd :], out[low:high]
    for j in range(high - low):
        from_even, from_odd = at_even[j], at_odd[j]
        part[j] = from_odd if (low + j) & 1 else from_even
    pairs = grid.indices[order + 5 : order + 5 + 2 * exceptions]
    for k in range(exceptions):
        out[address(pairs[2 * k])] = times[address(pairs[2 * k + 1])]
