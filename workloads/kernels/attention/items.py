"""The order in which a tile takes up blocks of keys, and what it brings and keeps for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Item:
    """A block of keys for a stream.

    Attributes:
        stream: Number of the stream.
        block: Number of the block of K and V among the stream's.
        first: It is the stream's first.
        last: It is the stream's last.
        slot: Buffers of its scores.
        state: Buffers of the stream.
        load: Number of its keys and values among those that are brought.
        held: Buffers of these.
        brings: It is the first to use them.
        frees: It is the last.
        mask: Number of the mask that is added to its scores; None: none is.
        brought: Number of a mask that is brought with it; None: none.
        drops: It is the last to use the mask that is there.
    """

    stream: int
    block: int
    first: bool
    last: bool
    slot: int
    state: int
    load: int
    held: int
    brings: bool
    frees: bool
    mask: int | None = None
    brought: int | None = None
    drops: bool = False


def turns(streams: int, alike: int, states: int) -> Iterator[range]:
    """Streams that take turns, one lot of them after the other.

    Args:
        streams: Of a tile.
        alike: Streams of one head, one after the other: of these some take turns. Those of several
            heads may take turns if they are 1.
        states: Streams that take turns.
    """
    own = alike if alike > 1 else max(streams, 1)
    for head in range(0, streams, own):
        for first in range(head, head + own, states):
            yield range(first, min(first + states, head + own))


def items(
    blocks: Sequence[int],
    depth: int,
    held: int,
    alike: int = 1,
    masks: Sequence[Sequence[int]] | None = None,
    *,
    states: int,
) -> list[Item]:
    """Blocks of streams in the order of work: some streams take turns.

    Args:
        blocks: Of each stream.
        depth: Blocks under way at a time.
        held: Brought keys and values that have buffers.
        alike: Streams of one head, one after the other: those that take turns share what is
            brought, if they are more than 1.
        masks: Of each stream the numbers of the masks of its last blocks; None: no stream has any.
        states: Streams that take turns.
    """
    order: list[Item] = []
    load = 0
    for pair in turns(len(blocks), alike, states):
        for block in range(max(blocks[stream] for stream in pair)):
            here = [stream for stream in pair if block < blocks[stream]]
            for stream in here:
                brings = alike == 1 or stream == here[0]
                load += brings and bool(order)
                item = Item(
                    stream=stream,
                    block=block,
                    first=block == 0,
                    last=block == blocks[stream] - 1,
                    slot=len(order) % depth,
                    state=stream % states,
                    load=load,
                    held=load % held,
                    brings=brings,
                    frees=alike == 1 or stream == here[-1],
                )
                order.append(item)
    return order if masks is None else _masked(order, blocks, masks)


def _masked(order: list[Item], blocks: Sequence[int], masks: Sequence[Sequence[int]]) -> list[Item]:
    """Items with their masks: the first is brought with the first item, others when needed."""

    def number(item: Item) -> int | None:
        place = item.block - blocks[item.stream] + len(masks[item.stream])
        return masks[item.stream][place] if place >= 0 else None

    numbers = [number(item) for item in order]
    uses = [at for at, each in enumerate(numbers) if each is not None]
    brought = {0: numbers[uses[0]]} if uses else {}
    drops = set()
    for before, at in pairwise(uses):
        if numbers[at] != numbers[before]:
            brought[at] = numbers[at]
            drops.add(before)
    return [
        replace(item, mask=numbers[at], brought=brought.get(at), drops=at in drops)
        for at, item in enumerate(order)
    ]


def masks_brought(
    blocks: Sequence[int], masks: Sequence[Sequence[int]], alike: int, states: int
) -> list[int]:
    """Numbers of the masks that `items` bring."""
    used: list[int] = []
    for pair in turns(len(masks), alike, states):
        ends = [(blocks[stream] - len(masks[stream]), stream) for stream in pair]
        placed = [
            (start + place, stream, mask)
            for start, stream in ends
            for place, mask in enumerate(masks[stream])
        ]
        used += [mask for *_, mask in sorted(placed)]
    return used[:1] + [mask for before, mask in pairwise(used) if mask != before]
