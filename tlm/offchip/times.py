"""Times of loads and stores that nothing else is in the way of, in parts.

The laws take a length, or an array of lengths: then every figure that depends on it is an array.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache, wraps
from typing import Any, NamedTuple

import numpy as np

from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import PARTS_OF_A_CYCLE
from tlm.offchip.edge import Edge


@dataclass(frozen=True, slots=True)
class OffChipLaw:
    """What a tile's block costs, at the level of a channel's latency and bandwidth.

    A read's answers leave as fast as the slower of channel and link. A write is over when all of
    it has been written. The channel counts in parts of a cycle (`PARTS_OF_A_CYCLE`).

    Attributes:
        sent_flits: What the tile sends.
        there_cycles: From the start to the arrival of the last of them, next to the channel.
        latency_parts: From there to the first byte; of a write as if its bursts, which come while
            others are moved, were moved one after the other.
        moved_parts: From the first byte to the last, or to its turn on the link.
        back_cycles: From the cycle in which that ends to the last flit's arrival at the tile next
            to the channel.
        asked_cycles: For which the channel's node takes nothing else, as it asks for a burst a
            cycle. At the edge 0: there the router's port alone counts.
        served_parts: For which the channel is busy.
        way_cycles: That each hop of the tile's distance adds.
        come_flits: What comes to the tile.
    """

    sent_flits: int
    there_cycles: int
    latency_parts: int
    moved_parts: int
    back_cycles: int
    asked_cycles: int
    served_parts: int
    way_cycles: int
    come_flits: int

    def alone_cycles(self, hops: int) -> int:
        """From the start to the arrival at a tile so far from its channel."""
        served: int = in_cycles(self.latency_parts + self.moved_parts)
        return self.there_cycles + served + self.back_cycles + hops * self.way_cycles

    @property
    def served_cycles(self) -> float:
        """For which the channel is busy; it may begin with another one in the same cycle."""
        return self.served_parts / PARTS_OF_A_CYCLE

    @property
    def paced_cycles(self) -> float:
        """Least from one to the next at a channel and its router's port."""
        paced: float = _larger(self.served_cycles, self.sent_flits)
        return paced


def in_cycles(parts: Any) -> Any:
    """Cycles in which so many parts of one end."""
    return -(-parts // PARTS_OF_A_CYCLE)


#: Lengths below this are listed, where many are asked for.
_MOST_LISTED = 1 << 18
#: The same where they are asked for one by one.
_MOST_ALONE = 1 << 12

_Law = Callable[[NocTiming, Edge, Any], OffChipLaw]


def _once(law: _Law) -> _Law:
    """The same; of lengths that are numbers from a table: all of it costs what ten of them do."""

    @lru_cache(256)
    def listed(timing: NocTiming, edge: Edge, lengths: int) -> list[Any]:
        every = law(timing, edge, np.arange(lengths))
        return [getattr(every, field.name) for field in fields(every)]

    @lru_cache(4096)
    def known(timing: NocTiming, edge: Edge, flits: int) -> OffChipLaw:
        if flits >= _MOST_ALONE:
            return law(timing, edge, flits)
        columns = listed(timing, edge, 1 << flits.bit_length())
        own = (each if isinstance(each, int) else int(each[flits]) for each in columns)
        return OffChipLaw(*own)

    @wraps(law)
    def found(timing: NocTiming, edge: Edge, flits: Any) -> OffChipLaw:
        return (known if isinstance(flits, int) else law)(timing, edge, flits)

    return found


@_once
def load_law(timing: NocTiming, edge: Edge, flits: int) -> OffChipLaw:
    """Of a load of so many flits."""
    if edge.free:
        return _free(flits)
    units = edge.units(flits)
    first, _, moved = _moved_parts(edge, units, writes=False)
    before = (units - 1) * edge.unit_flits
    return OffChipLaw(
        sent_flits=1,
        there_cycles=timing.launch_cycles + _way_cycles(timing, edge, 1),
        latency_parts=edge.timing.latency_cycles * PARTS_OF_A_CYCLE,
        moved_parts=_larger(moved, first + before * PARTS_OF_A_CYCLE),
        # The node hands an answer on in the cycle after it has come.
        back_cycles=1 + _way_cycles(timing, edge, flits - before),
        asked_cycles=units - 1 if edge.at_tiles else 0,
        served_parts=_larger(moved, units * edge.unit_flits * PARTS_OF_A_CYCLE),
        way_cycles=2 * timing.hop_cycles,
        come_flits=flits,
    )


class LoadTimes(NamedTuple):
    """What an array of loads takes, as `OffChipLaw` has it.

    Attributes:
        served_cycles: For which the channel is busy.
        near_cycles: From the start to the arrival at a tile next to the channel.
        way_cycles: That each hop of the tile's distance adds.
    """

    served_cycles: Any
    near_cycles: Any
    way_cycles: Any

    def alone_cycles(self, hops: Any) -> Any:
        """From the start to the arrival at a tile so far from its channel."""
        return self.near_cycles + hops * self.way_cycles


def load_times(timing: NocTiming, edge: Edge, flits: Any) -> LoadTimes:
    """Of loads of an array of lengths, from a table where none is long."""
    most = int(flits.max())
    if most >= _MOST_LISTED:
        return _load_times(timing, edge, flits)
    listed = _listed(timing, edge, 1 << most.bit_length())
    return LoadTimes(*(each if isinstance(each, int) else each[flits] for each in listed))


def served_cycles(timing: NocTiming, edge: Edge, flits: Any, most: int | None = None) -> Any:
    """`LoadTimes.served_cycles` alone, of lengths of which the ``most`` may be known."""
    most = int(flits.max() if most is None else most)
    if most >= _MOST_LISTED:
        return _load_times(timing, edge, flits).served_cycles
    return _listed(timing, edge, 1 << most.bit_length()).served_cycles[flits]


def _load_times(timing: NocTiming, edge: Edge, flits: Any) -> LoadTimes:
    law = load_law(timing, edge, flits)
    return LoadTimes(law.served_cycles, law.alone_cycles(0), law.way_cycles)


@lru_cache(256)
def _listed(timing: NocTiming, edge: Edge, lengths: int) -> LoadTimes:
    """Of all lengths below one."""
    return _load_times(timing, edge, np.arange(lengths))


@_once
def store_law(timing: NocTiming, edge: Edge, flits: int) -> OffChipLaw:
    """Of a store of so many flits."""
    if edge.free:
        return _free(flits)
    units = edge.units(flits)
    first, two, moved = _moved_parts(edge, units, writes=True)
    # The last burst comes a cycle before the request; others are apart by their length.
    # Of a channel that is slower than they come the first counts.
    last = (flits - (units - 1) * edge.unit_flits) * PARTS_OF_A_CYCLE
    between = (units - 2) * edge.unit_flits * PARTS_OF_A_CYCLE
    behind = _larger(two - last, moved - last - between)
    alone = _larger(first, behind * (units > 1))
    return OffChipLaw(
        sent_flits=flits + 1,
        there_cycles=timing.launch_cycles + _way_cycles(timing, edge, flits + 1),
        latency_parts=(edge.timing.latency_cycles - 1) * PARTS_OF_A_CYCLE + alone - moved,
        moved_parts=moved,
        back_cycles=1 + _way_cycles(timing, edge, 1),
        asked_cycles=0,
        served_parts=moved,
        way_cycles=2 * timing.hop_cycles,
        come_flits=1,
    )


def _free(flits: Any) -> OffChipLaw:
    """Of memory that costs nothing."""
    return OffChipLaw(*[0 * flits] * len(fields(OffChipLaw)))


def _larger(one: Any, other: Any) -> Any:
    """The larger of two numbers, which stays as it is; or of arrays, element by element."""
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return max(one, other) if numbers else np.maximum(one, other)


def _moved_parts(edge: Edge, units: Any, *, writes: bool) -> tuple[Any, Any, Any]:
    """Until a channel has moved the first of a block's units, two of them, and all."""
    timing = edge.timing
    busy = timing.busy_bytes(units * edge.unit_bytes, writes=writes)
    parts = _larger(units, 1)  # an array has candidates without such a block, too
    first, two = (timing.transfer_parts(busy, parts, moved) for moved in (1, 2))
    return first, two, timing.transfer_parts(busy)


def _way_cycles(timing: NocTiming, edge: Edge, flits: int) -> int:
    """From the first of some flits to the arrival of the last, next to each other."""
    return flits if edge.at_tiles else timing.unicast_cycles(0, flits) + 1
