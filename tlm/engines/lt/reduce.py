"""Compiled updates of the loosely-timed engine by reductions in the network.

An operand goes ``per_hop`` cycles a router towards the root and waits there for those that it
meets. So the result starts to leave the router at distance d when the last of the operands from
distances e >= d has come: ``max(start + (e - d) per_hop)``; the root waits for both sides. What is
kept is ``latest = max(start + e per_hop)``, from the outermost contributor inwards.

A contribution longer than a buffer holds its source. It is cut into packets; each of them leaves
when the one before it has left the next router, and ``ahead`` packets are ahead of the flit that
makes room for the tail. So a contributor waits for the operands that come to the router ``ahead``
hops closer to the root. ``ahead`` is below 0 if the buffer takes all. A root that contributes alone
has no waits.

Arguments are those of `tlm.engines.lt.send` and `tlm.engines.lt.multicast`.
"""

from typing import Any

import numpy as np

from tlm.compiled import compiled
from tlm.engines.lt.queue import EMPTY, Indices, Times, give, load, store, take_here, through_port
from tlm.engines.lt.send import pairs

_TRANSFER = 2


@compiled
def row_reduce(
    step: Any, indices: Indices, delays: Times, row: Times, i: int, scratch: Times
) -> int:
    """Reduce the ``i``-th row to its root."""
    size = step.size
    columns = indices[step.columns : step.columns + size]
    at = indices[step.root + i : step.root + i + 1]
    root = at[0]
    law, latency = indices[step.law + 2 * i], indices[step.law + 2 * i + 1]
    times, spare, left = scratch[0][:size], scratch[1][:size], scratch[2][:size]
    latest, known, one, two = scratch[3][:size], scratch[4][:1], scratch[5][:1], scratch[1][:1]
    load(row[_TRANSFER], columns, step.first, times)
    takes = pairs(indices, step.takes, step.n_takes)
    fault = take_here(row, takes, columns, step.first, step.launch, times, spare)
    known[0] = EMPTY
    slots = pairs(indices, step.slots, step.n_slots)
    missing = take_here(row, slots, at, root, 0, known, one)
    credit = delays[law : law + size]
    for j in range(size):
        times[j] = max(times[j], np.int32(known[0] + credit[j]))
        latest[j] = times[j] + abs(columns[j] - root) * step.per_hop
    result = _inwards(latest, columns, root)
    for j in range(size):
        times[j] += step.flits
    if step.ahead >= 0 and not (size == 1 and columns[0] == root):
        _hold_row(step, columns, root, latest, result, times)
    store(row[_TRANSFER], columns, step.first, times)
    gives = pairs(indices, step.gives, step.n_gives)
    over = give(row, gives, columns, step.first, times, spare, left)
    known[0] = result
    arrivals = pairs(indices, step.arrivals, step.n_arrivals)
    after = delays[latency : latency + 1]
    through_port(row, at, root, known, after, 0, step.flits, known, one)
    full = give(row, arrivals, at, root, known, one, two)
    return fault or missing or over or full


@compiled
def _inwards(latest: Times, columns: Indices, root: int) -> int:
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


@compiled
def _hold_row(
    step: Any, columns: Indices, root: int, latest: Times, result: int, times: Times
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
        if distance > step.ahead:
            closer = min(j + step.ahead // stride, inside - 1)
            if columns[j] > root:
                closer = max(j - step.ahead // stride, outside)
            held = latest[closer] + _held(step, distance)
        else:
            held = result + _held(step, distance)
        times[j] = max(times[j], np.int32(held))


@compiled
def _held(step: Any, distance: int) -> int:
    """From ``latest`` as a contributor needs it to the end of its contribution."""
    closer = min(step.ahead, distance)
    packets = closer * step.packet + (step.ahead - closer) * (step.packet + step.per_hop)
    cycles: int = packets - (distance - closer) * step.per_hop + step.hold
    return cycles


@compiled
def column_reduce(
    step: Any, indices: Indices, delays: Times, state: Times, begin: int, end: int, scratch: Times
) -> int:
    """Reduce columns to their roots, which lie in one row."""
    size = end - begin
    columns = indices[step.columns + begin : step.columns + end]
    first = step.first + begin if step.first >= 0 else -1
    spare, left, known = scratch[1][:size], scratch[2][:size], scratch[5][:size]
    latest, result = scratch[3][:size], scratch[4][:size]
    root = state[step.root]
    for j in range(size):
        known[j] = EMPTY
        result[j] = EMPTY
    slots = pairs(indices, step.slots, step.n_slots)
    fault = take_here(root, slots, columns, first, 0, known, spare)
    above = min(max(0, -((step.row_first - step.root) // step.row_step)), step.rows)
    own = above < step.rows and step.row_first + above * step.row_step == step.root
    ahead = -1 if own and step.rows == 1 else step.ahead
    for side in range(3):
        # From above, from below, and the root's own
        count = above if side == 0 else step.rows - above - (1 if own else 0)
        if side == 2:
            count = 1 if own else 0
        for j in range(size):
            latest[j] = EMPTY
        closer = ahead // step.row_step if ahead >= 0 else 0
        for n in range(count + closer):
            if n < count:
                i = n if side == 0 else (step.rows - 1 - n if side == 1 else above)
                wrong = _contribute(step, indices, delays, state, i, columns, first, scratch)
                fault = fault or wrong
            if n >= closer and side < 2:
                i = n - closer if side == 0 else step.rows - 1 - n + closer
                if abs(step.row_first + i * step.row_step - step.root) > ahead:
                    over = _leave(step, indices, state, i, columns, first, latest, ahead, scratch)
                    fault = fault or over
        for j in range(size):
            result[j] = max(result[j], latest[j])
    for i in range(step.rows):
        if abs(step.row_first + i * step.row_step - step.root) <= ahead or (
            ahead < 0 and own and i == above
        ):
            over = _leave(step, indices, state, i, columns, first, result, ahead, scratch)
            fault = fault or over
    latency = delays[step.latency : step.latency + 1][0]
    for j in range(size):
        known[j] = 0
    arrivals = pairs(indices, step.arrivals, step.n_arrivals)
    through_port(root, columns, first, result, known, latency, step.flits, result, spare)
    full = give(root, arrivals, columns, first, result, spare, left)
    return fault or full


@compiled
def _contribute(
    step: Any,
    indices: Indices,
    delays: Times,
    state: Times,
    i: int,
    columns: Indices,
    first: int,
    scratch: Times,
) -> int:
    """Start the contributions of a row, and put them into ``latest``."""
    size = len(columns)
    number = step.row_first + i * step.row_step
    row, credit = state[number], delays[step.credit + i]
    away = abs(number - step.root) * step.per_hop
    start, spare = scratch[0][:size], scratch[1][:size]
    latest, known = scratch[3][:size], scratch[5][:size]
    load(row[_TRANSFER], columns, first, start)
    takes = pairs(indices, step.takes, step.n_takes)
    fault = take_here(row, takes, columns, first, step.launch, start, spare)
    for j in range(size):
        time = max(start[j], np.int32(known[j] + credit))
        latest[j] = max(latest[j], np.int32(time + away))
        start[j] = time + step.flits
    store(row[_TRANSFER], columns, first, start)
    return fault


@compiled
def _leave(
    step: Any,
    indices: Indices,
    state: Times,
    i: int,
    columns: Indices,
    first: int,
    latest: Times,
    ahead: int,
    scratch: Times,
) -> int:
    """End the contributions of a row."""
    size = len(columns)
    number = step.row_first + i * step.row_step
    row = state[number]
    times, spare, left = scratch[0][:size], scratch[1][:size], scratch[2][:size]
    if ahead < 0 and not step.n_gives:
        return 0
    load(row[_TRANSFER], columns, first, times)
    if ahead >= 0:
        held = _held(step, abs(number - step.root))
        for j in range(size):
            times[j] = max(times[j], np.int32(latest[j] + held))
        store(row[_TRANSFER], columns, first, times)
    gives = pairs(indices, step.gives, step.n_gives)
    return give(row, gives, columns, first, times, spare, left)
