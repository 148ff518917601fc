"""Compiled packets on a mesh of dies: link occupancy, arbitration and credits, event by event.

Every die has five inputs and five outputs: 0 the die, 1 north, 2 east, 3 south, 4 west; packets go
along the row first. An input is a queue of packets; the first one asks for its output from the
moment its head is there. An output takes the next asking input in turn (round-robin) when it is
free, the input's last packet has left, and the next die has room for the whole packet. Inputs from
the die are unbounded and hold what may be sent, in order.

Events are kept in a heap of (time, number, kind, die, what), so that equal times keep the order in
which the events came up.
"""

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import allocating, compiled

Int64s = NDArray[np.int64]

PORTS = 5
_NONE = -1
_HEAD, _FREE, _CREDIT, _MESSAGE = 0, 1, 2, 3
#: Numbers of a mesh, as in `tlm.dies.links.DieMesh`.
ROWS, COLS, UNIT, PORT, HOP, EJECT, RETURN, PACKET, BUFFER = range(9)


@compiled
def _append(
    packet: int, die: int, port: int, following: Int64s, first: Int64s, last: Int64s
) -> None:
    """Put a packet at the end of an input's queue."""
    if first[die, port] == _NONE:
        first[die, port] = packet
    else:
        following[last[die, port]] = packet
    last[die, port] = packet


@compiled
def _output(die: int, target: int, cols: int) -> int:
    """The port by which a packet leaves a die."""
    col, to_col = die % cols, target % cols
    if to_col != col:
        return 2 if to_col > col else 4
    row, to_row = die // cols, target // cols
    if to_row != row:
        return 3 if to_row > row else 1
    return 0


@compiled
def _neighbour(die: int, port: int, cols: int) -> int:
    if port == 1:
        return die - cols
    if port == 2:
        return die + 1
    if port == 3:
        return die + cols
    return die - 1


@allocating
def run(
    mesh: Int64s,
    messages: tuple[Int64s, Int64s, Int64s],
    first_packet: Int64s,
    waits: Int64s,
    children: tuple[Int64s, Int64s],
    sent: Int64s,
    arrived: Int64s,
    link_units: Int64s,
) -> int:
    """Run messages to their delivery; the number of those that arrived.

    Args:
        mesh: Its numbers.
        messages: Source, target and units of each.
        first_packet: Shape (messages + 1,): number of each message's first packet.
        waits: Shape (messages,): messages that each still waits for.
        children: Messages that wait for each, as offsets and numbers.
        sent: Shape (messages,): time at which each may be sent (result).
        arrived: Shape (messages,): time at which its last unit has arrived (result).
        link_units: Shape (dies, 5): units that left by each port (result).
    """
    source, target, units = messages
    cols, dies = mesh[COLS], mesh[ROWS] * mesh[COLS]
    packets = first_packet[-1]
    message_of = np.zeros(packets, dtype=np.int64)
    for number in range(len(source)):
        message_of[first_packet[number] : first_packet[number + 1]] = number
    following = np.full(packets, _NONE, dtype=np.int64)
    first = np.full((dies, PORTS), _NONE, dtype=np.int64)
    last = np.full((dies, PORTS), _NONE, dtype=np.int64)
    input_free = np.zeros((dies, PORTS), dtype=np.int64)
    output_free = np.zeros((dies, PORTS), dtype=np.int64)
    turn = np.zeros((dies, PORTS), dtype=np.int64)
    room = np.full((dies, PORTS), mesh[BUFFER], dtype=np.int64)
    wanted = np.full((dies, PORTS), _NONE, dtype=np.int64)  # output of each input's first packet
    missing = first_packet[1:] - first_packet[:-1]
    heap = [(0, 0, 0, 0, 0) for _ in range(0)]  # of this type, and empty
    events, done = 0, 0
    for number in range(len(source)):
        if waits[number] == 0:
            heappush(heap, (0, events, _MESSAGE, source[number], number))
            events += 1
    while heap:
        now, _, kind, die, port = heappop(heap)
        if kind == _HEAD:  # port holds the input in its last digit, and the packet
            packet, port_in = port // PORTS, port % PORTS
            _append(packet, die, port_in, following, first, last)
            if first[die, port_in] == packet:
                wanted[die, port_in] = _output(die, target[message_of[packet]], cols)
        elif kind == _CREDIT:  # port holds the output in its last digit, and the units
            room[die, port % PORTS] += port // PORTS
        elif kind == _MESSAGE:  # port holds the message
            for packet in range(first_packet[port], first_packet[port + 1]):
                _append(packet, die, 0, following, first, last)
            if first[die, 0] == first_packet[port]:
                wanted[die, 0] = _output(die, target[port], cols)
        for out in range(PORTS):
            if output_free[die, out] > now:
                continue
            chosen = _NONE
            for k in range(PORTS):
                port_in = (turn[die, out] + k) % PORTS
                if wanted[die, port_in] != out or input_free[die, port_in] > now:
                    continue
                packet = first[die, port_in]
                message = message_of[packet]
                part = min(
                    mesh[PACKET],
                    units[message] - (packet - first_packet[message]) * mesh[PACKET],
                )
                if out == 0 or room[die, out] >= part:
                    chosen = port_in
                    break
            if chosen == _NONE:
                continue
            turn[die, out] = chosen + 1
            packet = first[die, chosen]
            first[die, chosen] = following[packet]
            following[packet] = _NONE
            after = first[die, chosen]
            wanted[die, chosen] = (
                _NONE if after == _NONE else _output(die, target[message_of[after]], cols)
            )
            # Where a die's port and a link differ, the packet's tail goes at the slower's pace, and
            # the faster port is free for another packet before.
            slower, port_rate = max(mesh[UNIT], mesh[PORT]), mesh[PORT]
            left = now + part * (mesh[UNIT] if chosen and out else slower)
            output_free[die, out] = left if out else now + part * port_rate
            input_free[die, chosen] = left if chosen else now + part * port_rate
            link_units[die, out] += part
            heappush(heap, (left, events, _FREE, die, 0))
            events += 1
            if not (chosen and out) and port_rate < mesh[UNIT]:
                heappush(heap, (now + part * port_rate, events, _FREE, die, 0))
                events += 1
            if chosen:
                back, towards = _neighbour(die, chosen, cols), (chosen + 1) % 4 + 1
                credit = part * PORTS + towards
                heappush(heap, (left + mesh[RETURN], events, _CREDIT, back, credit))
                events += 1
            if out:
                room[die, out] -= part
                next_die, next_port = _neighbour(die, out, cols), (out + 1) % 4 + 1
                head = packet * PORTS + next_port
                heappush(heap, (now + mesh[HOP], events, _HEAD, next_die, head))
                events += 1
                continue
            missing[message] -= 1
            arrived[message] = max(arrived[message], left + mesh[EJECT])
            if missing[message]:
                continue
            done += 1
            for k in range(children[0][message], children[0][message + 1]):
                child = children[1][k]
                waits[child] -= 1
                sent[child] = max(sent[child], arrived[message])
                if waits[child] == 0:
                    heappush(heap, (sent[child], events, _MESSAGE, source[child], child))
                    events += 1
    return done
