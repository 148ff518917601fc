"""What FlatAttention's tiles ask for, send on and bring, and when it is there; compiled."""

from tlm.compiled import Numbers, internal
from workloads.kernels.attention.flat_costs import Costs, Slices
from workloads.kernels.attention.flat_engines import Free, ask, send
from workloads.kernels.attention.flat_order import Item, Order
from workloads.kernels.parts.channels import sooner

#: Rows of the scratch: what is known of each of two buffers.
_ROWS = 18
(
    SCORED, OUT, S_FREE, P_THERE, O_LEFT, Q_FREE, K_FREE, V_FREE,
    Q_IN, K_IN, V_IN, Q_THERE, K_THERE, V_THERE, MASK, M_FREE, TOTAL_FREE, SUMMED,
) = range(_ROWS)  # fmt: skip
SCRATCH_SHAPE = _ROWS, 2


@internal
def send_on(
    at: Numbers[tuple[int, int]], there: int, slot: int, come: int, free: int, cost: Slices,
    costs: Costs, now: Free,
) -> Free:  # fmt: skip
    """Send a slice on, which takes turns with those that still come: both are late."""
    sent = send(at, there, slot, come, free, cost, now)
    if not costs.turns:
        return sent
    # Of one slice: a group has one root of keys in a column, and may have several of Q.
    flits = min(cost.served - cost.ahead, cost.served // max(cost.tiles, 1))
    start = sent.transfer - cost.port
    beside = min(flits // costs.turns, max(0, now.channel - start))
    late = max(0, flits + beside - cost.port)
    at[there, slot] += late
    for into in (Q_IN, K_IN, V_IN):
        for other in range(2):
            if at[into, other] > start:
                at[into, other] += beside
    return Free(sent.matrix, sent.vector, sent.transfer + late, sent.channel + beside, sent.ahead)


@internal
def bring_values(
    at: Numbers[tuple[int, int]], item: Item, order: Order, costs: Costs, now: Free
) -> Free:
    """Send an item's values on."""
    held = item.load % order.held
    if item.brings and not order.shared:
        now = send_on(at, V_THERE, held, at[V_IN, held], at[V_FREE, held], costs.v, costs, now)
    return now


@internal
def ask_queries(
    at: Numbers[tuple[int, int]], stream: int, order: Order, costs: Costs, now: Free
) -> Free:
    """Ask for the rows of a stream, if there is such."""
    state = stream % order.states
    if stream < order.streams:
        now = ask(at, Q_IN, state, at[Q_FREE, state], costs.q, costs.ask, now)
    return now


@internal
def _wait_for_own(at: Numbers[tuple[int, int]], order: Order, costs: Costs, now: Free) -> Free:
    """Hold the first rows up at the other tiles' ports, which write slices of their own first.

    Those go in one packet each, and between two of them a packet of Q. A root that sends it to one
    tile after the other waits at each, where the next one's keys have come, too.
    """
    own = costs.k.port
    if order.padded and costs.packets > 1:
        own += costs.mask.port
    if costs.packets > 1 + (order.padded != 0):
        if order.depth == 1 and not order.shared:
            own += costs.v.port
        elif order.depth > 1 and costs.rows.last:
            own += costs.k.port
    at[Q_THERE, 0] += own
    held = max(0, own - costs.room) if costs.q.port > costs.room else 0
    return Free(now.matrix, now.vector, now.transfer + held, now.channel, now.ahead)


@internal
def _behind_output(at: Numbers[tuple[int, int]], state: int, costs: Costs, now: Free) -> Free:
    """Hold rows up that their root sends by a tree until it has taken an output in.

    Its sequencer says so in the order of the program: first that the output is there, and then that
    the rows still are, with its first message gone.
    """
    late = max(0, at[SUMMED, 0] + costs.again - now.transfer) if costs.again else 0
    at[Q_THERE, state] += late
    return Free(now.matrix, now.vector, now.transfer + late, now.channel, now.ahead)


@internal
def wait_for_block(parts: int, free: int, come: int, cost: Slices, holds: bool, now: Free) -> Free:
    """Hold what comes together up, on its way back to the other tiles of a row.

    These send themselves a block as soon as their parts have left, it has come and its buffer is
    free. If that ``holds`` the tile, buffers on the way do not take what it sends.
    """
    begin = max(parts + 1, free, come)
    late = max(0, begin + cost.port - now.vector) if begin < now.vector else 0
    transfer = now.transfer + late if holds else now.transfer
    return Free(now.matrix, now.vector + late, transfer, now.channel, now.ahead)


@internal
def bring_keys(
    at: Numbers[tuple[int, int]], item: Item, order: Order, costs: Costs, now: Free
) -> Free:
    """Send an item's keys on, at a stream's first block behind Q."""
    state, held = item.stream % order.states, item.load % order.held
    if item.block == 0 and item.stream and order.states < order.depth:
        now = ask_queries(at, item.stream, order, costs, now)
    if item.block == 0:
        now = send_on(at, Q_THERE, state, at[Q_IN, state], at[Q_FREE, state], costs.q, costs, now)
        now = _behind_output(at, state, costs, now)
        if item.stream == 0 and costs.ask == 0 and costs.packets:
            now = _wait_for_own(at, order, costs, now)
    if item.brings:
        now = send_on(at, K_THERE, held, at[K_IN, held], at[K_FREE, held], costs.k, costs, now)
    return now


@internal
def ask_block(
    at: Numbers[tuple[int, int]], values: bool, load: int, loads: int, order: Order, costs: Costs,
    now: Free,
) -> Free:  # fmt: skip
    """Ask for the keys or the values of a load, if there are such."""
    held = load % order.held
    if load < loads and not (values and order.shared):
        into, free = (V_IN, V_FREE) if values else (K_IN, K_FREE)
        cost = costs.v if values else costs.k
        now = ask(at, into, held, at[free, held], cost, costs.ask, now)
    return now


@internal
def bring_mask(
    at: Numbers[tuple[int, int]], mask: int, loads: Numbers[tuple[int, int]], order: Order,
    costs: Costs, now: Free,
) -> Free:  # fmt: skip
    """Tiles bring a mask of their own."""
    free, own = at[M_FREE, 0], costs.mask
    own = Slices(
        own.port, own.there, own.asked, loads[mask, 0], loads[mask, 1], own.tiles, own.nearer
    )
    if order.parts:
        now = _bring(at, 1, free, costs.unseen, costs, now)
    if own.served:
        now = _bring(at, 0, free, own, costs, now)
    return now


@internal
def bring_aside(at: Numbers[tuple[int, int]], parts: int, costs: Costs) -> int:
    """Another tile of a row brings a mask, all a column; when its interface is free.

    It does not wait for the sums of rows, to which it has sent its parts.
    """
    unseen = parts + 1
    begin = unseen + costs.unseen.port
    at[MASK, 1], at[MASK, 0] = unseen + costs.unseen.there, begin + costs.mask.there
    return begin + costs.mask.port


@internal
def _bring(
    at: Numbers[tuple[int, int]], slot: int, free: int, cost: Slices, costs: Costs, now: Free
) -> Free:
    if costs.ask == 0:
        return send(at, MASK, slot, 0, free, cost, now)
    return ask(at, MASK, slot, free, cost, costs.ask, now)


@internal
def _first_asks(order: Order) -> int:
    """Requests of a tile for all for which it has room, before anything has come."""
    masks = 1 if order.padded else 0
    if order.depth == 1:
        return 2 + masks
    states, held = min(order.states, order.streams), min(order.held, order.loads)
    return states + masks + (held if order.shared else 2 * held)


@internal
def _first_ask(place: int, order: Order) -> tuple[int, int]:
    """What such a request is for, and which of its kind: Q, K, mask and V, then what follows."""
    states, held = min(order.states, order.streams), min(order.held, order.loads)
    if place < 2:
        return (Q_IN, 0) if place == 0 else (K_IN, 0)
    place -= 2
    if order.padded:
        if place == 0:
            return MASK, 0
        place -= 1
    if not order.shared:
        if place == 0:
            return V_IN, 0
        place -= 1
    if place < states - 1:
        return Q_IN, place + 1
    place -= states - 1
    return (K_IN, place + 1) if place < held - 1 else (V_IN, place - held + 2)


@internal
def _cost(into: int, costs: Costs) -> Slices:
    """Of what comes to a buffer."""
    if into == MASK:
        return costs.mask
    return costs.q if into == Q_IN else (costs.k if into == K_IN else costs.v)


@internal
def ask_at_first(at: Numbers[tuple[int, int]], order: Order, costs: Costs, now: Free) -> Free:
    """Ask for all for which there is room.

    A channel serves slices in the order of requests: nearer tiles some of what they need later
    before the last one's first slices.
    """
    asks = _first_asks(order)
    for place in range(asks):
        into, slot = _first_ask(place, order)
        now = ask(at, into, slot, 0, _cost(into, costs), costs.ask, now)
        for other in range(place + 1, asks):
            later, cycles = _cost(_first_ask(other, order)[0], costs), (other - place) * costs.ask
            ahead = sooner(later.tiles, later.nearer, cycles + 1)
            at[into, slot] += later.served * ahead // max(later.tiles, 1)
    return now
