"""Compiled packets of multicasts that meet, for the loosely-timed engine: link by link, in time.

A multicast's packets go one after the other. Each lies in the buffer of every router on its way
until all its branches have left it. Behind it in the buffer lie as many others as find room. The
branch to the tile leaves when it is given the ejection port. The one to the next router leaves when
it is given the link, and the buffer behind has room for all of the packet. Links and ports serve in
order of asking. So a port that two multicasts share
holds up both trees, packet by packet, and a wait goes back to the roots buffer by buffer.

A block of off-chip memory is a tree with one destination. So is the request for it, or the block
that is stored: when all of it has come to the router of its channel, the channel's answer is next
there. Their packets need no room for all of themselves: the first flit's is enough.

Nothing here is flit by flit. A packet at the front of a buffer is one event, whose time is known
when the events before it are done. What it occupies is a maximum and a sum.

Work takes no event: when it ends is known when the last of what it waits for is. A reduction's
operands are combined when the last of them has begun.
"""

from functools import cache

from tlm.compiled import compiled, merged, prepare
from tlm.engines.lt.contention.multicast_network import (
    BLOCK,
    BUFFERS,
    NOBODY,
    NONE,
    OVER,
    PLACES,
    TURN,
    Block,
    EjectionPort,
    Job,
    Network,
    Place,
    Sum,
    Tree,
    Wheel,
)
from tlm.engines.lt.port import through_port
from tlm.engines.lt.reduce import Combining, hold_contributors, inwards
from tlm.engines.lt.state import FROM_THE_START
from tlm.interconnect.lines import MeshPort


@compiled
def begin(network: Network, k: int, free: int) -> None:
    """Start a tree whose root is free since some time."""
    tree = network.trees[k]
    tree[Tree.FREE] = free
    start = max(tree[Tree.READY], free)
    if network.wheel[Wheel.WAITING] == 0 or start <= network.wheel[Wheel.CLOCK]:
        network.wheel[Wheel.CLOCK] = start - 1
    _start(network, k)


@compiled
def run(network: Network, operation: int) -> None:
    """Send packets of the trees begun until those of one operation have all come."""
    quiet = 0
    while network.owed[operation]:
        quiet = _next_cycle(network, quiet)


@compiled
def carry(network: Network) -> None:
    """Bring all rows of the trees to their ends, each as soon as it waits for nobody."""
    for k in range(len(network.trees) - 1, -1, -1):  # those before others begin first
        if network.trees[k, Tree.WAITS] == 0:
            _make_ready(network, k)
    _begin_ready(network)
    quiet = 0
    while network.wheel[Wheel.WAITING] > 0:
        quiet = _next_cycle(network, quiet)


@compiled
def _next_cycle(network: Network, quiet: int) -> int:
    """Do a cycle; in how many there was nothing to do since the last event."""
    if quiet == TURN:
        network.wheel[Wheel.CLOCK] = _first_event(network) - 1
    network.wheel[Wheel.CLOCK] += 1
    place = Wheel.EVENTS + 2 * (network.wheel[Wheel.CLOCK] & (TURN - 1))
    event = network.wheel[place]
    network.wheel[place] = 0
    quiet += 1
    while event:
        buffer = event - 1
        number, side = divmod(buffer, BUFFERS)
        block = network.nodes[number, side * BLOCK : (side + 1) * BLOCK]
        event = block[Block.AFTER]
        network.wheel[Wheel.WAITING] -= 1
        if block[Block.AT] > network.wheel[Wheel.CLOCK]:  # some turns ahead
            _enter(network, number, side, block[Block.AT])
        else:
            quiet = 0
            _at_front(network, number, side)
            _begin_ready(network)
    return quiet


@compiled
def _first_event(network: Network) -> int:
    """The cycle of the first event."""
    first = int(NOBODY)
    for turn in range(TURN):
        event = network.wheel[Wheel.EVENTS + 2 * turn]
        while event:
            number, side = divmod(event - 1, BUFFERS)
            first = min(first, network.nodes[number, side * BLOCK + Block.AT])
            event = network.nodes[number, side * BLOCK + Block.AFTER]
    return first


@merged
def _enter(network: Network, number: int, side: int, time: int) -> None:
    """Have a packet at the front of a buffer at some time; if that is over, from now on."""
    network.nodes[number, side * BLOCK + Block.AT] = time
    network.nodes[number, side * BLOCK + Block.AFTER] = 0
    place = Wheel.EVENTS + 2 * (max(time, network.wheel[Wheel.CLOCK] + 1) & (TURN - 1))
    event = number * BUFFERS + side + 1
    if network.wheel[place] == 0:
        network.wheel[place] = event
    else:
        before, other = divmod(network.wheel[place + 1] - 1, BUFFERS)
        network.nodes[before, other * BLOCK + Block.AFTER] = event
    network.wheel[place + 1] = event
    network.wheel[Wheel.WAITING] += 1


@compiled
def _start(network: Network, k: int) -> None:
    """Start a tree that waits for nobody."""
    tree = network.trees[k]
    tree[Tree.START], tree[Tree.SENT] = max(tree[Tree.READY], tree[Tree.FREE]), 0
    _offer(network, k)


@compiled
def _offer(network: Network, k: int) -> None:
    """Bring the next packet of a tree to the front of its root's buffer."""
    tree = network.trees[k]
    number = tree[Tree.BASE] + tree[Tree.ROOT] * tree[Tree.STEP]
    own = network.nodes[number, MeshPort.LOCAL * BLOCK : (MeshPort.LOCAL + 1) * BLOCK]
    left = own[Block.LEFT]
    flits = min(tree[Tree.PACKET], tree[Tree.FLITS] - tree[Tree.SENT])
    tree[Tree.SENT] += flits
    if tree[Tree.SENT] == tree[Tree.FLITS]:
        # The tail goes in where the flit left that was before it by as many as the buffer holds.
        tree[Tree.END] = max(
            tree[Tree.START] + tree[Tree.FLITS],
            _room(network, number, MeshPort.LOCAL, flits) + network.router.returns + 1,
        )
    _put(network, number, MeshPort.LOCAL, k, flits, tree[Tree.START])
    _to_front(network, number, MeshPort.LOCAL, left + network.router.following)


@merged
def _room(network: Network, number: int, side: int, flits: int) -> int:
    """Cycle in which the flit leaves a buffer whose place the last one of a packet takes.

    `NOBODY` if it is not known yet.
    """
    queue = network.queues[number * BUFFERS + side]
    block = network.nodes[number, side * BLOCK : (side + 1) * BLOCK]
    back, beside = 0, flits
    place = queue[block[Block.NEWEST]]
    while beside + place[Place.FLITS] <= network.router.depth and back < PLACES - 1:
        back += 1
        beside += place[Place.FLITS]
        place = queue[(block[Block.NEWEST] - back) % PLACES]
    if back < block[Block.HELD]:
        return int(NOBODY)
    # Of more packets than the queue has places for, the first has to leave.
    return int(place[Place.LEFT] - min(network.router.depth - beside, place[Place.FLITS] - 1))


@merged
def _put(network: Network, number: int, side: int, k: int, flits: int, comes: int) -> None:
    """Put a packet at the end of a buffer's queue."""
    block = network.nodes[number, side * BLOCK : (side + 1) * BLOCK]
    queue = network.queues[number * BUFFERS + side]
    block[Block.NEWEST] = (block[Block.NEWEST] + 1) % PLACES
    block[Block.HELD] += 1
    place = queue[block[Block.NEWEST]]
    place[Place.TREE], place[Place.FLITS], place[Place.COMES] = k, flits, comes


@merged
def _to_front(network: Network, number: int, side: int, free: int) -> None:
    """Bring the first packet of a buffer's queue to its front, which is free since some time."""
    block = network.nodes[number, side * BLOCK : (side + 1) * BLOCK]
    queue = network.queues[number * BUFFERS + side]
    place = queue[(block[Block.NEWEST] - block[Block.HELD] + 1) % PLACES]
    block[Block.TREE], block[Block.FLITS] = place[Place.TREE], place[Place.FLITS]
    _enter(network, number, side, max(place[Place.COMES], free))


@merged
def _leave(network: Network, number: int, side: int) -> None:
    """Have a packet leave the front of a buffer, all of whose branches have their links."""
    block = network.nodes[number, side * BLOCK : (side + 1) * BLOCK]
    queue = network.queues[number * BUFFERS + side]
    place = queue[(block[Block.NEWEST] - block[Block.HELD] + 1) % PLACES]
    place[Place.LEFT] = block[Block.LEFT]
    block[Block.HELD] -= 1
    if block[Block.HELD] > 0:
        _to_front(network, number, side, block[Block.LEFT] + 1 - network.router.hop)


@merged
def _at_front(network: Network, number: int, side: int) -> None:
    """A packet has come to the front of a buffer: ask for the port and for links."""
    node, block = network.nodes[number], network.nodes[number, side * BLOCK : (side + 1) * BLOCK]
    tree, time, flits = network.trees[block[Block.TREE]], block[Block.AT], block[Block.FLITS]
    place = (number - tree[Tree.BASE]) // tree[Tree.STEP]
    first, last = tree[Tree.FIRST], tree[Tree.LAST]
    block[Block.LEFT] = FROM_THE_START
    if first <= place <= last and (place - first) % tree[Tree.STRIDE] == 0:
        come, node[EjectionPort.BUSY], node[EjectionPort.FREE] = through_port(
            time + network.router.ejection + flits,
            node[EjectionPort.BUSY],
            node[EjectionPort.FREE],
            flits,
        )
        _come(network, tree[Tree.OPERATION], number, come)
        block[Block.LEFT] = come - 1
        if tree[Tree.ANSWER] != NONE:
            tree[Tree.COME] += flits
            begun = _serve(network, block[Block.TREE], come, flits)
            if tree[Tree.COME] == tree[Tree.FLITS]:
                _answer(network, tree[Tree.ANSWER], begun)
    along_row = tree[Tree.STEP] == 1
    forward = MeshPort.EAST if along_row else MeshPort.SOUTH
    backward = MeshPort.WEST if along_row else MeshPort.NORTH
    asked = Block.ASKED_LOCALLY if side == MeshPort.LOCAL else Block.ASKED
    up = place < last and side in (MeshPort.LOCAL, forward)
    down = place > first and side in (MeshPort.LOCAL, backward)
    block[Block.OPEN] = int(up) + int(down)
    if block[Block.OPEN] == 0:
        _leave(network, number, side)
        if side == MeshPort.LOCAL:  # it goes to its root alone
            _hold(network, block[Block.TREE], block[Block.LEFT])
            _next_packet(network, block[Block.TREE])
        else:
            _settle(network, number - _distance(side, network.cols), side)
    if up:
        node[forward * BLOCK + asked] = time + network.router.hop
    if down:
        node[backward * BLOCK + asked] = time + network.router.hop
    if up:
        _settle(network, number, forward)
    if down:
        _settle(network, number, backward)


@merged
def _settle(network: Network, number: int, out: int) -> None:
    """Give a link to who asks for it, if it is known when there is room behind it.

    If a buffer's last branch has got its link, it is known when there will be room in that, and so
    on towards the root.
    """
    behind_by = _distance(out, network.cols)
    while True:
        link = network.nodes[number, out * BLOCK : (out + 1) * BLOCK]
        behind = network.nodes[number + behind_by, out * BLOCK : (out + 1) * BLOCK]
        asked = min(link[Block.ASKED], link[Block.ASKED_LOCALLY])
        if asked == NOBODY:
            return
        side = out if asked == link[Block.ASKED] else MeshPort.LOCAL
        block = network.nodes[number, side * BLOCK : (side + 1) * BLOCK]
        flits = block[Block.FLITS]
        needed = min(flits, network.trees[block[Block.TREE], Tree.ROOM])
        room = _room(network, number + behind_by, out, needed)
        if room == NOBODY:
            return
        link[Block.ASKED if side == out else Block.ASKED_LOCALLY] = NOBODY
        time = max(asked, link[Block.LINK], room + network.router.gap)
        link[Block.LINK] = time + flits
        _put(network, number + behind_by, out, block[Block.TREE], flits, time)
        if behind[Block.HELD] == 1:
            free = behind[Block.LEFT] + 1 - network.router.hop
            _to_front(network, number + behind_by, out, free)
        block[Block.LEFT] = max(block[Block.LEFT], time + flits - 1)
        block[Block.OPEN] -= 1
        if block[Block.OPEN] != 0:
            return
        _leave(network, number, side)
        if side == MeshPort.LOCAL:
            if flits > network.router.depth:
                _hold(network, block[Block.TREE], block[Block.LEFT])
            _next_packet(network, block[Block.TREE])
            return
        number -= behind_by


@merged
def _hold(network: Network, k: int, left: int) -> None:
    """Hold the root behind a packet that goes to one tile and has left its buffer in a cycle."""
    tree = network.trees[k]
    # Of a packet that is longer than the buffer the tail waits for its own flits, too.
    room = left - network.router.depth + network.router.returns + 1
    tree[Tree.END] = max(tree[Tree.END], room)


@merged
def _serve(network: Network, k: int, come: int, flits: int) -> int:
    """Have a channel serve a packet; from when on it is as if that came to a channel at rest.

    Packets are served in the order in which they come. It reads as fast as its link takes answers,
    which wait for each other anyway, and writes twice as fast (`Edge.fills_links`).
    """
    tree, served = network.trees[k], network.served
    channel, written = tree[Tree.BASE], tree[Tree.PACKET] // 2
    begun = max(come, served[channel])
    if tree[Tree.FLITS] == 1:  # the request for a block
        served[channel] = begun + network.trees[tree[Tree.ANSWER], Tree.FLITS]
        return come
    if flits == 1:  # a request behind a whole burst
        return max(come, int(served[channel] + 1 - written))
    served[channel] = begun + written
    return int(begun)


@compiled
def _answer(network: Network, k: int, come: int) -> None:
    """Have a channel answer what has come to it, behind its other answers."""
    answer = network.trees[k]
    answer[Tree.READY] += come
    channel = answer[Tree.BASE]  # that of its column
    last, network.answers[channel] = network.answers[channel], k
    if last != NONE and network.trees[last, Tree.NEXT] == NONE:
        network.trees[last, Tree.NEXT], answer[Tree.WAITS] = k, 1
        return
    answer[Tree.FREE] = answer[Tree.READY] if last == NONE else network.trees[last, Tree.END]
    _start(network, k)


@compiled
def _next_packet(network: Network, k: int) -> None:
    """Go on with a tree whose packet has left the root, or with the next one there."""
    if network.trees[k, Tree.SENT] < network.trees[k, Tree.FLITS]:
        _offer(network, k)
    else:
        _end(network, k)


@compiled
def _end(network: Network, k: int) -> None:
    """Have the engine of a row go on with the next one, and those that wait for this one."""
    row, next_one = network.trees[k], network.trees[k, Tree.NEXT]
    if next_one == NONE:
        row[Tree.NEXT] = OVER
    else:
        following, free = network.trees[next_one], row[Tree.END]
        if row[Tree.JOB] not in (Job.ANSWER, Job.WORK):
            free = max(free, row[Tree.BEFORE] + network.router.launch)
        following[Tree.FREE], following[Tree.BEFORE] = free, row[Tree.END]
        following[Tree.WAITS] -= 1
        if following[Tree.WAITS] <= 0:
            if following[Tree.JOB] <= Job.ANSWER:
                _start(network, next_one)
            else:
                _make_ready(network, next_one)
    _give_unit(network, k, row[Tree.END])


@merged
def _make_ready(network: Network, k: int) -> None:
    """Note that a row waits for nobody any more."""
    ready = network.graph.ready
    ready[0] += 1
    ready[ready[0]] = k


@merged
def _give_unit(network: Network, unit: int, at: int) -> None:
    """Tell those who wait for a unit when it is there."""
    waits = network.graph.waits
    if len(waits.who) == 0:
        return
    for n in range(waits.first[unit], waits.first[unit + 1]):
        row = network.trees[waits.who[n]]
        row[Tree.READY] = max(row[Tree.READY], at + waits.cycles[n])
        row[Tree.WAITS] -= 1
        if row[Tree.WAITS] == 0:
            _make_ready(network, waits.who[n])


@merged
def _come(network: Network, operation: int, number: int, at: int) -> None:
    """Note that a packet of an operation, or what tiles have combined, has come to a tile."""
    network.arrivals[operation, number] = at
    network.owed[operation] -= 1
    due = network.graph.due
    if len(due) > 0:
        due[operation, number] -= 1
        if due[operation, number] == 0:
            unit = len(network.trees) + operation * due.shape[1] + number
            _give_unit(network, unit, at)


@compiled
def _begin_ready(network: Network) -> None:
    """Have those begin that wait for nobody any more."""
    ready = network.graph.ready
    while ready[0] > 0:
        k = ready[ready[0]]
        ready[0] -= 1
        row = network.trees[k]
        if row[Tree.JOB] == Job.TREE:
            _start(network, k)
            continue
        row[Tree.START] = max(row[Tree.READY], row[Tree.FREE])
        row[Tree.END] = row[Tree.START] + row[Tree.FLITS]
        if row[Tree.JOB] == Job.WORK:
            _end(network, k)
            continue
        own = network.graph.sums[row[Tree.ANSWER]]
        own[Sum.LACKS] -= 1
        if own[Sum.LACKS] == 0:
            _combine(network, row[Tree.ANSWER])


@compiled
def _combine(network: Network, which: int) -> None:
    """Combine the operands of a reduction, all of which have begun."""
    own, trees = network.graph.sums[which], network.trees
    count, root = own[Sum.COUNT], own[Sum.ROOT]
    latest, free = network.graph.spare[0, :count], network.graph.spare[1, :count]
    places = network.graph.places[:count]
    law = Combining(own[Sum.LAW], own[Sum.LAW + 1], own[Sum.LAW + 2], own[Sum.LAW + 3])
    for j in range(count):
        operand = trees[own[Sum.FIRST] + j * own[Sum.STEP]]
        places[j] = own[Sum.PLACE] + j * own[Sum.STRIDE]
        latest[j] = operand[Tree.START] + abs(places[j] - root) * law.per_hop
        free[j] = operand[Tree.END]
    flits = trees[own[Sum.FIRST], Tree.FLITS]
    result = inwards(latest, places, root)
    if law.ahead >= 0 and not (count == 1 and places[0] == root):
        hold_contributors(law, places, root, latest, result, free)
    node = network.nodes[own[Sum.NODE]]
    come, node[EjectionPort.BUSY], node[EjectionPort.FREE] = through_port(
        result + own[Sum.LATENCY], node[EjectionPort.BUSY], node[EjectionPort.FREE], flits
    )
    for j in range(count):
        k = own[Sum.FIRST] + j * own[Sum.STEP]
        trees[k, Tree.END] = free[j]
        _end(network, k)
    _come(network, own[Sum.ROW], own[Sum.NODE], come)


@merged
def _distance(direction: int, cols: int) -> int:
    """From a router's number to that of the next one in a direction."""
    if direction == MeshPort.EAST or direction == MeshPort.WEST:
        return 1 if direction == MeshPort.EAST else -1
    return -cols if direction == MeshPort.NORTH else cols


@cache
def ready() -> None:
    """Compile, or load what was compiled."""
    prepare(begin, run, carry)
