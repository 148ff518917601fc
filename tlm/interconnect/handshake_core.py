"""Compiled core of the mesh at handshake level: the rules of rtl/noc, a cycle at a time.

Only routers that hold a flit and interfaces that have one to send are visited, and stretches in
which nothing moves are skipped. Within a cycle every decision reads the state before the cycle, as
registers do; the moves are applied afterwards.

Ports are 0 local, 1 north, 2 east, 3 south, 4 west. A buffer is ``node * 5 + port``, and so is an
output.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

PORTS = 5
Int64s = NDArray[np.int64]
NEVER = np.int64(2**62)


class State(NamedTuple):
    """Registers of the mesh. N nodes, D flits a buffer."""

    buffer_packet: Int64s  # [N*5, D]
    buffer_flit: Int64s  # [N*5, D] number of the flit within its packet
    buffer_written: Int64s  # [N*5, D] cycle in which the flit came
    front: Int64s  # [N*5] place of the oldest flit
    fill: Int64s  # [N*5] flits it holds
    needed: Int64s  # [N*5] bit per output: branches of the packet at the front
    done: Int64s  # [N*5] bit per output: branches that have sent their last flit
    ahead: Int64s  # [N*5, 5] flits a branch has sent that still hold a place
    owner: Int64s  # [N*5] input that holds an output, or -1
    preferred: Int64s  # [N*5] bit per input: first in line for an output
    held: Int64s  # [N] flits in the five buffers of a node
    queue_head: Int64s  # [N] packet at the head of the source queue, or -1
    queue_tail: Int64s  # [N]
    sent: Int64s  # [N] flits sent of that packet
    active: Int64s  # [N] nodes to visit, the first clock[1] of them
    is_active: NDArray[np.bool_]  # [N]
    moves: Int64s  # [N*5 + N, 2] scratch: buffer and output (-1: injection)
    clock: Int64s  # [3]: cycle, active nodes, deliveries


class PacketStore(NamedTuple):
    """Packets known so far; each array [capacity], events [capacity of deliveries]."""

    cycle: Int64s
    source: Int64s
    flits: Int64s
    kind: Int64s
    row_first: Int64s
    row_last: Int64s
    row_step: Int64s
    col_first: Int64s
    col_last: Int64s
    col_step: Int64s
    root: Int64s
    joint: Int64s
    next_in_queue: Int64s
    head_injected: Int64s
    tail_injected: Int64s
    event_packet: Int64s
    event_node: Int64s
    event_head: Int64s
    event_tail: Int64s


def new_state(nodes: int, depth: int) -> State:
    """A mesh of ``nodes`` routers after reset."""
    buffers = nodes * PORTS

    def zeros(*shape: int) -> Int64s:
        return np.zeros(shape, dtype=np.int64)

    return State(
        buffer_packet=zeros(buffers, depth),
        buffer_flit=zeros(buffers, depth),
        buffer_written=zeros(buffers, depth),
        front=zeros(buffers),
        fill=zeros(buffers),
        needed=zeros(buffers),
        done=zeros(buffers),
        ahead=zeros(buffers, PORTS),
        owner=np.full(buffers, -1, dtype=np.int64),
        preferred=np.full(buffers, 2**PORTS - 1, dtype=np.int64),
        held=zeros(nodes),
        queue_head=np.full(nodes, -1, dtype=np.int64),
        queue_tail=np.full(nodes, -1, dtype=np.int64),
        sent=zeros(nodes),
        active=zeros(nodes),
        is_active=np.zeros(nodes, dtype=np.bool_),
        moves=zeros(buffers + nodes, 2),
        clock=zeros(3),
    )


@njit(cache=True, inline="always")
def _branches(packets: PacketStore, packet: int, row: int, col: int, port: int) -> int:
    """Outputs by which a packet leaves a router: rtl/noc/xy_route.sv."""
    along_row = port == 0 or port == 2 or port == 4
    first, last, step = (
        packets.col_first[packet],
        packets.col_last[packet],
        packets.col_step[packet],
    )
    outputs = 0
    if along_row:
        if port != 2 and last > col:
            outputs |= 4
        if port != 4 and first < col:
            outputs |= 16
    if not along_row or (first <= col <= last and (col - first) % step == 0):
        first, last = packets.row_first[packet], packets.row_last[packet]
        if port != 1 and first < row:
            outputs |= 2
        if port != 3 and last > row:
            outputs |= 8
        if first <= row <= last and (row - first) % packets.row_step[packet] == 0:
            outputs |= 1
    return outputs


@njit(cache=True, inline="always")
def _activate(state: State, node: int) -> None:
    if not state.is_active[node]:
        state.is_active[node] = True
        state.active[state.clock[1]] = node
        state.clock[1] += 1


@njit(cache=True, inline="always")
def _push(
    state: State, packets: PacketStore, buffer: int, packet: int, flit: int, cols: int
) -> None:
    """Write a flit into a buffer; the first one shows its packet's branches."""
    depth = state.buffer_packet.shape[1]
    place = state.front[buffer] + state.fill[buffer]
    if place >= depth:
        place -= depth
    state.buffer_packet[buffer, place] = packet
    state.buffer_flit[buffer, place] = flit
    state.buffer_written[buffer, place] = state.clock[0]
    node = buffer // PORTS
    if state.fill[buffer] == 0:
        state.needed[buffer] = _branches(packets, packet, node // cols, node % cols, buffer % PORTS)
    state.fill[buffer] += 1
    state.held[node] += 1
    _activate(state, node)


@njit(cache=True, inline="always")
def _pop(state: State, packets: PacketStore, buffer: int, cols: int) -> None:
    """Free the place of the oldest flit once every branch has sent it."""
    needed = state.needed[buffer]
    if needed == 0:  # emptied in this cycle by another branch
        return
    for output in range(PORTS):
        if needed >> output & 1 and state.ahead[buffer, output] == 0:
            return
    for output in range(PORTS):
        if needed >> output & 1:
            state.ahead[buffer, output] -= 1
    depth = state.buffer_packet.shape[1]
    place = state.front[buffer]
    packet = state.buffer_packet[buffer, place]
    was_tail = state.buffer_flit[buffer, place] == packets.flits[packet] - 1
    state.front[buffer] = place + 1 if place + 1 < depth else 0
    state.fill[buffer] -= 1
    node = buffer // PORTS
    state.held[node] -= 1
    if was_tail:
        state.done[buffer] = 0
        if state.fill[buffer] > 0:
            following = state.buffer_packet[buffer, state.front[buffer]]
            state.needed[buffer] = _branches(
                packets, following, node // cols, node % cols, buffer % PORTS
            )
    if state.fill[buffer] == 0:
        state.needed[buffer] = 0


@njit(cache=True, inline="always")
def _neighbour_buffer(node: int, output: int, cols: int) -> int:
    """Input buffer behind an output that is not the local one."""
    if output == 1:
        return (node - cols) * PORTS + 3
    if output == 2:
        return (node + 1) * PORTS + 4
    if output == 3:
        return (node + cols) * PORTS + 1
    return (node - 1) * PORTS + 2


@njit(cache=True, inline="always")
def _requests(state: State, node: int, stages: Int64s, offers: Int64s) -> None:
    """Find, per output, the inputs (a bit each) that offer a flit."""
    depth = state.buffer_packet.shape[1]
    for output in range(PORTS):
        offers[output] = 0
    for port in range(PORTS):
        buffer = node * PORTS + port
        held = state.fill[buffer]
        if held == 0:
            continue
        branches = state.needed[buffer] & ~state.done[buffer]
        for output in range(PORTS):
            if not branches >> output & 1 or state.ahead[buffer, output] >= held:
                continue
            place = state.front[buffer] + state.ahead[buffer, output]
            if place >= depth:
                place -= depth
            if state.buffer_written[buffer, place] + stages[output] > state.clock[0]:
                continue
            offers[output] |= 1 << port


@njit(cache=True, inline="always")
def _has_room(state: State, packets: PacketStore, buffer: int, output: int, behind: int) -> bool:
    """Whether the buffer behind an output takes the flit: of a multicast's head, all the packet."""
    free = state.buffer_packet.shape[1] - state.fill[behind]
    packet = state.buffer_packet[buffer, state.front[buffer]]
    started = state.ahead[buffer, output] > 0 or state.buffer_flit[buffer, state.front[buffer]] > 0
    if packets.kind[packet] == 1 and not started:
        return bool(free >= packets.flits[packet])
    return bool(free > 0)


@njit(cache=True, inline="always")
def _grant(state: State, index: int, offers: int) -> None:
    """Give a free output to the first request in line: rtl/noc/rr_arbiter.sv."""
    line = offers & state.preferred[index]
    if line == 0:
        line = offers
    winner = 0
    while not line >> winner & 1:
        winner += 1
    state.owner[index] = winner
    state.preferred[index] = 31 & ~((2 << winner) - 1)


@njit(cache=True)
def enqueue(state: State, packets: PacketStore, start: int, stop: int) -> None:
    """Append the packets ``start`` to ``stop - 1`` to their sources' queues."""
    for packet in range(start, stop):
        node = packets.source[packet]
        packets.next_in_queue[packet] = -1
        packets.head_injected[packet] = -1
        packets.tail_injected[packet] = -1
        if state.queue_head[node] < 0:
            state.queue_head[node] = packet
        else:
            packets.next_in_queue[state.queue_tail[node]] = packet
        state.queue_tail[node] = packet
        _activate(state, node)


@njit(cache=True)
def _decide(state: State, packets: PacketStore, cols: int, stages: Int64s) -> int:
    """Grants and handshakes of the cycle; returns the number of moves."""
    cycle = state.clock[0]
    depth = state.buffer_packet.shape[1]
    offers = np.empty(PORTS, dtype=np.int64)
    count = 0
    for position in range(state.clock[1]):
        node = state.active[position]
        packet = state.queue_head[node]
        if packet >= 0 and packets.cycle[packet] <= cycle and state.fill[node * PORTS] < depth:
            state.moves[count, 0] = node
            state.moves[count, 1] = -1
            count += 1
        if state.held[node] == 0:
            continue
        _requests(state, node, stages, offers)
        for output in range(PORTS):
            index = node * PORTS + output
            if state.owner[index] < 0 and offers[output]:
                _grant(state, index, offers[output])
            port = state.owner[index]
            if port < 0 or not offers[output] >> port & 1:
                continue
            if output == 0 or _has_room(
                state,
                packets,
                node * PORTS + port,
                output,
                _neighbour_buffer(node, output, cols),
            ):
                state.moves[count, 0] = node * PORTS + port
                state.moves[count, 1] = output
                count += 1
    return count


@njit(cache=True, inline="always")
def _inject(state: State, packets: PacketStore, node: int, cols: int) -> bool:
    """Move a flit from the source queue into the local buffer; True if it was a tail."""
    packet = state.queue_head[node]
    flit = state.sent[node]
    if flit == 0:
        packets.head_injected[packet] = state.clock[0]
    _push(state, packets, node * PORTS, packet, flit, cols)
    if flit + 1 < packets.flits[packet]:
        state.sent[node] = flit + 1
        return False
    packets.tail_injected[packet] = state.clock[0]
    state.sent[node] = 0
    state.queue_head[node] = packets.next_in_queue[packet]
    return True


@njit(cache=True, inline="always")
def _forward(
    state: State, packets: PacketStore, buffer: int, output: int, cols: int, open_delivery: Int64s
) -> bool:
    """Move a flit by one branch; True if a tail was ejected."""
    cycle = state.clock[0]
    node = buffer // PORTS
    depth = state.buffer_packet.shape[1]
    place = state.front[buffer] + state.ahead[buffer, output]
    if place >= depth:
        place -= depth
    packet = state.buffer_packet[buffer, place]
    flit = state.buffer_flit[buffer, place]
    tail = bool(flit == packets.flits[packet] - 1)
    state.ahead[buffer, output] += 1
    if tail:
        state.done[buffer] |= 1 << output
        state.owner[node * PORTS + output] = -1
    if output:
        behind = _neighbour_buffer(node, output, cols)
        _push(state, packets, behind, packet, flit, cols)
        return False
    if flit == 0:
        open_delivery[node] = cycle
    if tail:
        number = state.clock[2]
        packets.event_packet[number] = packet
        packets.event_node[number] = node
        packets.event_head[number] = open_delivery[node]
        packets.event_tail[number] = cycle
        state.clock[2] = number + 1
    return tail


@njit(cache=True, inline="always")
def _retire(state: State) -> None:
    """Drop the nodes that hold nothing and have nothing to send."""
    kept = 0
    for position in range(state.clock[1]):
        node = state.active[position]
        if state.held[node] > 0 or state.queue_head[node] >= 0:
            state.active[kept] = node
            kept += 1
        else:
            state.is_active[node] = False
    state.clock[1] = kept


@njit(cache=True)
def _next_cycle(state: State, packets: PacketStore, stages: Int64s) -> int:
    """First later cycle in which a flit may move by itself; NEVER if none can."""
    cycle = state.clock[0]
    best = int(NEVER)
    depth = state.buffer_packet.shape[1]
    for position in range(state.clock[1]):
        node = state.active[position]
        packet = state.queue_head[node]
        if packet >= 0 and packets.cycle[packet] > cycle:
            best = min(best, int(packets.cycle[packet]))
        if state.held[node]:
            for buffer in range(node * PORTS, node * PORTS + PORTS):
                for ahead in range(state.fill[buffer]):
                    written = state.buffer_written[buffer, (state.front[buffer] + ahead) % depth]
                    for output in range(PORTS):
                        if written + stages[output] > cycle:
                            best = min(best, int(written + stages[output]))
    return best


@njit(cache=True)
def run(
    state: State,
    packets: PacketStore,
    cols: int,
    stages: Int64s,
    until: int,
    stop_at_event: bool,
    open_delivery: Int64s,
    injected: Int64s,
) -> int:
    """Simulate until ``until``, an event (if asked), idleness or a hang.

    Args:
        state: Registers; the cycle to simulate first is ``state.clock[0]``.
        packets: Packets; deliveries are appended to it.
        cols: Columns of the mesh.
        stages: [5] per output, cycles from a flit's write into a buffer to its leaving by it.
        until: First cycle that is not simulated.
        stop_at_event: Return after the first cycle with a tail injected or ejected.
        open_delivery: Scratch [N]: cycle of the head flit of the packet being ejected.
        injected: Out [N]: packets whose tail was injected in the last cycle.

    Returns:
        Tails injected in the last cycle, or -1 if flits wait for each other for ever.
    """
    while state.clock[0] < until and state.clock[1] > 0:
        count = _decide(state, packets, cols, stages)
        before = state.clock[2]
        tails = 0
        for index in range(count):
            buffer, output = state.moves[index]
            if output < 0:
                packet = state.queue_head[buffer]
                if _inject(state, packets, buffer, cols):
                    injected[tails] = packet
                    tails += 1
            else:
                _forward(state, packets, buffer, output, cols, open_delivery)
        for index in range(count):
            if state.moves[index, 1] >= 0:
                _pop(state, packets, state.moves[index, 0], cols)
        if count == 0:
            following = _next_cycle(state, packets, stages)
            if following == NEVER:
                return -1
            state.clock[0] = min(following, until)
            continue
        _retire(state)
        state.clock[0] += 1
        if stop_at_event and (tails > 0 or state.clock[2] > before):
            return tails
    return 0
