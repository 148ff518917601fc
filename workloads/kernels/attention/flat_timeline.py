"""FlatAttention item by item: when its engines and channels are free, as a compiled recurrence.

It follows one tile of a group's diagonal, which loads slices and sends them on. The reductions
along rows keep all tiles of a group in step with it.
"""

from tlm.compiled import Numbers, compiled, forget_stale, internal
from workloads.kernels.attention.flat_costs import Costs
from workloads.kernels.attention.flat_engines import Free, meet, store
from workloads.kernels.attention.flat_order import Item, Order, begin, following, mask_of
from workloads.kernels.attention.flat_transfers import (
    K_FREE,
    K_IN,
    K_THERE,
    M_FREE,
    MASK,
    O_LEFT,
    OUT,
    P_THERE,
    Q_FREE,
    Q_THERE,
    S_FREE,
    SCORED,
    SUMMED,
    TOTAL_FREE,
    V_FREE,
    V_IN,
    V_THERE,
    ask_at_first,
    ask_block,
    ask_queries,
    bring_aside,
    bring_keys,
    bring_mask,
    bring_values,
    send_on,
    wait_for_block,
)  # fmt: skip


@internal
def _scores(
    at: Numbers[tuple[int, int]], item: Item, number: int, order: Order, costs: Costs, now: Free
) -> Free:
    """The product of Q and K."""
    slot, held, state = number % order.depth, item.load % order.held, item.stream % order.states
    start = max(now.matrix, at[S_FREE, slot], at[K_THERE, held], at[Q_THERE, state])
    end = start + costs.scores
    at[SCORED, slot] = end
    if item.frees and not order.shared:
        at[K_FREE, held] = end
    if item.last:
        at[Q_FREE, state] = end
    return Free(end, now.vector, now.transfer, now.channel, now.ahead)


@internal
def _output(
    at: Numbers[tuple[int, int]], item: Item, number: int, order: Order, costs: Costs, now: Free
) -> Free:
    """The product with V."""
    slot, held, state = number % order.depth, item.load % order.held, item.stream % order.states
    values = at[K_THERE, held] if order.shared else at[V_THERE, held]
    start = max(now.matrix, at[P_THERE, slot], values)
    if item.block == 0:
        start = max(start, at[O_LEFT, state])
    end = start + costs.output
    at[OUT, state] = end
    at[S_FREE, slot] = end
    if item.frees:
        at[K_FREE if order.shared else V_FREE, held] = end
    return Free(end, now.vector, now.transfer, now.channel, now.ahead)


@internal
def _finish(at: Numbers[tuple[int, int]], state: int, aside: int, costs: Costs, now: Free) -> Free:
    """A stream's output comes together, and is put where it belongs.

    Another tile of the row sends its part from ``aside`` on.
    """
    start, transfer = at[OUT, state], now.transfer
    if costs.sent:
        start = max(transfer, start)
        transfer = start + costs.sent
    summed = max(start, aside, at[TOTAL_FREE, 0]) + costs.summed
    at[O_LEFT, state] = start + costs.sent
    at[SUMMED, 0] = summed
    vector = max(now.vector, summed) if costs.added else now.vector
    now = Free(now.matrix, vector, transfer, now.channel, now.ahead)
    if costs.ask == 0:
        vector = max(now.vector + costs.column, summed) + costs.deep
        at[TOTAL_FREE, 0] = vector
        return Free(now.matrix, vector, now.transfer, now.channel, now.ahead)
    vector = max(now.vector, at[TOTAL_FREE, 1]) + costs.column
    now = Free(now.matrix, vector, now.transfer, now.channel, now.ahead)
    now = store(vector, costs.total, now)
    at[TOTAL_FREE, 1] = now.transfer
    now = store(summed, costs.o, now)
    at[TOTAL_FREE, 0] = now.transfer
    return now


@internal
def _up_to_maxima(
    at: Numbers[tuple[int, int]], item: Item, number: int, mask: int,
    loads_of_masks: Numbers[tuple[int, int]], order: Order, costs: Costs, now: Free,
) -> tuple[int, int]:  # fmt: skip
    """When the followed tile has the maxima of its rows, and when others of its column do."""
    vector, masked = max(now.vector, at[SCORED, number % order.depth]), 0
    if mask >= 0:
        if order.parts:
            vector = max(vector, at[MASK, 1]) + costs.wide
        if not order.parts or loads_of_masks[mask, 0]:
            masked = max(vector, at[MASK, 0]) + costs.wide - vector
        at[M_FREE, 0] = vector + masked
    # Where no causal mask differs from tile to tile all of them have it.
    others = vector
    if masked and (not order.parts or loads_of_masks[mask, 2] > 1):
        others += masked
    passes = costs.wide + (0 if item.block == 0 else costs.column)
    return vector + masked + passes, others + passes


@internal
def _up_to_sums(item: Item, costs: Costs, now: Free) -> int:
    """When a tile has the sums of its rows."""
    return now.vector + 4 * costs.wide + (2 if item.block == 0 else 6) * costs.column


@internal
def _left(parts: int, costs: Costs, now: Free) -> int:
    """When the last tile of a row has sent its part of what has come together just now."""
    if not costs.rows.last:
        return parts
    return now.vector - costs.rows.spread - costs.rows.last


@internal
def _weigh(
    at: Numbers[tuple[int, int]], item: Item, number: int, order: Order, costs: Costs, now: Free
) -> Free:
    """Passes behind the sums of a row: the output before is scaled, and weights are made."""
    vector = now.vector + costs.column
    if item.block:
        state = item.stream % order.states
        vector = max(vector + costs.column, at[OUT, state]) + costs.deep
    vector += costs.wide
    at[P_THERE, number % order.depth] = vector
    return Free(now.matrix, vector, now.transfer, now.channel, now.ahead)


@internal
def _one_by_one(
    at: Numbers[tuple[int, int]], work: Numbers[tuple[int, int]], masks: Numbers[int],
    loads_of_masks: Numbers[tuple[int, int]], order: Order, costs: Costs, now: Free,
) -> Free:  # fmt: skip
    """An item ends before the next one begins."""
    item, known = begin(work, order), -1
    for number in range(order.items):
        if number:
            item = following(work, order, item)
            if item.block == 0:
                now = ask_queries(at, item.stream, order, costs, now)
            if item.brings:
                now = ask_block(at, False, item.load, order.loads, order, costs, now)
        mask = mask_of(work, masks, item)
        now = bring_keys(at, item, order, costs, now)
        if number == 0 and order.padded:
            now = send_on(at, MASK, 0, at[MASK, 0], 0, costs.mask, costs, now)
        if item.brings:
            now = ask_block(at, True, item.load, order.loads, order, costs, now)
        now = bring_values(at, item, order, costs, now)
        new = mask if number else order.mask
        if order.mask >= 0 and new >= 0 and new != known:
            now, known = bring_mask(at, new, loads_of_masks, order, costs, now), new
        known = mask if mask >= 0 else known
        now = _scores(at, item, number, order, costs, now)
        vector, _ = _up_to_maxima(at, item, number, mask, loads_of_masks, order, costs, now)
        now = meet(vector, costs.rows, now)
        now = meet(_up_to_sums(item, costs, now), costs.rows, now)
        now = _weigh(at, item, number, order, costs, now)
        now = _output(at, item, number, order, costs, now)
        if item.last:
            now = _finish(at, item.stream % order.states, 0, costs, now)
    return now


@internal
def _in_turns(
    at: Numbers[tuple[int, int]], work: Numbers[tuple[int, int]], masks: Numbers[int],
    loads_of_masks: Numbers[tuple[int, int]], order: Order, costs: Costs, now: Free,
) -> Free:  # fmt: skip
    """The matrix engine has the scores of the next item while the vector engine has this one's."""
    item = begin(work, order)
    before, known, aside, last = item, order.mask, 0, order.items - 1
    holds = costs.rows.last > 0 and costs.rows.port > costs.room
    now = bring_keys(at, item, order, costs, now)
    if order.padded:
        now = send_on(at, MASK, 0, at[MASK, 0], 0, costs.mask, costs, now)
    if order.mask >= 0:
        now = bring_mask(at, order.mask, loads_of_masks, order, costs, now)
    now = _scores(at, item, 0, order, costs, now)
    for number in range(order.items):
        mask, after, state = mask_of(work, masks, item), item, item.stream % order.states
        known = mask if mask >= 0 else known
        if number < last:
            after = following(work, order, item)
            now = bring_keys(at, after, order, costs, now)
            now = _scores(at, after, number + 1, order, costs, now)
        ended = number > 0 and before.last
        if ended and before.stream % order.states == state:
            now = _finish(at, state, aside, costs, now)
        vector, others = _up_to_maxima(at, item, number, mask, loads_of_masks, order, costs, now)
        now = meet(vector, costs.rows, now)
        if costs.packets and item.brings and not order.shared:
            held = item.load % order.held
            left, free, come = _left(others, costs, now), at[V_FREE, held], at[V_IN, held]
            now = wait_for_block(left, free, come, costs.v, holds, now)
        now = bring_values(at, item, order, costs, now)
        if item.last and order.states > 1:
            now = ask_queries(at, item.stream + order.states, order, costs, now)
        if item.frees and not order.shared:
            now = ask_block(at, False, item.load + order.held, order.loads, order, costs, now)
        sums = _up_to_sums(item, costs, now)
        now = meet(sums, costs.rows, now)
        if costs.packets and number + 1 < last:
            behind = following(work, order, after)
            held = behind.load % order.held
            if behind.brings:
                left = _left(sums, costs, now)
                free, come = at[K_FREE, held], at[K_IN, held]
                now = wait_for_block(left, free, come, costs.k, holds, now)
        now = _weigh(at, item, number, order, costs, now)
        if number > 0 and before.frees:
            load = before.load + order.held
            now = ask_block(at, not order.shared, load, order.loads, order, costs, now)
        new = mask_of(work, masks, after)
        if order.mask >= 0 and number < last and new >= 0 and new != known:
            apart = costs.packets and not costs.rows.last and costs.ask == 0
            if apart and loads_of_masks[new, 2] == 2:
                aside = bring_aside(at, sums, costs)
            else:
                now = bring_mask(at, new, loads_of_masks, order, costs, now)
        if ended and before.stream % order.states != state:
            now = _finish(at, before.stream % order.states, aside, costs, now)
        now = _output(at, item, number, order, costs, now)
        before, item = item, after
    return _finish(at, before.stream % order.states, aside, costs, now)


@compiled
def timeline(
    at: Numbers[tuple[int, int]], work: Numbers[tuple[int, int]], masks: Numbers[int],
    loads_of_masks: Numbers[tuple[int, int]], order: Order, costs: Costs,
) -> int:  # fmt: skip
    """Cycles of a program.

    Args:
        at: Scratch of zeros, shape `flat_transfers.SCRATCH_SHAPE`.
        work: Of each stream what `flat_order` says, shape (streams, 3).
        masks: Numbers of the masks of all streams, one after the other.
        loads_of_masks: Of each mask `Slices.served` and `Slices.ahead`, 0 if no tile brings it, and
            who brings it: the followed tile (1), others (2) or both (3).
        order: How streams take turns.
        costs: Cycles of the parts.
    """
    now = ask_at_first(at, order, costs, Free(0, 0, 0, 0, 0))
    if order.depth == 1:
        now = _one_by_one(at, work, masks, loads_of_masks, order, costs, now)
    else:
        now = _in_turns(at, work, masks, loads_of_masks, order, costs, now)
    return now.vector if costs.ask == 0 else now.channel + costs.o.written


forget_stale(timeline)
