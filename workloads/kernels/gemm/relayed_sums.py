"""Transposed MeshGEMM as a performance model where sums go part by part from tile to tile.

Streams of one step run into those of the next, whose root is another tile: what is on one side of
the root then is on the other side now. So there is no step that all take; the steps of a row are
followed tile by tile. Rows are alike but for the order of their roots: some stand for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tlm.interconnect.transfer_times import arrival_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program.relays import RECEIVE_BUFFERS
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.ring import Ring
from workloads.kernels.parts.relayed import RelayedParts

_ROWS = 8


def relayed_gemm_t_cycles(plan: GemmPlan, parts: RelayedParts, timing: NocTiming) -> int:
    """Cycles until the last row has its last sum (within 9 % of level lt, mostly early)."""
    side = plan.side
    ring = Ring.interleaved(side)
    roots = [ring.neighbours(-step).tolist() for step in range(side)]
    some = range(0, side, max(1, side // _ROWS))
    return max(_row_cycles(plan, parts, timing, [each[row] for each in roots]) for row in some)


def _row_cycles(
    plan: GemmPlan, parts: RelayedParts, timing: NocTiming, roots: Sequence[int]
) -> int:
    """Of a row whose sums go to some tiles, step by step."""
    b_way = arrival_cycles(timing, min(2, plan.side - 1), plan.b_flits)
    tiles = [_RowTile() for _ in range(plan.side)]
    for step, root in enumerate(roots):
        for tile in tiles:
            # Two buffers for products: that of two steps ago has left.
            tile.product = max(tile.product, tile.b_there, tile.left[step % 2]) + plan.step_cycles
            if step < plan.side - 1:
                tile.b_there = tile.interface + b_way
                tile.interface += plan.b_flits
        sides = [tiles[: root + 1], tiles[root:][::-1]]
        sides = sorted((side for side in sides if len(side) > 1), key=len)
        brought = [_bring(parts, side, timing) for side in sides]
        tiles[root].add_as_root(parts, brought)
        for side in sides:
            _hold_back(parts, side, len(sides), timing)
        for tile in tiles:
            tile.left[step % 2] = tile.last if tile is tiles[root] else tile.interface
    return max(max(tile.last, tile.interface) for tile in tiles)


@dataclass(slots=True)
class _RowTile:
    """When a tile of the row is ready for what.

    Attributes:
        product: Its products of the step are there.
        b_there: Its block of B is there.
        adder: Its vector engine is free.
        interface: So is its interface.
        first: It has the sum of the step's first part.
        last: That of the last.
        left: Its products of either buffer have left.
    """

    product: int = 0
    b_there: int = 0
    adder: int = 0
    interface: int = 0
    first: int = 0
    last: int = 0
    left: list[int] = field(default_factory=lambda: [0, 0])

    def add_as_root(self, parts: RelayedParts, brought: list[tuple[int, int]]) -> None:
        """Add the parts that come from the sides, the first and the last of each at some times."""
        first = last = max(self.adder, self.product)
        for come, _ in brought:
            first = max(first, come) + parts.add_cycles
        last = first + (parts.count - 1) * len(brought) * parts.add_cycles
        for number, (_, come) in enumerate(brought):
            last = max(last, come + (len(brought) - number) * parts.add_cycles)
        self.first, self.last, self.adder = first, last, last


def _bring(parts: RelayedParts, side: Sequence[_RowTile], timing: NocTiming) -> tuple[int, int]:
    """When the first and the last part of a side come to its root."""
    way, add, pace = arrival_cycles(timing, 1, parts.flits), parts.add_cycles, parts.count - 1
    between = parts.pace_cycles(timing, 1, 1)
    come = last_come = 0
    for number, tile in enumerate(side[:-1]):
        if number == 0:
            tile.first, tile.last = tile.product, tile.product
            sent = max(tile.first, tile.interface)
            tile.interface = sent + pace * parts.flits
        else:
            tile.first = max(come, tile.adder, tile.product) + add
            tile.last = max(tile.first + pace * between, last_come + add)
            tile.adder = tile.last
            sent = max(tile.first, tile.interface)
            tile.interface = max(tile.last, sent + pace * parts.flits)
        come, last_come = sent + way, tile.interface + way
        tile.interface += parts.flits + timing.launch_cycles
    return come, last_come


def _hold_back(
    parts: RelayedParts, side: Sequence[_RowTile], sides: int, timing: NocTiming
) -> None:
    """No tile is further ahead of the next one inwards than that has receive buffers."""
    way, ahead = arrival_cycles(timing, 1, parts.flits), min(parts.count - 1, RECEIVE_BUFFERS)
    for tile, inner in zip(side[-2::-1], side[:0:-1], strict=True):
        pace = parts.add_cycles * (sides if inner is side[-1] else 1)
        held = inner.last - ahead * pace - way
        tile.interface = max(tile.interface, held + parts.flits + timing.launch_cycles)
        if tile is not side[0]:
            tile.last = tile.adder = max(tile.last, held)
