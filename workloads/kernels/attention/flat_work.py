"""What FlatAttention's groups have to do, compiled: streams, blocks of keys, and masks of each.

It is what the closed form, energies and the search ask for; programs have it as objects
(`workloads.kernels.attention.flat_plan`).
"""

from typing import NamedTuple

import numpy as np

from tlm.compiled import Numbers, allocating, compiled, forget_stale, inlined, law
from workloads.kernels.attention.dealing import dealt_number
from workloads.kernels.attention.flat_memory import Sizes, alike_streams
from workloads.kernels.attention.flat_order import BLOCKS, MASK, WHOLE
from workloads.kernels.attention.shape import blocks_seen

_dealt_number, _blocks_seen = inlined(dealt_number), inlined(blocks_seen)


class Streams(NamedTuple):
    """A plan's streams.

    Attributes:
        heads: Problems of their own.
        sharers: Rows of a token.
        rows: Of a head.
        keys: That the last of them sees.
        unseen: Of these, those that the first row does not see but for its own token's.
        span: Rows of a block, of all tiles of a group.
        wide: Keys of a block, of all tiles.
        q_blocks: Blocks of rows of a head.
        kv_blocks: Blocks of keys of a head.
        padded: Of these, those that are masked where there is no causal mask.
        causal: Whether there is one.
        groups: Groups that have streams.
        streams: Of a group, of the one with the most.
        alike: Of these, those of one head, one after the other.
        states: Under way at a time.
        down: Rows of tiles of a group.
        across: Columns.
        beside: Groups of a row of the grid.
        first: The first row of the grid's groups that has any.
        depth: Blocks under way at a time.
    """

    heads: int
    sharers: int
    rows: int
    keys: int
    unseen: int
    span: int
    wide: int
    q_blocks: int
    kv_blocks: int
    padded: int
    causal: int
    groups: int
    streams: int
    alike: int
    states: int
    down: int
    across: int
    beside: int
    first: int
    depth: int


class Totals(NamedTuple):
    """What is to do, of the group with the most and of all.

    Attributes:
        busiest: Number of that group.
        alike: Groups with the same streams behind it, and it.
        streams: Its streams.
        items: Its blocks of keys.
        masked: Of these, masked ones.
        groups: Groups with work.
        all_streams: Streams of all of them.
        all_items: Their blocks of keys.
        all_loads: Blocks of keys that are brought to them.
        masks: Masks that are brought to them.
        parts: Parts of these, each by a tile.
    """

    busiest: int
    alike: int
    streams: int
    items: int
    masked: int
    groups: int
    all_streams: int
    all_items: int
    all_loads: int
    masks: int
    parts: int


class Head(NamedTuple):
    """What of a problem decides what there is to do.

    Attributes:
        sizes: What decides how much memory it takes.
        sharers: Rows of a token.
        tokens: Of a head of Q.
    """

    sizes: Sizes
    sharers: int
    tokens: int


@law
def streams_of(
    head: Head, rows: int, keys: int, q_blocks: int, kv_blocks: int, down: int, across: int
) -> Streams:
    """Streams of a cut of a head's rows and keys; without a causal mask those of one group.

    Args:
        head: The problem.
        rows: Of a block.
        keys: Of a block.
        q_blocks: Blocks of rows beside those of a group.
        kv_blocks: Blocks of keys.
        down: Rows of a group.
        across: Columns.
    """
    sizes, causal = head.sizes, head.sizes.causal
    below, beside = sizes.rows // down, sizes.cols // across
    streams = -(-sizes.heads * q_blocks // (below * beside))
    depth = min(sizes.turns, streams * kv_blocks)
    # Groups that have streams are the last of the grid.
    needed = -(-sizes.heads * q_blocks // streams)
    beside = min(needed, beside)
    lines = -(-needed // beside)
    padded = keys * kv_blocks * across > sizes.keys and not causal
    return Streams(
        sizes.heads if causal else streams,
        head.sharers,
        head.tokens * head.sharers,
        sizes.keys,
        head.tokens - 1,
        down * rows,
        across * keys,
        q_blocks if causal else 1,
        kv_blocks,
        1 if padded else 0,
        1 if causal else 0,
        lines * beside if causal else 1,
        streams,
        alike_streams(streams, q_blocks),
        min(depth, sizes.states),
        down,
        across,
        beside,
        below - lines,
        depth,
    )


@compiled
def deal(dealt: Numbers[tuple[int, int, int]], heads: int, blocks: int, causal: bool) -> None:
    """Deal out the streams of some heads of so many blocks of rows.

    Groups take whole heads or equal parts of one if they can, whose streams share keys and values.
    With a causal mask early and late rows of a head go together, to and fro.

    Args:
        dealt: Of each group's streams the head and the block, below 0 where it has none; shape
            (groups, streams, 2).
        heads: How many.
        blocks: Of a head.
        causal: Whether there is a causal mask.
    """
    groups, streams, _ = dealt.shape  # type: ignore[attr-defined]  # an array's
    parts = blocks // streams
    for group in range(groups):
        for stream in range(streams):
            head = block = -1
            if not causal or streams % blocks == 0:
                number = group * streams + stream
                if number < heads * blocks:
                    head, block = number // blocks, number % blocks
            elif blocks % streams == 0:
                if group < parts * heads:
                    head = group % heads
                    block = _dealt_number(stream, group // heads, streams, parts, blocks)
            else:
                number = _dealt_number(stream, group, streams, groups, heads * blocks)
                if number >= 0:
                    head, block = number % heads, number // heads
            dealt[group, stream, 0], dealt[group, stream, 1] = head, block


@allocating
def work_of(plan: Streams):  # type: ignore[no-untyped-def]  # arrays, of types that Numba finds
    """Streams of each group, as `flat_order` has them.

    Returns:
        Of each group's streams blocks of keys and masks, shape (groups, streams, 3); their number,
        shape (groups,); numbers of all blocks' masks, one block of rows after the other; what each
        number stands for: ``sharers`` times `Pattern.seen` plus `Pattern.phase`.
    """
    extents = np.empty((plan.q_blocks, 3), dtype=np.int64)
    place = 0
    for block in range(plan.q_blocks):
        seen, whole = plan.kv_blocks, plan.kv_blocks - plan.padded
        if plan.causal:
            seen, whole = _blocks_seen(
                block * plan.span, plan.span, plan.wide, plan.rows, plan.sharers, plan.keys,
                plan.unseen,
            )  # fmt: skip
        extents[block, BLOCKS], extents[block, WHOLE], extents[block, MASK] = seen, whole, place
        place += seen - whole
    patterns = np.zeros(place, dtype=np.int64)
    if plan.causal:
        place = 0
        for block in range(plan.q_blocks):
            seen = plan.keys - plan.unseen
            for at in range(extents[block, WHOLE], extents[block, BLOCKS]):
                patterns[place] = plan.sharers * (seen - at * plan.wide) + block * plan.span
                place += 1
    known = np.unique(patterns)
    masks = np.searchsorted(known, patterns)
    dealt = np.empty((plan.groups, plan.streams, 2), dtype=np.int64)
    deal(dealt, plan.heads, plan.q_blocks, plan.causal != 0)
    work = np.empty((plan.groups, plan.streams, 3), dtype=np.int64)
    number = np.zeros(plan.groups, dtype=np.int64)
    for group in range(plan.groups):
        for stream in range(plan.streams):
            if dealt[group, stream, 0] >= 0:
                work[group, number[group]] = extents[dealt[group, stream, 1]]
                number[group] += 1
    return work, number, masks, known


@compiled
def loads_of(work: Numbers[tuple[int, int]], streams: int, alike: int, states: int) -> int:
    """Blocks of keys that a group brings, as `items` has them."""
    loads, own = 0, alike if alike > 1 else streams
    for first in range(0, streams, own):
        for lot in range(first, first + own, states):
            most = 0
            for stream in range(lot, min(lot + states, first + own)):
                most = (
                    work[stream, BLOCKS] + most if alike == 1 else max(most, work[stream, BLOCKS])
                )
            loads += most
    return loads


@compiled
def count_masks(
    work: Numbers[tuple[int, int]], streams: int, plan: Streams, states: int, masks: Numbers[int],
    counts: Numbers[int],
) -> int:  # fmt: skip
    """How often a group brings each mask: see `items.masks_brought`.

    Returns:
        Number of the first one; below 0: there is none.
    """
    first_mask = last = -1
    own = plan.alike if plan.alike > 1 else streams
    for first in range(0, streams, own):
        for lot in range(first, first + own, states):
            end = min(lot + states, first + own)
            begin, most = work[lot, WHOLE], 0
            for stream in range(lot, end):
                begin, most = min(begin, work[stream, WHOLE]), max(most, work[stream, BLOCKS])
            for block in range(begin, most):
                for stream in range(lot, end):
                    if work[stream, WHOLE] <= block < work[stream, BLOCKS]:
                        mask = masks[work[stream, MASK] + block - work[stream, WHOLE]]
                        if mask != last:
                            counts[mask] += 1
                        first_mask = mask if first_mask < 0 else first_mask
                        last = mask
    return first_mask


@allocating
def partly_seen(plan: Streams, known):  # type: ignore[no-untyped-def]  # as above
    """Of each mask the tiles of each column of a group that see some of their keys alone.

    All do if they work alone.

    Returns:
        Shape (masks, columns).
    """
    tiles = np.zeros((len(known), plan.across), dtype=np.int64)
    rows, keys = plan.span // plan.down, plan.wide // plan.across
    for mask in range(len(known)):
        for col in range(plan.across):
            if plan.down * plan.across == 1:
                tiles[mask, col] = 1
                continue
            for row in range(plan.down):
                first = (known[mask] + row * rows) // plan.sharers - col * keys
                last = (known[mask] + row * rows + rows - 1) // plan.sharers - col * keys
                tiles[mask, col] += first < keys and last > 0
    return tiles


@allocating
def longest(work, number, plan: Streams):  # type: ignore[no-untyped-def]  # as above
    """Groups of which one ends last: with the most work, and with the longest stream.

    While a stream has no other one beside it, its products and its softmax wait for each other.
    Of groups of as many blocks, and masked ones, in each stream the first stands for all.

    Returns:
        Numbers of the groups, that with the most to do first.
    """
    # From the last to the first: what is found last of a kind stands for it.
    kinds = np.empty(plan.groups, dtype=np.int64)
    count = 0
    for group in range(plan.groups - 1, -1, -1):
        if number[group] == 0:
            continue
        kind = count - 1
        while kind >= 0 and not _as_long(work, number, kinds[kind], group):
            kind -= 1
        if kind < 0:
            kind = count
            count += 1
        kinds[kind] = group
    items = np.empty(count, dtype=np.int64)
    loads, waits = np.empty_like(items), np.empty_like(items)
    most = last = count - 1
    for kind in range(count - 1, -1, -1):
        group = kinds[kind]
        states = min(plan.states, number[group])
        own = work[group, : number[group], BLOCKS]
        items[kind] = own.sum()
        loads[kind] = loads_of(work[group], number[group], plan.alike, states)
        waits[kind] = 2 * own.max() - items[kind]
        if (items[kind], loads[kind]) > (items[most], loads[most]):
            most = kind
        if (waits[kind], items[kind]) > (waits[last], items[last]):
            last = kind
    found, end = np.empty(count + 1, dtype=np.int64), 0
    for kind in range(count - 1, -1, -1):
        if items[kind] == items[most] and loads[kind] == loads[most]:
            found[end] = kinds[kind]
            end += 1
    if items[last] != items[most] or loads[last] != loads[most]:
        found[end] = kinds[last]
        end += 1
    return found[:end]


@compiled
def _as_long(
    work: Numbers[tuple[int, int, int]], number: Numbers[int], one: int, other: int
) -> bool:
    """Whether two groups have as many blocks of keys, and masked ones, in each stream."""
    if number[one] != number[other]:
        return False
    for stream in range(number[one]):
        for column in (BLOCKS, WHOLE):
            if work[one, stream, column] != work[other, stream, column]:
                return False
    return True


@allocating
def totals_of(plan: Streams) -> Totals:
    """What is to do in all."""
    work, number, masks, known = work_of(plan)
    busiest = longest(work, number, plan)[0]
    tiles = partly_seen(plan, known).sum(axis=1)
    counts = np.zeros(len(known), dtype=np.int64)
    groups = streams = items = loads = 0
    for group in range(plan.groups):
        has = number[group]
        if has:
            states = min(plan.states, has)
            groups, streams = groups + 1, streams + has
            items += work[group, :has, BLOCKS].sum()
            loads += loads_of(work[group], has, plan.alike, states)
            count_masks(work[group], has, plan, states, masks, counts)
    has = number[busiest]
    own, end = work[busiest, :has], busiest + 1
    while end < plan.groups and number[end] == has and (work[end, :has] == own).all():
        end += 1
    blocks, whole = own[:, BLOCKS].sum(), own[:, WHOLE].sum()
    return Totals(
        busiest, end - busiest, has, blocks, blocks - whole, groups, streams, items, loads,
        counts.sum(), (counts * tiles).sum(),
    )  # fmt: skip


forget_stale(totals_of, deal)
