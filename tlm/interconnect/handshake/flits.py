"""How flits move from buffer to buffer: max-plus over runs, in which flits follow cycle by cycle.

A flit goes at the earliest a cycle after the one before it, some cycles after it came, and a cycle
after a place behind has become free. In a run all of these grow by a cycle a flit. So what holds
for its first flit holds for the others, and a run costs as much as a flit.
"""

from typing import NamedTuple

from tlm.compiled import compiled, merged
from tlm.interconnect.handshake.places import behind_switch, given, node_of
from tlm.interconnect.handshake.records import (
    LONG_AGO,
    NEVER,
    OPERANDS,
    RUN_COLUMNS,
    Address,
    FlitBuffer,
    Mesh,
    Output,
    Records,
    Ring,
    Run,
)


@compiled
def _run_of(m: Records, buffer: Address, kind: int, runs: int, number: int) -> int:
    """The run, of so many, in which a flit is; it must be among the buffer's last R."""
    mask = m[Mesh.MASK]
    base, run = buffer + FlitBuffer.RINGS + kind, runs - 1
    while m[base + RUN_COLUMNS * (run & mask)] > number:
        run -= 1
    return run


@compiled
def came_at(m: Records, buffer: Address, number: int) -> int:
    """When a flit came; of the last R."""
    run = _run_of(m, buffer, Run.WRITES, m[buffer + FlitBuffer.WRITE_RUNS], number) & m[Mesh.MASK]
    place = buffer + FlitBuffer.RINGS + Run.WRITES + RUN_COLUMNS * run
    return m[place + 1] - m[place] + number


@compiled
def left_at(m: Records, buffer: Address, number: int) -> int:
    """When a flit left; of the last R that did."""
    run = _run_of(m, buffer, Run.LEAVES, m[buffer + FlitBuffer.LEAVE_RUNS], number) & m[Mesh.MASK]
    place = buffer + FlitBuffer.RINGS + Run.LEAVES + RUN_COLUMNS * run
    return m[place + 1] - m[place] + number


@compiled
def append(m: Records, buffer: Address, kind: int, runs: int, number: int, time: int) -> None:
    """Flits come or leave a cycle after each other from ``number`` on; ``runs``: a column."""
    mask, count = m[Mesh.MASK], m[buffer + runs]
    base = buffer + FlitBuffer.RINGS + kind
    last = base + RUN_COLUMNS * ((count - 1) & mask)
    if m[last + 1] - m[last] != time - number:
        place = base + RUN_COLUMNS * (count & mask)
        m[place], m[place + 1] = number, time
        m[buffer + runs] = count + 1


class Going(NamedTuple):
    """Flits that go from a buffer to the one behind it."""

    source: Address  # the buffer that they leave; 0: the tile
    target: Address  # the buffer that they come to; 0: the tile
    first: int  # number of the first one in the source
    flits: int  # how many
    latency: int  # cycles from a flit's coming to its leaving
    interval: int  # cycles from flit to flit; if more than one, each is a run of its own


@merged
def move(m: Records, going: Going, time: int, fork: bool) -> int:
    """Move flits at the earliest after ``time``; returns when the last one went.

    A flit leaves a fork when the last of its branches has sent it.
    """
    source, target, number, count, latency, interval = going
    mask, end = m[Mesh.MASK], number + count
    into = places = back = write = write_runs = free = free_runs = 0
    writes, leaves = source + FlitBuffer.RINGS + Run.WRITES, target + FlitBuffer.RINGS + Run.LEAVES
    forks = source + FlitBuffer.RINGS + Ring.FORKS * m[Mesh.RING_SIZE]
    if source > 0:
        write_runs = m[source + FlitBuffer.WRITE_RUNS]
        write = _run_of(m, source, Run.WRITES, write_runs, number)
    if target > 0:
        into, places = m[target + FlitBuffer.WRITTEN], given(m, Mesh.PLACES, target)
        back = given(m, Mesh.RETURN, target)
        free_runs = m[target + FlitBuffer.LEAVE_RUNS]
        free = _run_of(m, target, Run.LEAVES, free_runs, into - places)
        m[target + FlitBuffer.WRITTEN] = into + count
    while number < end:
        time, step = time + 1, end - number if interval == 1 else 1
        if source > 0:
            while write + 1 < write_runs:
                following = m[writes + RUN_COLUMNS * ((write + 1) & mask)]
                if following > number:
                    step = min(step, following - number)
                    break
                write += 1
            place = writes + RUN_COLUMNS * (write & mask)
            time = max(time, m[place + 1] - m[place] + number + latency)
        if target > 0:
            freed = into - places
            while free + 1 < free_runs:
                following = m[leaves + RUN_COLUMNS * ((free + 1) & mask)]
                if following > freed:
                    step = min(step, following - freed)
                    break
                free += 1
            place = leaves + RUN_COLUMNS * (free & mask)
            time = max(time, m[place + 1] - m[place] + freed + back)
            append(m, target, Run.WRITES, FlitBuffer.WRITE_RUNS, into, time)
            into += step
        if fork:
            for ahead in range(step):
                place = forks + 2 * ((number + ahead) & mask)
                sent_before = m[place + 1] > 0
                m[place] = max(time + ahead, m[place]) if sent_before else time + ahead
                m[place + 1] += 1
        elif source > 0:
            append(m, source, Run.LEAVES, FlitBuffer.LEAVE_RUNS, number, time)
        number += step
        time += step - 1
        if number < end:
            time += interval - 1
    return time


@compiled
def room_from(m: Records, output: Address, flits: int) -> int:
    """Cycle from which there is room for a packet behind an output; NEVER: not known yet.

    Nothing but the holder goes through the output meanwhile. So room comes by flits that leave the
    buffer behind the link, and by results that leave the output's buffer for that of operands.
    """
    behind, room = m[output + Output.BEHIND], NEVER
    operands = behind + OPERANDS * m[Mesh.BUFFER_SIZE]
    for results in range(m[Mesh.OUTPUT_DEPTH] + 1):  # that still wait in the output's buffer
        places = m[Mesh.DEPTH] + m[Mesh.OUTPUT_DEPTH]
        time = freed_at(m, behind, m[output + Output.THROUGH] + flits - places + results - 1)
        if time == NEVER:
            break
        last = m[output + Output.RESULTS_THROUGH] - results - 1
        if last < 0:
            return min(room, time)
        if last < m[operands + FlitBuffer.WRITTEN]:
            room = min(room, max(time, came_at(m, operands, last) + 1))
    return room


@compiled
def passes_from(m: Records, output: Address) -> int:
    """Cycle from which a flit can leave the switch by an output; NEVER: not known yet."""
    target = behind_switch(m, node_of(m, output), m[output + Output.PORT])
    if target == 0:
        return LONG_AGO
    linked = LONG_AGO
    if m[Mesh.OUTPUT_DEPTH] == 0:
        linked = m[output + Output.LINK_LAST] + m[Mesh.LINK_INTERVAL]
    return max(linked, free_place_from(m, target))


@compiled
def free_place_from(m: Records, buffer: Address) -> int:
    """Cycle from which a flit can come into a buffer; NEVER: not known yet."""
    return freed_at(m, buffer, m[buffer + FlitBuffer.WRITTEN] - given(m, Mesh.PLACES, buffer))


@compiled
def freed_at(m: Records, buffer: Address, number: int) -> int:
    """Cycle from which a flit's place can be filled again; NEVER: not known yet."""
    if number < 0:  # none was there
        return LONG_AGO
    if number >= m[buffer + FlitBuffer.LEFT]:
        return NEVER
    return left_at(m, buffer, number) + given(m, Mesh.RETURN, buffer)
