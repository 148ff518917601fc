"""Compiled core of the mesh at handshake level: the rules of rtl/noc, a packet and a hop at a time.

Once a packet has an output, only buffers decide when its flits move: a flit goes at the earliest a
cycle after the one before it, ``stages`` cycles after it came, and a cycle after a place behind has
become free. Such times follow from each other, and are computed as soon as all that they rest on is
known, ahead of the clock. Only grants need the order of time: requests are the events, kept in a
wheel of cycles.

Ports are 0 local, 1 north, 2 east, 3 south, 4 west. A buffer is ``node * 5 + port``, and so is an
output. The n-th flit that a buffer takes stands in place n modulo the size of its ring, a power of
two of at least the depth.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

PORTS = 5
Int64s = NDArray[np.int64]
NEVER = np.int64(2**62)

# Columns of `Mesh.buffers`: flits whose writing and whose leaving (by all branches) is known; the
# packets in the buffer, a ring of `PACKETS` from `FIRST`; of the packet at the front the cycle from
# which its header shows, a bit an output for the branches it needs and for those that hold their
# output, and, an output each, the flits sent and when the last went (before: the grant, less one).
WRITTEN, LEFT, FIRST, PACKETS, SHOWN_FROM, NEEDED, GRANTED = range(7)
SENT, LAST_SENT = 7, 7 + PORTS
_BUFFER_COLUMNS = LAST_SENT + PORTS
# Columns of `Mesh.outputs`: input that holds it, or -1; cycle from which it is free, NEVER while
# that is not known; a bit an input for requests that wait, and for who is first in line; scratch.
OWNER, FREE_FROM, ASKING, PREFERRED, MARKED = range(5)
# Columns of `Mesh.tiles`: packet to send or being sent, or -1, and the last that waits behind it;
# flits of it that went in, and when the last went; cycle of the next look; head of the packet that
# is coming out.
QUEUE_HEAD, QUEUE_TAIL, QUEUE_SENT, QUEUE_LAST, WAKES_AT, HEAD_OUT = range(6)
# Columns of `Mesh.packets`: those of `Packets` first.
CYCLE, SOURCE, FLITS, KIND, ROW_FIRST, ROW_LAST, ROW_STEP, COL_FIRST, COL_LAST, COL_STEP = range(10)
NEXT_IN_QUEUE, HEAD_INJECTED, TAIL_INJECTED = 12, 13, 14
PACKET_COLUMNS = 15
# Columns of `Mesh.deliveries`.
DELIVERED, AT_NODE, HEAD_EJECTED, TAIL_EJECTED = range(4)
# Columns of `Mesh.events`; NEXT links those of a place of the wheel, and those that are free.
NEXT, TIME, WHAT, WHOM = range(4)
# Kinds of events: a branch asks for its output, an output becomes free, a tile has a packet to
# send, a tail went in, a tail came out.
REQUEST, FREE, WAKE, INJECTED, EJECTED = range(5)
# Places of `Mesh.now`.
CLOCK, PENDING, UNUSED, DELIVERIES, OWED, REPORTING, REPORTED, DEPTH, MASK = range(9)
_WHEEL = 4096


class Mesh(NamedTuple):
    """All that is known of a mesh of N nodes; rings have R places."""

    buffers: Int64s  # [N*5, 17], see above; so for the others
    write_time: Int64s  # [N*5, R]
    leave_time: Int64s  # [N*5, R] while some branches have yet to send a flit: the latest so far
    passed: Int64s  # [N*5, R] branches that have sent a flit, while others have not
    ring_packet: Int64s  # [N*5, R] packets in a buffer
    ring_start: Int64s  # [N*5, R] number of their first flit
    outputs: Int64s  # [N*5, 5]
    tiles: Int64s  # [N, 6]
    packets: Int64s  # [capacity, 15]
    deliveries: Int64s  # [capacity, 4]
    events: Int64s  # [capacity, 4]
    wheel: Int64s  # [4096] first event of a cycle, modulo the size, or -1
    marked: Int64s  # [N*5] scratch: outputs with news in this cycle
    work: Int64s  # [N*5] scratch: buffers from which more may be known to leave
    in_work: NDArray[np.bool_]  # [N*5]
    reports: Int64s  # [N*10, 2] events of the last cycle: kind, packet or delivery
    now: Int64s  # [9]


def new_mesh(nodes: int, depth: int) -> Mesh:
    """A mesh of ``nodes`` routers after reset; the caller makes room for packets and deliveries."""
    buffers = nodes * PORTS
    ring = 1 << (depth - 1).bit_length()

    def zeros(*shape: int) -> Int64s:
        return np.zeros(shape, dtype=np.int64)

    outputs = zeros(buffers, 5)
    outputs[:, OWNER] = -1
    outputs[:, PREFERRED] = 2**PORTS - 1
    tiles = zeros(nodes, 6)
    tiles[:, [QUEUE_HEAD, QUEUE_TAIL, QUEUE_LAST, WAKES_AT]] = -1
    # At most one request a branch, one release an output, a few for a tile, and reports of as many
    # packets as go into its buffer ahead of the clock.
    events = zeros(6 * buffers + (8 + depth) * nodes, 4)
    events[:, NEXT] = np.arange(1, len(events) + 1)
    return Mesh(
        buffers=zeros(buffers, _BUFFER_COLUMNS),
        write_time=zeros(buffers, ring),
        leave_time=zeros(buffers, ring) - 1,
        passed=zeros(buffers, ring),
        ring_packet=zeros(buffers, ring),
        ring_start=zeros(buffers, ring),
        outputs=outputs,
        tiles=tiles,
        packets=zeros(64, PACKET_COLUMNS),
        deliveries=zeros(64, 4),
        events=events,
        wheel=np.full(_WHEEL, -1, dtype=np.int64),
        marked=zeros(buffers),
        work=zeros(buffers),
        in_work=np.zeros(buffers, dtype=np.bool_),
        reports=zeros(2 * buffers, 2),
        now=np.array([0, 0, 0, 0, 0, 0, 0, depth, ring - 1], dtype=np.int64),
    )


@njit(cache=True, inline="always")
def _branches(mesh: Mesh, packet: int, row: int, col: int, port: int) -> int:
    """Outputs by which a packet leaves a router: rtl/noc/tree_route.sv."""
    packets = mesh.packets
    along_row = port == 0 or port == 2 or port == 4
    first, last = packets[packet, COL_FIRST], packets[packet, COL_LAST]
    outputs = 0
    if along_row:
        if port != 2 and last > col:
            outputs |= 4
        if port != 4 and first < col:
            outputs |= 16
    if not along_row or (first <= col <= last and (col - first) % packets[packet, COL_STEP] == 0):
        first, last = packets[packet, ROW_FIRST], packets[packet, ROW_LAST]
        if port != 1 and first < row:
            outputs |= 2
        if port != 3 and last > row:
            outputs |= 8
        if first <= row <= last and (row - first) % packets[packet, ROW_STEP] == 0:
            outputs |= 1
    return outputs


@njit(cache=True, inline="always")
def _neighbour(node: int, port: int, cols: int) -> int:
    """The facing port of the neighbour: buffer behind an output, output before a buffer."""
    if port == 1:
        return (node - cols) * PORTS + 3
    if port == 2:
        return (node + 1) * PORTS + 4
    if port == 3:
        return (node + cols) * PORTS + 1
    return (node - 1) * PORTS + 2


@njit(cache=True, inline="always")
def _schedule(mesh: Mesh, time: int, what: int, whom: int) -> None:
    event = mesh.now[UNUSED]
    mesh.now[UNUSED] = mesh.events[event, NEXT]
    place = time & (_WHEEL - 1)
    mesh.events[event, NEXT] = mesh.wheel[place]
    mesh.events[event, TIME] = time
    mesh.events[event, WHAT] = what
    mesh.events[event, WHOM] = whom
    mesh.wheel[place] = event
    mesh.now[PENDING] += 1


@njit(cache=True, inline="always")
def _report(mesh: Mesh, time: int, what: int, whom: int) -> None:
    """Tell the caller in the cycle in which it happens: this one, or one to come."""
    if time > mesh.now[CLOCK]:
        _schedule(mesh, time, what, whom)
        return
    number = mesh.now[REPORTED]
    mesh.reports[number, 0] = what
    mesh.reports[number, 1] = whom
    mesh.now[REPORTED] = number + 1


@njit(cache=True, inline="always")
def _look_at(mesh: Mesh, buffer: int, top: int) -> int:
    """Put a buffer on the stack of those that may be able to send more; the new top."""
    if mesh.in_work[buffer]:
        return top
    mesh.in_work[buffer] = True
    mesh.work[top] = buffer
    return top + 1


@njit(cache=True, inline="always")
def _show_front(mesh: Mesh, buffer: int, cols: int, stages: Int64s) -> None:
    """The packet at the front asks for its outputs as soon as its head is there."""
    first = mesh.buffers[buffer, FIRST]
    node = buffer // PORTS
    packet, start = mesh.ring_packet[buffer, first], mesh.ring_start[buffer, first]
    needed = _branches(mesh, packet, node // cols, node % cols, buffer % PORTS)
    mesh.buffers[buffer, NEEDED] = needed
    came = mesh.write_time[buffer, start & mesh.now[MASK]]
    for output in range(PORTS):
        if needed >> output & 1:
            mesh.buffers[buffer, SENT + output] = 0
            time = max(came + stages[output], mesh.buffers[buffer, SHOWN_FROM])
            _schedule(mesh, time, REQUEST, buffer * PORTS + output)


@njit(cache=True, inline="always")
def _enter(mesh: Mesh, buffer: int, packet: int, cols: int, stages: Int64s) -> None:
    """A packet's head is the next flit that comes into a buffer; its time of writing is known."""
    packets = mesh.buffers[buffer, PACKETS]
    place = (mesh.buffers[buffer, FIRST] + packets) & mesh.now[MASK]
    mesh.ring_packet[buffer, place] = packet
    mesh.ring_start[buffer, place] = mesh.buffers[buffer, WRITTEN]
    mesh.buffers[buffer, PACKETS] = packets + 1
    if packets == 0:
        _show_front(mesh, buffer, cols, stages)


@njit(cache=True, inline="always")
def _send(
    mesh: Mesh, buffer: int, output: int, many: bool, cols: int, stages: Int64s, top: int
) -> int:
    """Send flits of the front packet by a branch that holds its output, as far as times are known.

    Buffers from which more may leave for it go onto the stack; returns its top.
    """
    depth, mask, stage = mesh.now[DEPTH], mesh.now[MASK], stages[output]
    first = mesh.buffers[buffer, FIRST]
    packet = mesh.ring_packet[buffer, first]
    flits = mesh.packets[packet, FLITS]
    sent, time = mesh.buffers[buffer, SENT + output], mesh.buffers[buffer, LAST_SENT + output]
    number = mesh.ring_start[buffer, first] + sent
    count = min(flits - sent, mesh.buffers[buffer, WRITTEN] - number)
    node = buffer // PORTS
    behind = _neighbour(node, output, cols) if output else buffer
    into = mesh.buffers[behind, WRITTEN]
    if output:
        places = mesh.buffers[behind, LEFT] + depth - into
        if sent == 0 and mesh.packets[packet, KIND] == 1:
            # Cut-through: the head waits for room for all of the packet.
            if places < flits:
                return top
            time = max(time, mesh.leave_time[behind, (into + flits - 1 - depth) & mask])
        count = min(count, places)
    if count <= 0:
        return top
    for step in range(count):
        place = (number + step) & mask
        time = max(time + 1, mesh.write_time[buffer, place] + stage)
        if output:
            time = max(time, mesh.leave_time[behind, (into + step - depth) & mask] + 1)
            mesh.write_time[behind, (into + step) & mask] = time
        elif sent + step == 0:
            mesh.tiles[node, HEAD_OUT] = time
        if many:
            if mesh.passed[buffer, place] > 0:
                mesh.leave_time[buffer, place] = max(time, mesh.leave_time[buffer, place])
            else:
                mesh.leave_time[buffer, place] = time
            mesh.passed[buffer, place] += 1
        else:
            mesh.leave_time[buffer, place] = time
    mesh.buffers[buffer, SENT + output] = sent + count
    mesh.buffers[buffer, LAST_SENT + output] = time
    if output:
        if sent == 0:
            _enter(mesh, behind, packet, cols, stages)
        mesh.buffers[behind, WRITTEN] = into + count
        if mesh.buffers[behind, GRANTED]:
            top = _look_at(mesh, behind, top)
    if sent + count == flits:
        mesh.buffers[buffer, GRANTED] &= ~(1 << output)
        index = node * PORTS + output
        mesh.outputs[index, OWNER] = -1
        mesh.outputs[index, FREE_FROM] = time + 1
        if mesh.outputs[index, ASKING]:
            _schedule(mesh, time + 1, FREE, index)
        if output == 0:
            _deliver(mesh, packet, node, time)
    return top


@njit(cache=True, inline="always")
def _deliver(mesh: Mesh, packet: int, node: int, tail: int) -> None:
    number = mesh.now[DELIVERIES]
    mesh.now[DELIVERIES] = number + 1
    mesh.now[OWED] -= 1
    mesh.deliveries[number, DELIVERED] = packet
    mesh.deliveries[number, AT_NODE] = node
    mesh.deliveries[number, HEAD_EJECTED] = mesh.tiles[node, HEAD_OUT]
    mesh.deliveries[number, TAIL_EJECTED] = tail
    if mesh.now[REPORTING]:
        _report(mesh, tail, EJECTED, number)


@njit(cache=True, inline="always")
def _inject(mesh: Mesh, node: int, cols: int, stages: Int64s) -> None:
    """Move flits of a tile's packets into its router, as far as times are known."""
    buffer = node * PORTS
    depth, mask = mesh.now[DEPTH], mesh.now[MASK]
    while mesh.tiles[node, QUEUE_HEAD] >= 0:
        packet = mesh.tiles[node, QUEUE_HEAD]
        sent = mesh.tiles[node, QUEUE_SENT]
        cycle, flits = mesh.packets[packet, CYCLE], mesh.packets[packet, FLITS]
        if sent == 0 and cycle > mesh.now[CLOCK]:
            if mesh.tiles[node, WAKES_AT] != cycle:
                mesh.tiles[node, WAKES_AT] = cycle
                _schedule(mesh, cycle, WAKE, node)
            return
        time = max(mesh.tiles[node, QUEUE_LAST], cycle - 1)
        into = mesh.buffers[buffer, WRITTEN]
        count = min(flits - sent, mesh.buffers[buffer, LEFT] + depth - into)
        for step in range(count):
            time = max(time + 1, mesh.leave_time[buffer, (into + step - depth) & mask] + 1)
            mesh.write_time[buffer, (into + step) & mask] = time
            if sent + step == 0:
                mesh.packets[packet, HEAD_INJECTED] = time
        if sent == 0 and count > 0:
            _enter(mesh, buffer, packet, cols, stages)
        mesh.buffers[buffer, WRITTEN] = into + count
        mesh.tiles[node, QUEUE_LAST] = time
        if sent + count < flits:
            mesh.tiles[node, QUEUE_SENT] = sent + count
            return
        mesh.tiles[node, QUEUE_SENT] = 0
        mesh.packets[packet, TAIL_INJECTED] = time
        mesh.tiles[node, QUEUE_HEAD] = mesh.packets[packet, NEXT_IN_QUEUE]
        if mesh.now[REPORTING]:
            _report(mesh, time, INJECTED, packet)


@njit(cache=True, inline="always")
def _follow(mesh: Mesh, top: int, cols: int, stages: Int64s) -> None:
    """Compute all times that follow from what is new in the buffers on the stack."""
    while top:
        top -= 1
        buffer = mesh.work[top]
        mesh.in_work[buffer] = False
        local = buffer % PORTS == 0
        if local and mesh.tiles[buffer // PORTS, QUEUE_HEAD] >= 0:
            _inject(mesh, buffer // PORTS, cols, stages)
        if mesh.buffers[buffer, GRANTED] == 0:
            continue
        needed = mesh.buffers[buffer, NEEDED]
        many = needed & (needed - 1) != 0
        for output in range(PORTS):
            if mesh.buffers[buffer, GRANTED] >> output & 1:
                top = _send(mesh, buffer, output, many, cols, stages, top)
        first = mesh.buffers[buffer, FIRST]
        flits = mesh.packets[mesh.ring_packet[buffer, first], FLITS]
        gone = flits
        for output in range(PORTS):
            if needed >> output & 1:
                gone = min(gone, mesh.buffers[buffer, SENT + output])
        before, left = mesh.buffers[buffer, LEFT], mesh.ring_start[buffer, first] + gone
        if left == before:
            continue
        mesh.buffers[buffer, LEFT] = left
        if many:
            for number in range(before, left):
                mesh.passed[buffer, number & mesh.now[MASK]] = 0
        if gone == flits:
            tail = mesh.leave_time[buffer, (left - 1) & mesh.now[MASK]]
            mesh.buffers[buffer, SHOWN_FROM] = tail + 1
            mesh.buffers[buffer, FIRST] = (first + 1) & mesh.now[MASK]
            mesh.buffers[buffer, PACKETS] -= 1
            if mesh.buffers[buffer, PACKETS] > 0:
                _show_front(mesh, buffer, cols, stages)
        # The places that became free may be waited for.
        if local:
            top = _look_at(mesh, buffer, top)
        else:
            feeder = _neighbour(buffer // PORTS, buffer % PORTS, cols)
            if mesh.outputs[feeder, OWNER] >= 0:
                top = _look_at(mesh, feeder // PORTS * PORTS + mesh.outputs[feeder, OWNER], top)


@njit(cache=True, inline="always")
def _grant(mesh: Mesh, index: int, top: int) -> int:
    """Give an output that is free to the first request in line: rtl/noc/rr_arbiter.sv."""
    clock, asking = mesh.now[CLOCK], mesh.outputs[index, ASKING]
    if asking == 0 or mesh.outputs[index, FREE_FROM] > clock:
        return top
    line = asking & mesh.outputs[index, PREFERRED]
    if line == 0:
        line = asking
    winner = 0
    while not line >> winner & 1:
        winner += 1
    mesh.outputs[index, PREFERRED] = 31 & ~((2 << winner) - 1)
    mesh.outputs[index, ASKING] = asking & ~(1 << winner)
    mesh.outputs[index, OWNER] = winner
    mesh.outputs[index, FREE_FROM] = NEVER
    buffer, output = index // PORTS * PORTS + winner, index % PORTS
    mesh.buffers[buffer, GRANTED] |= 1 << output
    mesh.buffers[buffer, LAST_SENT + output] = clock - 1
    return _look_at(mesh, buffer, top)


@njit(cache=True, inline="always")
def _next_event(mesh: Mesh) -> int:
    """Cycle of the first pending event."""
    first = int(NEVER)
    for place in range(_WHEEL):
        event = mesh.wheel[place]
        while event >= 0:
            first = min(first, int(mesh.events[event, TIME]))
            event = mesh.events[event, NEXT]
    return first


@njit(cache=True)
def enqueue(mesh: Mesh, start: int, stop: int, deliveries: int) -> None:
    """Append the packets ``start`` to ``stop - 1`` to their sources' queues."""
    for packet in range(start, stop):
        node = mesh.packets[packet, SOURCE]
        mesh.packets[packet, NEXT_IN_QUEUE] = -1
        mesh.packets[packet, HEAD_INJECTED] = -1
        mesh.packets[packet, TAIL_INJECTED] = -1
        if mesh.tiles[node, QUEUE_HEAD] < 0:
            mesh.tiles[node, QUEUE_HEAD] = packet
            cycle = max(mesh.packets[packet, CYCLE], mesh.now[CLOCK])
            mesh.tiles[node, WAKES_AT] = cycle
            _schedule(mesh, cycle, WAKE, node)
        else:
            mesh.packets[mesh.tiles[node, QUEUE_TAIL], NEXT_IN_QUEUE] = packet
        mesh.tiles[node, QUEUE_TAIL] = packet
    mesh.now[OWED] += deliveries


@njit(cache=True)
def run(mesh: Mesh, cols: int, stages: Int64s, until: int) -> int:
    """Simulate until ``until``, the first cycle with reports, idleness or a hang.

    Args:
        mesh: The mesh; the cycle to simulate first is ``now[CLOCK]``.
        cols: Columns of the mesh.
        stages: [5] per output, cycles from a flit's write into a buffer to its leaving by it.
        until: First cycle that is not simulated.

    Returns:
        Reports of the last cycle, or -1 if packets wait for each other for ever.
    """
    mesh.now[REPORTED], quiet = 0, 0
    while mesh.now[REPORTED] == 0 and mesh.now[PENDING] > 0 and mesh.now[CLOCK] < until:
        if quiet == _WHEEL:  # a whole turn without an event: the next one is far ahead
            mesh.now[CLOCK] = min(_next_event(mesh), until)
            quiet = 0
            continue
        clock = mesh.now[CLOCK]
        place = clock & (_WHEEL - 1)
        quiet = quiet + 1 if mesh.wheel[place] < 0 else 0
        event, marked, top = mesh.wheel[place], 0, 0
        mesh.wheel[place] = -1
        while event >= 0:
            following = mesh.events[event, NEXT]
            if mesh.events[event, TIME] != clock:  # a turn of the wheel or more ahead
                mesh.events[event, NEXT] = mesh.wheel[place]
                mesh.wheel[place] = event
                event = following
                continue
            what, whom = mesh.events[event, WHAT], mesh.events[event, WHOM]
            mesh.events[event, NEXT] = mesh.now[UNUSED]
            mesh.now[UNUSED] = event
            mesh.now[PENDING] -= 1
            event = following
            if what == WAKE:
                top = _look_at(mesh, whom * PORTS, top)
                continue
            if what >= INJECTED:
                _report(mesh, clock, what, whom)
                continue
            index = whom
            if what == REQUEST:
                buffer = whom // PORTS
                index = buffer // PORTS * PORTS + whom % PORTS
                asking, free_from = mesh.outputs[index, ASKING], mesh.outputs[index, FREE_FROM]
                mesh.outputs[index, ASKING] = asking | 1 << buffer % PORTS
                if asking == 0 and clock < free_from < NEVER:
                    _schedule(mesh, free_from, FREE, index)
            if mesh.outputs[index, MARKED] == 0:
                mesh.outputs[index, MARKED] = 1
                mesh.marked[marked] = index
                marked += 1
        for position in range(marked):
            mesh.outputs[mesh.marked[position], MARKED] = 0
            top = _grant(mesh, mesh.marked[position], top)
        _follow(mesh, top, cols, stages)
        mesh.now[CLOCK] = clock + 1
    if mesh.now[REPORTED] == 0 and mesh.now[PENDING] == 0 and mesh.now[OWED] > 0:
        return -1
    return int(mesh.now[REPORTED])
