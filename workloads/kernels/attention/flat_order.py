"""Which block of which stream FlatAttention takes up when, for compiled code: as `items` has it."""

from typing import NamedTuple

from tlm.compiled import Numbers, internal


class Order(NamedTuple):
    """How streams take turns (`workloads.kernels.attention.items`).

    Attributes:
        streams: Of a group.
        items: Blocks of keys, of all streams.
        loads: Blocks of keys that are brought.
        depth: Items under way at a time.
        states: Streams under way at a time.
        held: Brought keys and values that have buffers.
        alike: Streams of a head.
        padded: Whether all streams have one mask, that is multicast.
        mask: Number of the first of the masks that tiles bring for themselves; below 0: of none.
        parts: Whether it is some tiles that bring one, and all a column beside it.
        shared: Whether values are keys.
    """

    streams: int
    items: int
    loads: int
    depth: int
    states: int
    held: int
    alike: int
    padded: bool
    mask: int
    parts: bool
    shared: bool


#: Columns of the streams' table: blocks of keys, those without a mask, the first one's place among
#: all masks.
BLOCKS, WHOLE, MASK = range(3)


class Item(NamedTuple):
    """A block of keys for a stream.

    Attributes:
        stream: Number of the stream.
        block: Number of the block among the stream's.
        last: It is the stream's last.
        load: Number of its keys and values among those that are brought.
        brings: It is the first to use them.
        frees: It is the last.
        first: The first stream of those that take turns.
        end: The one behind the last of these.
    """

    stream: int
    block: int
    last: bool
    load: int
    brings: bool
    frees: bool
    first: int
    end: int


@internal
def begin(work: Numbers[tuple[int, int]], order: Order) -> Item:
    """The first item."""
    return _item(work, order, 0, 0, 0, 0, _turns(order, 0), True)


@internal
def following(work: Numbers[tuple[int, int]], order: Order, item: Item) -> Item:
    """The item after one that is not the last of all."""
    block, first, end = item.block, item.first, item.end
    stream = _having(work, item.stream + 1, end, block)
    brings = stream == end
    if stream == end:
        block += 1
        stream = _having(work, first, end, block)
    if stream == end:
        block, first = 0, end
        stream, end = first, _turns(order, first)
    brings = brings or order.alike == 1
    return _item(work, order, stream, block, item.load + (1 if brings else 0), first, end, brings)


@internal
def mask_of(work: Numbers[tuple[int, int]], masks: Numbers[int], item: Item) -> int:
    """Number of an item's mask; below 0: it has none."""
    place = item.block - work[item.stream, WHOLE]
    return masks[work[item.stream, MASK] + place] if place >= 0 else -1


@internal
def _item(
    work: Numbers[tuple[int, int]], order: Order, stream: int, block: int, load: int, first: int,
    end: int, brings: bool,
) -> Item:  # fmt: skip
    frees = order.alike == 1 or _having(work, stream + 1, end, block) == end
    last = block == work[stream, BLOCKS] - 1
    return Item(stream, block, last, load, brings, frees, first, end)


@internal
def _turns(order: Order, first: int) -> int:
    """Behind the last of the streams that take turns from one on."""
    own = order.alike if order.alike > 1 else order.streams
    return min(first + order.states, (first // own + 1) * own)


@internal
def _having(work: Numbers[tuple[int, int]], stream: int, end: int, block: int) -> int:
    """The first stream from one on that has a block; the end if none has."""
    while stream < end and work[stream, BLOCKS] <= block:
        stream += 1
    return stream
