"""How flits move from buffer to buffer: max-plus over runs, in which flits follow cycle by cycle.

A flit goes at the earliest a cycle after the one before it, some cycles after it came, and a cycle
after a place behind has become free. In a run all of these grow by a cycle a flit, so what holds
for its first flit holds for the others, and a run costs as much as a flit.
"""

from tlm.compiled import compiled
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.places import buffer_of, given, node_of
from tlm.interconnect.handshake.records import Address, Records

# mypy: disable-error-code="no-any-return, return-value"
# What comes out of an array is no int to the type checker, as it is to Numba.


@compiled
def _run_of(m: Records, buffer: Address, kind: int, runs: int, number: int) -> int:
    """The run, of so many, in which a flit is; it must be among the buffer's last R."""
    mask = m[at.MASK]
    base, run = buffer + at.RINGS + kind, runs - 1
    while m[base + at.RUN * (run & mask)] > number:
        run -= 1
    return run


@compiled
def came_at(m: Records, buffer: Address, number: int) -> int:
    """When a flit came; of the last R."""
    run = _run_of(m, buffer, at.WRITES, m[buffer + at.WRITE_RUNS], number) & m[at.MASK]
    place = buffer + at.RINGS + at.WRITES + at.RUN * run
    return m[place + 1] - m[place] + number


@compiled
def left_at(m: Records, buffer: Address, number: int) -> int:
    """When a flit left; of the last R that did."""
    run = _run_of(m, buffer, at.LEAVES, m[buffer + at.LEAVE_RUNS], number) & m[at.MASK]
    place = buffer + at.RINGS + at.LEAVES + at.RUN * run
    return m[place + 1] - m[place] + number


@compiled
def append(m: Records, buffer: Address, kind: int, runs: int, number: int, time: int) -> None:
    """Flits come or leave a cycle after each other from ``number`` on; ``runs``: a column."""
    mask, count = m[at.MASK], m[buffer + runs]
    base = buffer + at.RINGS + kind
    last = base + at.RUN * ((count - 1) & mask)
    if m[last + 1] - m[last] != time - number:
        place = base + at.RUN * (count & mask)
        m[place], m[place + 1] = number, time
        m[buffer + runs] = count + 1


@compiled
def move(
    m: Records,
    source: Address,
    number: int,
    latency: int,
    target: Address,
    time: int,
    count: int,
    interval: int,
    fork: bool,
) -> int:
    """Move flits at the earliest after ``time``; returns when the last one went.

    ``count`` flits from buffer ``source``, from its flit ``number`` on, to buffer ``target``; 0 is
    the tile. Flits follow each other after ``interval`` cycles at the earliest; if after more than
    one, each is a run of its own. A flit leaves a fork when the last of its branches has sent it.
    """
    mask, end = m[at.MASK], number + count
    into = places = back = write = write_runs = free = free_runs = 0
    writes, leaves = source + at.RINGS + at.WRITES, target + at.RINGS + at.LEAVES
    forks = source + at.RINGS + at.FORKS * m[at.RING_SIZE]
    if source > 0:
        write_runs = m[source + at.WRITE_RUNS]
        write = _run_of(m, source, at.WRITES, write_runs, number)
    if target > 0:
        into, places = m[target + at.WRITTEN], given(m, at.PLACES, target)
        back = given(m, at.RETURN, target)
        free_runs = m[target + at.LEAVE_RUNS]
        free = _run_of(m, target, at.LEAVES, free_runs, into - places)
        m[target + at.WRITTEN] = into + count
    while number < end:
        time, step = time + 1, end - number if interval == 1 else 1
        if source > 0:
            while write + 1 < write_runs and m[writes + at.RUN * ((write + 1) & mask)] <= number:
                write += 1
            place = writes + at.RUN * (write & mask)
            time = max(time, m[place + 1] - m[place] + number + latency)
            if write + 1 < write_runs:
                step = min(step, m[writes + at.RUN * ((write + 1) & mask)] - number)
        if target > 0:
            freed = into - places
            while free + 1 < free_runs and m[leaves + at.RUN * ((free + 1) & mask)] <= freed:
                free += 1
            place = leaves + at.RUN * (free & mask)
            time = max(time, m[place + 1] - m[place] + freed + back)
            if free + 1 < free_runs:
                step = min(step, m[leaves + at.RUN * ((free + 1) & mask)] - freed)
            append(m, target, at.WRITES, at.WRITE_RUNS, into, time)
            into += step
        if fork:
            for ahead in range(step):
                place = forks + 2 * ((number + ahead) & mask)
                sent_before = m[place + 1] > 0
                m[place] = max(time + ahead, m[place]) if sent_before else time + ahead
                m[place + 1] += 1
        elif source > 0:
            append(m, source, at.LEAVES, at.LEAVE_RUNS, number, time)
        number += step
        time += step - 1
        if number < end:
            time += interval - 1
    return time


@compiled
def room_from(m: Records, output: Address, flits: int) -> int:
    """Cycle from which there is room for a packet behind an output; NEVER: not known yet.

    Nothing but the holder goes through the output meanwhile, so room comes by flits that leave the
    buffer behind the link, and by results that leave the output's buffer for that of operands.
    """
    behind, room = m[output + at.BEHIND], at.NEVER
    operands = behind + at.OPERANDS * m[at.BUFFER_SIZE]
    for results in range(m[at.OUTPUT_DEPTH] + 1):  # that still wait in the output's buffer
        time = at.LONG_AGO
        flit = m[output + at.THROUGH] + flits - m[at.DEPTH] - m[at.OUTPUT_DEPTH] + results - 1
        if flit >= m[behind + at.LEFT]:
            break
        if flit >= 0:
            time = left_at(m, behind, flit) + given(m, at.RETURN, behind)
        last = m[output + at.RESULTS_THROUGH] - results - 1
        if last < 0:
            return min(room, time)
        if last < m[operands + at.WRITTEN]:
            room = min(room, max(time, came_at(m, operands, last) + 1))
    return room


@compiled
def free_place_from(m: Records, output: Address) -> int:
    """Cycle from which a flit can leave the switch by an output; NEVER: not known yet."""
    target, port = m[output + at.BEHIND], m[output + at.PORT]
    if m[at.OUTPUT_DEPTH if port else at.TILE_DEPTH] > 0:
        target = buffer_of(m, node_of(m, output), at.OUTPUTS + port)
    if target == 0:
        return at.LONG_AGO
    linked = m[output + at.LINK_LAST] + m[at.LINK_INTERVAL] if m[at.OUTPUT_DEPTH] == 0 else 0
    freed = m[target + at.WRITTEN] - given(m, at.PLACES, target)
    if freed >= m[target + at.LEFT]:
        return at.NEVER
    return max(linked, left_at(m, target, freed) + given(m, at.RETURN, target))
