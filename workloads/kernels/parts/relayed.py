"""Streams of sums on tiles that store a part of a block before they pass it on.

The project's own tiles cannot add words on their way. There a stream goes part by part
(`tlm.program.relays`): a tile receives one, its vector engine adds, and the sum leaves while the
next one is added. Long parts make a stage slow, short ones waste the vector engine's start.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tlm.compute.base import ceil_div
from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program.relays import RECEIVE_BUFFERS
from workloads.machine.place import Place


@dataclass(frozen=True, slots=True)
class RelayedParts:
    """How blocks are cut.

    Attributes:
        size: Rows of a part; of a block of one row, its elements.
        count: Parts of a block.
        flits: Of a part.
        add_cycles: Of the vector engine, to add two.
    """

    size: int
    count: int
    flits: int
    add_cycles: int

    def pace_cycles(self, timing: NocTiming, hops: int, sides: int) -> int:
        """From part to part, over links of some hops to a tile to which some sides send."""
        left = self.flits + timing.launch_cycles + credit_cycles(timing, hops)
        round_trip = arrival_cycles(timing, hops, self.flits) + self.add_cycles + left
        return max(sides * self.add_cycles, ceil_div(round_trip, RECEIVE_BUFFERS))


def best_parts(
    place: Place, shape: tuple[int, int], cycles: Callable[[RelayedParts], int]
) -> RelayedParts:
    """The cut of a block of sums of which a stream takes the fewest cycles.

    Args:
        place: The tiles.
        shape: Rows and columns of the block; of one row an even number, of whole words.
        cycles: Of a stream.
    """
    rows, columns = shape
    word = 8 * place.timing.flit_bytes // place.sum_bits
    length, unit = (ceil_div(columns, word), word) if rows == 1 else (rows, 1)
    if columns == 1:  # such a block lies in one piece
        length, unit = 1, rows
    sizes = {ceil_div(length, count) for count in range(1, length + 1)}
    cuts = [_cut(place, shape, size * unit) for size in sorted(sizes, reverse=True)]
    return min(cuts, key=cycles)


def _cut(place: Place, shape: tuple[int, int], size: int) -> RelayedParts:
    rows, columns = shape
    part = (1, size) if rows == 1 else (size, columns)
    return RelayedParts(
        size=size,
        count=ceil_div(columns if rows == 1 else rows, size),
        flits=place.flits(*part, place.sum_bits),
        add_cycles=place.vector.pass_cycles(*part),
    )
