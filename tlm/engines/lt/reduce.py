"""The law of reductions in the network at level lt: along rows or columns to their roots.

An operand goes ``per_hop`` cycles a router towards the root and waits there for those that it
meets. So the result starts to leave the router at distance d when the last of the operands from
distances e >= d has come: ``max(start + (e - d) per_hop)``. The root waits for both sides. What is
kept is ``latest = max(start + e per_hop)``, from the outermost contributor inwards.

A contribution longer than a buffer holds its source. It is cut into packets. Each of them leaves
when the one before it has left the next router. ``ahead`` packets are ahead of the flit that makes
room for the tail. So a contributor waits for the operands that come to the router ``ahead``
hops closer to the root. ``ahead`` is below 0 if the buffer takes all. A root that contributes alone
has no waits.
"""

from typing import NamedTuple

import numpy as np

from tlm.compiled import compiled, inlined
from tlm.engines.lt.laws import Fields, Laws
from tlm.engines.lt.line import begin_across, begin_along, line_of, row_of
from tlm.engines.lt.port import leave, through_ports
from tlm.engines.lt.queue import give, take, tokens_at
from tlm.engines.lt.state import (
    EMPTY,
    Columns,
    GridArrays,
    Indices,
    Spare,
    Times,
    columns_of,
    read,
    write_back,
)
from tlm.engines.lt.step import StepRecord
from tlm.interconnect.transfer_times import credit_cycles
from tlm.program.operations import Engine


class Combining(NamedTuple):
    """What a step knows of how operands are combined on a line, too."""

    per_hop: int
    packet: int
    ahead: int
    hold: int


def reduce_fields(laws: Laws, segment: range, root: int, flits: int) -> tuple[Fields, int]:
    """Fields of a reduction to a place of a line; more cycles than it can take."""
    timing = laws.timing
    hops = np.abs(np.array(segment) - root)
    farthest = int(hops.max())
    per_hop = timing.hop_cycles + timing.reduce_cycles
    arrival = timing.reduction_cycles(farthest, flits) + 1
    interval = max(timing.reduce_interval_cycles, timing.link_interval_cycles)
    # The flit that leaves its place in the first buffer to the tail.
    packets, flit = divmod(flits - timing.fifo_depth - 1, timing.fifo_depth)
    packets = max(packets, -1)
    fields = {
        "credit": laws.credits(hops),
        "latency": laws.pools.put_delays([arrival - farthest * per_hop]),
        "per_hop": per_hop,
        "packet": timing.results_cycles(timing.fifo_depth, interval) + interval,
        "ahead": packets,
        "hold": timing.results_cycles(flit + 1, interval) + timing.hop_cycles + 2,
    }
    longest = arrival + credit_cycles(timing, farthest) + (packets + 2) * (per_hop + flits)
    return fields, longest


@compiled
def row_reduce(step: StepRecord, grid: GridArrays, i: int) -> int:
    """Reduce the ``i``-th row to its root; the fault."""
    line, size = line_of(step, grid, i), step.size
    row, columns, root = line.row, line.columns, line.root
    free, missing = begin_along(step, grid, line)
    latest = grid.scratch[Spare.LATEST][:size]
    for j in range(size):
        latest[j] = free[j] + abs(columns.indices[j] - root) * step.per_hop
        free[j] += step.flits
    come, times = grid.scratch[Spare.COME][:1], grid.scratch[Spare.TIMES][:1]
    result = inwards(latest, columns.indices, root)
    if step.ahead >= 0 and not (size == 1 and columns.indices[0] == root):
        hold_contributors(step, columns.indices, root, latest, result, free)
    over = give(row, tokens_at(grid, step.gives), columns, free)
    leave(row, columns, free, step.launch)
    come[0] = result + grid.delays[line.latency]
    through_ports(grid.scratch, row, line.at, come, step.flits, times)
    full = give(row, tokens_at(grid, step.arrivals), line.at, times)
    return missing or over or full


@inlined
def inwards(latest: Times, columns: Indices, root: int) -> int:
    """Maximum from the outermost contributors of both sides inwards; that of all."""
    west = east = EMPTY
    for j in range(len(columns)):
        if columns[j] >= root:
            break
        west = max(west, latest[j])
        latest[j] = west
    for j in range(len(columns) - 1, -1, -1):
        if columns[j] < root:
            break
        east = max(east, latest[j])
        if columns[j] > root:
            latest[j] = east
    return int(max(west, east))


@inlined
def hold_contributors(
    law: Combining, columns: Indices, root: int, latest: Times, result: int, free: Times
) -> None:
    """Hold the sources of a row until their tails have gone into the first buffer."""
    size = len(columns)
    stride = columns[1] - columns[0] if size > 1 else 1
    inside = 0
    while inside < size and columns[inside] < root:
        inside += 1
    outside = inside + (1 if inside < size and columns[inside] == root else 0)
    for j in range(size):
        distance = abs(columns[j] - root)
        if distance > law.ahead:
            closer = min(j + law.ahead // stride, inside - 1)
            if columns[j] > root:
                closer = max(j - law.ahead // stride, outside)
            held = latest[closer] + _held(law, distance)
        else:
            held = result + _held(law, distance)
        free[j] = max(free[j], np.int32(held))


@inlined
def _held(law: Combining, distance: int) -> int:
    """From ``latest`` as a contributor needs it to the end of its contribution."""
    closer = min(law.ahead, distance)
    packets = closer * law.packet + (law.ahead - closer) * (law.packet + law.per_hop)
    cycles: int = packets - (distance - closer) * law.per_hop + law.hold
    return cycles


@compiled
def column_reduce(step: StepRecord, grid: GridArrays, begin: int, end: int) -> int:
    """Reduce some columns to their roots, which lie in one row; the fault."""
    size, root = end - begin, grid.state[step.root]
    columns = columns_of(grid, step.columns, step.first, begin, end)
    latest, result = grid.scratch[Spare.LATEST][:size], grid.scratch[Spare.RESULT][:size]
    known, fault = take(grid.scratch, root, tokens_at(grid, step.slots), columns, Spare.SLOTS)
    result[:] = EMPTY
    above = min(max(0, -((step.row_first - step.root) // step.row_step)), step.rows)
    own = above < step.rows and step.row_first + above * step.row_step == step.root
    ahead = -1 if own and step.rows == 1 else step.ahead
    for side in range(3):
        # From above, from below, and the root's own
        count = above if side == 0 else step.rows - above - (1 if own else 0)
        if side == 2:
            count = 1 if own else 0
        latest[:] = EMPTY
        closer = ahead // step.row_step if ahead >= 0 else 0
        for n in range(count + closer):
            if n < count:
                i = n if side == 0 else (step.rows - 1 - n if side == 1 else above)
                wrong = _contribute(step, grid, i, columns, known, latest)
                fault = fault or wrong
            if n >= closer and side < 2:
                i = n - closer if side == 0 else step.rows - 1 - n + closer
                if abs(step.row_first + i * step.row_step - step.root) > ahead:
                    over = _leave(step, grid, i, columns, latest, ahead)
                    fault = fault or over
        for j in range(size):
            result[j] = max(result[j], latest[j])
    for i in range(step.rows):
        if abs(step.row_first + i * step.row_step - step.root) <= ahead or (
            ahead < 0 and own and i == above
        ):
            over = _leave(step, grid, i, columns, result, ahead)
            fault = fault or over
    times, latency = grid.scratch[Spare.TIMES][:size], grid.delays[step.latency]
    for j in range(size):
        result[j] += latency
    through_ports(grid.scratch, root, columns, result, step.flits, times)
    full = give(root, tokens_at(grid, step.arrivals), columns, times)
    return fault or full


@compiled
def _contribute(
    step: StepRecord, grid: GridArrays, i: int, columns: Columns, known: Times, latest: Times
) -> int:
    """Start the contributions of a row, and put them into ``latest``; the fault."""
    away = abs(step.row_first + i * step.row_step - step.root) * step.per_hop
    free, fault = begin_across(step, grid, i, columns, known)
    for j in range(len(free)):
        latest[j] = max(latest[j], np.int32(free[j] + away))
        free[j] += step.flits
    write_back(row_of(step, grid, i)[Engine.TRANSFER], columns, free)
    return fault


@compiled
def _leave(
    step: StepRecord, grid: GridArrays, i: int, columns: Columns, latest: Times, ahead: int
) -> int:
    """End the contributions of a row; the fault."""
    number = step.row_first + i * step.row_step
    row = grid.state[number]
    free = read(row[Engine.TRANSFER], columns, grid.scratch[Spare.FREE])
    if ahead >= 0:
        held = _held(step, abs(number - step.root))
        for j in range(len(free)):
            free[j] = max(free[j], np.int32(latest[j] + held))
    over = give(row, tokens_at(grid, step.gives), columns, free)
    leave(row, columns, free, step.launch)
    return over
