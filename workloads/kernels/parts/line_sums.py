"""Partial sums of tiles on lines: sent to a parent that adds them, or combined in the network."""

from tlm.compiled import internal
from workloads.kernels.parts.line_packets import HERE, NEVER, NOBODY, READY, take_port
from workloads.kernels.parts.line_state import (
    ADDED,
    AWAY,
    BEHIND,
    CHILDREN,
    COUNTED,
    DONE,
    END,
    ENDS,
    ENGINE,
    FIRST,
    GOT,
    LEFT,
    PARENT,
    RID,
    START,
    TURN,
    VECTOR,
    Line,
    ended,
    look_at_all,
)


@internal
def sum_known(line: Line, tile: int) -> int:
    """When a tile has what it adds to a sum, and room for that where it goes."""
    table, times, laws = line.table, line.times, line.laws
    step = ended(line, table[TURN, tile])
    known = times[ENDS, step, tile]
    if not line.steps.in_network:
        number = step // line.steps.depth
        end, behind = table[END, tile], table[BEHIND, tile]
        if end > table[FIRST, tile]:
            known = max(known, times[ADDED, number, table[CHILDREN, end - 1]])
        if behind != NOBODY:
            credit = laws.credit + line.packets.router.hop * table[AWAY, tile]
            known = max(known, times[ADDED, number, behind] + credit)
    return int(known + laws.launch)


@internal
def send_sum(line: Line, tile: int) -> None:
    """Send a tile's partial sum to its parent, through that one's port."""
    table, router, summed = line.table, line.packets.router, line.steps.summed
    number, away = ended(line, table[TURN, tile]) // line.steps.depth, table[AWAY, tile]
    ready = line.packets.table[READY + HERE, tile]
    come = take_port(line.packets, table[PARENT, tile], ready + router.hop * away, summed)
    line.times[GOT, number, tile] = come + router.ejection
    buffered = router.places * (away + 1)
    left = max(ready + summed, come - buffered if summed > buffered else 0)
    _sent_sum(line, tile, number, left)


@internal
def _sent_sum(line: Line, tile: int, number: int, left: int) -> None:
    """Go on behind the sum of a pass that leaves a tile in a cycle."""
    line.times[RID, number, tile], line.table[ENGINE, tile] = left, left
    line.packets.table[READY + HERE, tile] = NEVER
    line.table[TURN, tile] += 1


@internal
def add_sums(line: Line, tile: int) -> bool:
    """Have a tile add what has come from its children, in their order; whether there is any."""
    table, times, steps = line.table, line.times, line.steps
    first, end = table[FIRST, tile], table[END, tile]
    before = table[COUNTED, tile]
    while end > first:
        number, place = (
            table[COUNTED, tile] // (end - first),
            table[COUNTED, tile] % (end - first),
        )
        step = min((number + 1) * steps.depth, len(line.roots)) - 1
        child = table[CHILDREN, first + place]
        if times[GOT, number, child] == NEVER or table[DONE, tile] <= step:
            break
        begin = max(times[GOT, number, child], times[ENDS, step, tile])
        table[VECTOR, tile] = max(table[VECTOR, tile], begin) + steps.combine
        times[ADDED, number, child] = table[VECTOR, tile]
        table[COUNTED, tile] += 1
        if place + 1 == end - first and table[PARENT, tile] == NOBODY:
            table[VECTOR, tile] += steps.combine
            times[RID, number, tile] = table[VECTOR, tile]
    return bool(table[COUNTED, tile] > before)


@internal
def meet(line: Line, tile: int) -> None:
    """Have the root of a sum ask for it when the last operand is ready; the others wait for it."""
    table, ready = line.table, line.packets.table
    root = tile if table[PARENT, tile] == NOBODY else table[PARENT, tile]
    latest = _start_of_sum(line, root, table[TURN, tile])
    for number in range(table[FIRST, root], table[END, root]):
        child = table[CHILDREN, number]
        start = _start_of_sum(line, child, table[TURN, tile])
        latest = max(latest, min(NEVER, start + line.laws.reduced * table[AWAY, child]))
    ready[READY + HERE, tile] = NEVER
    if latest < NEVER:
        ready[READY + HERE, root] = latest
        look_at_all(line)


@internal
def _start_of_sum(line: Line, tile: int, turn: int) -> int:
    """When a tile begins to send in a turn, if that has come."""
    here = line.table[TURN, tile] == turn and line.table[LEFT, tile] == 0
    return int(line.table[START, tile]) if here else NEVER


@internal
def reduce_sums(line: Line, root: int) -> None:
    """Combine the partial sums of a root and of its children in the network."""
    table, steps, laws, ejection = line.table, line.steps, line.laws, line.packets.router.ejection
    number = ended(line, table[TURN, root]) // steps.depth
    result = line.packets.table[READY + HERE, root]
    asks = result + laws.result - ejection - steps.summed
    come = take_port(line.packets, root, asks, steps.summed) + ejection
    table[VECTOR, root] = max(table[VECTOR, root], come) + steps.combine
    first, end = table[FIRST, root], table[END, root]
    for at in range(first - 1, end):
        tile = root if at < first else table[CHILDREN, at]
        left = table[START, tile] + steps.summed
        if steps.summed > laws.buffer:
            left = max(left, _held(line, root, tile, result))
        _sent_sum(line, tile, number, left)


@internal
def _held(line: Line, root: int, tile: int, result: int) -> int:
    """When the tail of an operand that is longer than a buffer has gone into its tile's buffer.

    Each packet leaves when the one before it has left the next router. So an operand waits for
    those that it meets within so many hops as there are packets ahead of its tail.
    """
    table, laws = line.table, line.laws
    away, ahead = table[AWAY, tile], (line.steps.summed - laws.buffer - 1) // laws.buffer
    latest = result
    if away > ahead:
        latest = 0
        for at in range(table[FIRST, root], table[END, root]):
            other = table[CHILDREN, at]
            if (other < root) == (tile < root) and table[AWAY, other] >= away - ahead:
                start = table[START, other]
                latest = max(latest, start + laws.reduced * table[AWAY, other])
    near = min(ahead, away)
    packets = ahead * laws.operands + (ahead - near) * laws.reduced
    return int(latest + packets - (away - near) * laws.reduced + laws.tail)
