"""FlatAttention item by item: when its engines and channels are free, as a compiled recurrence.

It follows one tile of a group's diagonal, which loads slices and sends them on. The reductions
along rows keep all tiles of a group in step with it.
"""

from tlm.compiled import Numbers, compiled, forget_stale, internal
from workloads.kernels.attention.flat_costs import Costs, Slices
from workloads.kernels.attention.flat_engines import Free, ask, meet, send, store
from workloads.kernels.attention.flat_order import Item, Order, begin, following, mask_of
from workloads.kernels.parts.channels import sooner

#: Rows of the scratch: what is known of each of two buffers.
_ROWS = 17
(
    _SCORED, _OUT, _S_FREE, _P_THERE, _O_LEFT, _Q_FREE, _K_FREE, _V_FREE,
    _Q_IN, _K_IN, _V_IN, _Q_THERE, _K_THERE, _V_THERE, _MASK, _M_FREE, _TOTAL_FREE,
) = range(_ROWS)  # fmt: skip
SCRATCH_SHAPE = _ROWS, 2


@internal
def _scores(
    at: Numbers[tuple[int, int]], item: Item, number: int, order: Order, costs: Costs, now: Free
) -> Free:
    """The product of Q and K."""
    slot, held, state = number % order.depth, item.load % order.held, item.stream % order.states
    start = max(now.matrix, at[_S_FREE, slot], at[_K_THERE, held], at[_Q_THERE, state])
    end = start + costs.scores
    at[_SCORED, slot] = end
    if item.frees and not order.shared:
        at[_K_FREE, held] = end
    if item.last:
        at[_Q_FREE, state] = end
    return Free(end, now.vector, now.transfer, now.channel, now.ahead)


@internal
def _send_on(
    at: Numbers[tuple[int, int]], there: int, slot: int, come: int, free: int, cost: Slices,
    costs: Costs, now: Free,
) -> Free:  # fmt: skip
    """Send a slice on, which takes turns with those that still come: both are late."""
    sent = send(at, there, slot, come, free, cost, now)
    if not costs.turns:
        return sent
    start, flits = sent.transfer - cost.port, cost.served // max(cost.tiles, 1)
    beside = min(flits, max(0, now.channel - start))
    late = max(0, flits + beside - cost.port)
    at[there, slot] += late
    for into in (_Q_IN, _K_IN, _V_IN):
        for other in range(2):
            if at[into, other] > start:
                at[into, other] += beside
    return Free(sent.matrix, sent.vector, sent.transfer + late, sent.channel + beside, sent.ahead)


@internal
def _bring_values(
    at: Numbers[tuple[int, int]], item: Item, order: Order, costs: Costs, now: Free
) -> Free:
    """Send an item's values on."""
    held = item.load % order.held
    if item.brings and not order.shared:
        now = _send_on(at, _V_THERE, held, at[_V_IN, held], at[_V_FREE, held], costs.v, costs, now)
    return now


@internal
def _ask_queries(
    at: Numbers[tuple[int, int]], stream: int, order: Order, costs: Costs, now: Free
) -> Free:
    """Ask for the rows of a stream, if there is such."""
    state = stream % order.states
    if stream < order.streams:
        now = ask(at, _Q_IN, state, at[_Q_FREE, state], costs.q, costs.ask, now)
    return now


@internal
def _wait_for_own(at: Numbers[tuple[int, int]], order: Order, costs: Costs, now: Free) -> Free:
    """Hold the first rows up at the other tiles' ports, which write slices of their own first.

    Those go in one packet each, and between two of them a packet of Q.
    """
    own, packets = costs.k.port, -(-costs.q.port // costs.packet)
    if order.padded and packets > 1:
        own += costs.mask.port
    if order.depth == 1 and not order.shared and packets > 1 + (order.padded != 0):
        own += costs.v.port
    at[_Q_THERE, 0] += own
    held = max(0, own - costs.room) if costs.q.port > costs.room else 0
    return Free(now.matrix, now.vector, now.transfer + held, now.channel, now.ahead)


@internal
def _wait_for_block(parts: int, free: int, come: int, cost: Slices, now: Free) -> Free:
    """Hold what comes together up, on its way back to the other tiles of a row.

    These send themselves a block as soon as their parts have left, it has come and its buffer is
    free.
    """
    begin = max(parts + 1, free, come)
    vector = max(now.vector, begin + cost.port) if begin < now.vector else now.vector
    return Free(now.matrix, vector, now.transfer, now.channel, now.ahead)


@internal
def _bring_keys(
    at: Numbers[tuple[int, int]], item: Item, order: Order, costs: Costs, now: Free
) -> Free:
    """Send an item's keys on, at a stream's first block behind Q."""
    state, held = item.stream % order.states, item.load % order.held
    if item.block == 0 and item.stream and order.states < order.depth:
        now = _ask_queries(at, item.stream, order, costs, now)
    if item.block == 0:
        now = _send_on(
            at, _Q_THERE, state, at[_Q_IN, state], at[_Q_FREE, state], costs.q, costs, now
        )
        if item.stream == 0 and costs.ask == 0 and costs.packet:
            now = _wait_for_own(at, order, costs, now)
    if item.brings:
        now = _send_on(at, _K_THERE, held, at[_K_IN, held], at[_K_FREE, held], costs.k, costs, now)
    return now


@internal
def _ask_block(
    at: Numbers[tuple[int, int]], values: bool, load: int, loads: int, order: Order, costs: Costs,
    now: Free,
) -> Free:  # fmt: skip
    """Ask for the keys or the values of a load, if there are such."""
    held = load % order.held
    if load < loads and not (values and order.shared):
        into, free = (_V_IN, _V_FREE) if values else (_K_IN, _K_FREE)
        cost = costs.v if values else costs.k
        now = ask(at, into, held, at[free, held], cost, costs.ask, now)
    return now


@internal
def _output(
    at: Numbers[tuple[int, int]], item: Item, number: int, order: Order, costs: Costs, now: Free
) -> Free:
    """The product with V."""
    slot, held, state = number % order.depth, item.load % order.held, item.stream % order.states
    values = at[_K_THERE, held] if order.shared else at[_V_THERE, held]
    start = max(now.matrix, at[_P_THERE, slot], values)
    if item.block == 0:
        start = max(start, at[_O_LEFT, state])
    end = start + costs.output
    at[_OUT, state] = end
    at[_S_FREE, slot] = end
    if item.frees:
        at[_K_FREE if order.shared else _V_FREE, held] = end
    return Free(end, now.vector, now.transfer, now.channel, now.ahead)


@internal
def _finish(at: Numbers[tuple[int, int]], state: int, aside: int, costs: Costs, now: Free) -> Free:
    """A stream's output comes together, and is put where it belongs.

    Another tile of the row sends its part from ``aside`` on.
    """
    start, transfer = at[_OUT, state], now.transfer
    if costs.sent:
        start = max(transfer, start)
        transfer = start + costs.sent
    summed = max(start, aside, at[_TOTAL_FREE, 0]) + costs.summed
    at[_O_LEFT, state] = start + costs.sent
    vector = max(now.vector, summed) if costs.added else now.vector
    now = Free(now.matrix, vector, transfer, now.channel, now.ahead)
    if costs.ask == 0:
        vector = max(now.vector + costs.column, summed) + costs.deep
        at[_TOTAL_FREE, 0] = vector
        return Free(now.matrix, vector, now.transfer, now.channel, now.ahead)
    vector = max(now.vector, at[_TOTAL_FREE, 1]) + costs.column
    now = Free(now.matrix, vector, now.transfer, now.channel, now.ahead)
    now = store(vector, costs.total, now)
    at[_TOTAL_FREE, 1] = now.transfer
    now = store(summed, costs.o, now)
    at[_TOTAL_FREE, 0] = now.transfer
    return now


@internal
def _bring_mask(
    at: Numbers[tuple[int, int]], mask: int, loads: Numbers[tuple[int, int]], order: Order,
    costs: Costs, now: Free,
) -> Free:  # fmt: skip
    """Tiles bring a mask of their own."""
    free, own = at[_M_FREE, 0], costs.mask
    own = Slices(
        own.port, own.there, own.asked, loads[mask, 0], loads[mask, 1], own.tiles, own.nearer
    )
    if order.parts:
        now = _bring(at, 1, free, costs.unseen, costs, now)
    if own.served:
        now = _bring(at, 0, free, own, costs, now)
    return now


@internal
def _bring_aside(at: Numbers[tuple[int, int]], parts: int, costs: Costs) -> int:
    """Another tile of a row brings a mask, all a column; when its interface is free.

    It does not wait for the sums of rows, to which it has sent its parts.
    """
    unseen = parts + 1
    begin = unseen + costs.unseen.port
    at[_MASK, 1], at[_MASK, 0] = unseen + costs.unseen.there, begin + costs.mask.there
    return begin + costs.mask.port


@internal
def _bring(
    at: Numbers[tuple[int, int]], slot: int, free: int, cost: Slices, costs: Costs, now: Free
) -> Free:
    if costs.ask == 0:
        return send(at, _MASK, slot, 0, free, cost, now)
    return ask(at, _MASK, slot, free, cost, costs.ask, now)


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
        return (_Q_IN, 0) if place == 0 else (_K_IN, 0)
    place -= 2
    if order.padded:
        if place == 0:
            return _MASK, 0
        place -= 1
    if not order.shared:
        if place == 0:
            return _V_IN, 0
        place -= 1
    if place < states - 1:
        return _Q_IN, place + 1
    place -= states - 1
    return (_K_IN, place + 1) if place < held - 1 else (_V_IN, place - held + 2)


@internal
def _cost(into: int, costs: Costs) -> Slices:
    """Of what comes to a buffer."""
    if into == _MASK:
        return costs.mask
    return costs.q if into == _Q_IN else (costs.k if into == _K_IN else costs.v)


@internal
def _ask_at_first(at: Numbers[tuple[int, int]], order: Order, costs: Costs, now: Free) -> Free:
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


@compiled
def timeline(
    at: Numbers[tuple[int, int]], work: Numbers[tuple[int, int]], masks: Numbers[int],
    loads_of_masks: Numbers[tuple[int, int]], order: Order, costs: Costs,
) -> int:  # fmt: skip
    """Cycles of a program.

    Args:
        at: Scratch of zeros, shape `SCRATCH_SHAPE`.
        work: Of each stream what `flat_order` says, shape (streams, 3).
        masks: Numbers of the masks of all streams, one after the other.
        loads_of_masks: Of each mask `Slices.served` and `Slices.ahead`, 0 if no tile brings it, and
            who brings it: the followed tile (1), others (2) or both (3).
        order: How streams take turns.
        costs: Cycles of the parts.
    """
    states, items, loads = order.states, order.items, order.loads
    now = Free(0, 0, 0, 0, 0)
    now = _ask_at_first(at, order, costs, now)
    item = begin(work, order)
    before, known, aside = item, order.mask, 0
    for number in range(items):
        mask = mask_of(work, masks, item)
        if order.depth == 1 and number > 0:
            if item.block == 0:
                now = _ask_queries(at, item.stream, order, costs, now)
            if item.brings:
                now = _ask_block(at, False, item.load, loads, order, costs, now)
        if order.depth == 1 or number == 0:
            now = _bring_keys(at, item, order, costs, now)
            if number == 0 and order.padded:
                now = _send_on(at, _MASK, 0, at[_MASK, 0], 0, costs.mask, costs, now)
            if order.depth == 1:
                if item.brings:
                    now = _ask_block(at, True, item.load, loads, order, costs, now)
                now = _bring_values(at, item, order, costs, now)
            new = known if number == 0 else mask
            if order.mask >= 0 and new >= 0 and (number == 0 or new != known):
                now = _bring_mask(at, new, loads_of_masks, order, costs, now)
            now = _scores(at, item, number, order, costs, now)
        known = mask if mask >= 0 else known
        after = item
        if number + 1 < items:
            after = following(work, order, item)
        if order.depth > 1 and number + 1 < items:
            now = _bring_keys(at, after, order, costs, now)
            now = _scores(at, after, number + 1, order, costs, now)
        ended = order.depth > 1 and number > 0 and before.last
        if ended and before.stream % states == item.stream % states:
            now = _finish(at, before.stream % states, aside, costs, now)
        first = item.block == 0
        # Passes up to the maxima, and on to the sums.
        vector = max(now.vector, at[_SCORED, number % order.depth])
        masked = 0
        if mask >= 0:
            if order.parts:
                vector = max(vector, at[_MASK, 1]) + costs.wide
            if not order.parts or loads_of_masks[mask, 0]:
                masked = max(vector, at[_MASK, 0]) + costs.wide - vector
            at[_M_FREE, 0] = vector + masked
        # Where no causal mask differs from tile to tile all of them have it.
        others = vector
        if masked and (not order.parts or loads_of_masks[mask, 2] > 1):
            others += masked
        vector, upto = vector + masked, costs.wide + (0 if first else costs.column)
        vector, others = vector + upto, others + upto
        now = meet(vector, costs.rows, now)
        if costs.packet and order.depth > 1 and item.brings and not order.shared:
            held = item.load % order.held
            now = _wait_for_block(others, at[_V_FREE, held], at[_V_IN, held], costs.v, now)
        if order.depth > 1:
            now = _bring_values(at, item, order, costs, now)
            if item.last and states > 1:
                now = _ask_queries(at, item.stream + states, order, costs, now)
            if item.frees and not order.shared:
                now = _ask_block(at, False, item.load + order.held, loads, order, costs, now)
        parts = now.vector + 4 * costs.wide + (2 if first else 6) * costs.column
        now = meet(parts, costs.rows, now)
        if costs.packet and order.depth > 1 and number + 2 < items:
            behind = following(work, order, after)
            held = behind.load % order.held
            if behind.brings:
                now = _wait_for_block(parts, at[_K_FREE, held], at[_K_IN, held], costs.k, now)
        vector = now.vector + costs.column
        if not first:
            state = item.stream % states
            vector = max(vector + costs.column, at[_OUT, state]) + costs.deep
        vector += costs.wide
        at[_P_THERE, number % order.depth] = vector
        now = Free(now.matrix, vector, now.transfer, now.channel, now.ahead)
        if order.depth > 1 and number > 0 and before.frees:
            values = not order.shared
            now = _ask_block(at, values, before.load + order.held, loads, order, costs, now)
        if order.depth > 1 and order.mask >= 0 and number + 1 < items:
            new = mask_of(work, masks, after)
            if new >= 0 and new != known:
                if costs.packet and costs.ask == 0 and loads_of_masks[new, 2] == 2:
                    aside = _bring_aside(at, parts, costs)
                else:
                    now = _bring_mask(at, new, loads_of_masks, order, costs, now)
        if ended and before.stream % states != item.stream % states:
            now = _finish(at, before.stream % states, aside, costs, now)
        now = _output(at, item, number, order, costs, now)
        if item.last and (order.depth == 1 or number == items - 1):
            now = _finish(at, item.stream % states, aside, costs, now)
        before, item = item, after
    if costs.ask == 0:
        return now.vector
    return now.channel + costs.o.written


forget_stale(timeline)
