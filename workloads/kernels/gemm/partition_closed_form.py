"""The partitioned product as a performance model: its operations one by one.

A max-plus step over the cores for each operation: engines, tokens and credits as the program has
them, ways of their real lengths. Messages of a ring whose tiles lie side by side meet nobody. Those
of others share links: they wait for each other, and hold the links that they are spread over while
they do, as do those that go with them (`parts.shared_links`).

Where channels are locked a message is a request, an acknowledge and data
(`zero_load.NocTiming.head_cycles`), none of which waits: this is the formula mode beside the router
at level `at`. All takes no less than what the busiest link carries.
"""

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import in_cycles, load_law
from workloads.kernels.gemm.partition_gemm import moves_of, neighbours
from workloads.kernels.gemm.partition_plan import PartitionPlan
from workloads.kernels.parts.routes import Link, link_flits
from workloads.kernels.parts.shared_links import MessageLinks, follows
from workloads.machine.order import Order

_Times = NDArray[np.int64]
_BEFORE = -(2**40)
"""Of what is there from the start: longer ago than any credit takes."""
NEVER = 2**62
"""Later than anything."""
_MOST_HOPS, _LEAST_ROUNDS = 2**20, 16
"""Messages are followed over so many links, half a second's work, but in no fewer rounds."""


class _Ways(NamedTuple):
    """From each core to the next one along a line of cores.

    Attributes:
        taker: Shape (P,): whom a core sends to.
        ends: Shape (P, 4): rows and columns of the tiles of both.
        hops: Shape (P,): links between them.
        links: Messages over each link between them.
    """

    taker: _Times
    ends: _Times
    hops: _Times
    links: Counter[Link]

    @property
    def shared(self) -> bool:
        """Whether messages share links if all go at once."""
        return max(self.links.values(), default=0) > 1


@lru_cache(64)  # a search looks at the same again and again
def _ways(order: Order, cores: tuple[int, int], step: tuple[int, int]) -> _Ways:
    """Those of tiles in an order."""
    taker, tiles = np.array(neighbours(cores, step)), np.array(order)
    ends = np.concatenate([tiles, tiles[taker]], axis=1)
    hops = np.abs(tiles - tiles[taker]).sum(axis=1)
    return _Ways(taker, ends, hops, link_flits([(moves_of(order, cores, step), 1)]))


class _Ring:
    """Messages of each core to the next one along a line of cores, all of some flits."""

    def __init__(
        self, plan: PartitionPlan, step: tuple[int, int], flits: int, timing: NocTiming
    ) -> None:
        self.ways, self.flits = _ways(plan.order, plan.cores, step), flits
        self.shared = self.ways.shared
        hops = self.ways.hops
        come = [arrival_cycles(timing, each, flits) for each in range(int(hops.max()) + 1)]
        #: From the first flit of each core's to the arrival.
        self.arrival = np.array(come)[hops] - timing.launch_cycles
        self._credit, self._launch = credit_cycles_over(timing, hops), timing.launch_cycles

    def ready(self, there: _Times, room: _Times) -> _Times:
        """When first flits may leave.

        Args:
            there: When a core has what it sends.
            room: When a core has room for what it gets.
        """
        ready: _Times = np.maximum(there, room[self.ways.taker] + self._credit) + self._launch
        return ready


#: A ring, when a core has what it sends there, and when it has room for what it gets.
_Sent = tuple[_Ring, _Times, _Times]


class _Interfaces:
    """The interfaces of all cores, and the links between them if those are shared.

    Attributes:
        free: Shape (P,): when each is free.
    """

    def __init__(self, plan: PartitionPlan, timing: NocTiming, links: MessageLinks | None) -> None:
        self.free = np.full(len(plan.order), timing.launch_cycles)
        self._links = links

    def send(self, *sent: _Sent) -> list[tuple[_Times, _Times]]:
        """When messages of each ring have left, and when they have come to their takers.

        All have what they need without each other.
        """
        if self._links is not None and any(ring.shared for ring, _, _ in sent):
            return self._over_links(self._links, sent)
        found = []
        for ring, there, room in sent:
            start = np.maximum(self.free, ring.ready(there, room))
            self.free = start + ring.flits
            found.append((self.free, _at_takers(ring, start + ring.arrival)))
        return found

    def _over_links(
        self, links: MessageLinks, sent: tuple[_Sent, ...]
    ) -> list[tuple[_Times, _Times]]:
        rings = [ring for ring, _, _ in sent]
        left, come = links.carry(
            np.concatenate([ring.ways.ends for ring in rings]),
            np.repeat([ring.flits for ring in rings], len(self.free)),
            np.concatenate([ring.ready(there, room) for ring, there, room in sent]),
            np.tile(self.free, len(rings)),
        )
        each_left, each_come = (np.split(times, len(rings)) for times in (left, come))
        self.free = each_left[-1]
        return [
            (left, _at_takers(ring, come))
            for ring, left, come in zip(rings, each_left, each_come, strict=True)
        ]


def _at_takers(ring: _Ring, come: _Times) -> _Times:
    """When each core has got its message, of when each core's has come."""
    there = np.empty_like(come)
    there[ring.ways.taker] = come
    return there


def partition_cycles(plan: PartitionPlan, timing: NocTiming, enough: int = NEVER) -> int:
    """Cycles until every core has its part of the product; or some beyond ``enough``."""
    if not follows(timing):
        return least_cycles(plan, timing)
    return _cycles(plan, timing, MessageLinks(plan.place.rows, plan.place.cols, timing), enough)


def least_cycles(plan: PartitionPlan, timing: NocTiming) -> int:
    """What it takes if no message waits for another's link: no more, and sooner known."""
    return _cycles(plan, timing, None, NEVER)


def _cycles(plan: PartitionPlan, timing: NocTiming, links: MessageLinks | None, enough: int) -> int:
    parts, cycles, add = plan.parts, plan.product_cycles, plan.combine_cycles
    interfaces = _Interfaces(plan, timing, links)
    matrix = np.zeros(len(plan.order), dtype=np.int64)
    vector, done = matrix.copy(), matrix.copy()
    before = np.full_like(matrix, _BEFORE)
    b_there = [matrix] * parts
    if plan.place.offchip is not None:
        b_there = _loaded(plan, plan.place.offchip, timing)
        interfaces.free += parts  # a request each
    in_free = [before, before]
    down = _Ring(plan, (1, 0), plan.b_flits, timing)
    across = _Ring(plan, (0, 1), plan.c_flits, timing)
    rounds = plan.rounds if links is None else _followed_rounds(plan, down, across)
    ends: list[int] = []
    moved: list[tuple[_Times, _Times]] = []
    if rounds > 1:
        moved = interfaces.send(*((down, there, before) for there in b_there))
    for turn in range(rounds):
        products = []
        for there in b_there:
            matrix = np.maximum(matrix, there) + cycles
            products.append(matrix)
        ends.append(int(matrix.max()))
        if ends[-1] + (plan.rounds - turn - 1) * parts * cycles > enough:
            return enough + 1
        b_there = [come for _, come in moved]
        following, passed = [], []
        for step in range(parts):
            sent: list[_Sent] = []
            if turn + 2 < rounds:
                left, come = moved[step]
                sent.append((down, come, np.maximum(products[step], left)))
            if step < parts - 1:
                sent.append((across, vector if step else products[0], in_free[step % 2]))
            gone = interfaces.send(*sent)
            if turn + 2 < rounds:
                following.append(gone[0])
            if step < parts - 1:
                left, come = gone[-1]
                passed.append(left)
                vector = np.maximum.reduce([vector, come, products[step + 1]]) + add
                in_free[step % 2] = vector
        moved = following
        ready = vector
        for room in [] if plan.scattered else passed:
            ((_, ready),) = interfaces.send((across, ready, room))
        done = np.maximum(done, ready)
    busiest = _busiest_link(down, across, plan) * timing.link_interval_cycles
    end = max(ends[-1], int(done.max()), int(interfaces.free.max()))
    half = rounds // 2
    if rounds < plan.rounds:  # the others go at the pace of the last ones
        end += (plan.rounds - rounds) * (ends[-1] - ends[half - 1]) // (rounds - half)
    return max(end, busiest)


def _followed_rounds(plan: PartitionPlan, down: _Ring, across: _Ring) -> int:
    """Rounds whose messages are followed over the links that they share."""
    sums = plan.sums_sent // plan.rounds
    hops = sum(
        messages * int(ring.ways.hops.sum())
        for ring, messages in ((down, plan.parts), (across, sums))
        if ring.shared
    )
    return min(plan.rounds, max(_LEAST_ROUNDS, _MOST_HOPS // max(hops, 1)))


def _loaded(plan: PartitionPlan, edge: Edge, timing: NocTiming) -> list[_Times]:
    """When each part of B is in each core: all ask for all at once.

    A channel serves its tiles in turn, row by row, and then the next part. The first one is the
    farthest, and asks last.
    """
    law, tiles = load_law(timing, edge, plan.b_flits), plan.order
    sharers = Counter(map(edge.channel, tiles))
    most = np.array([sharers[edge.channel(tile)] for tile in tiles])
    turn, hops = (np.array([*map(of, tiles)]) for of in (edge.number, edge.hops))
    begin = law.alone_cycles(hops.max()) - (hops.max() - hops) * law.way_cycles // 2
    served = [in_cycles((turn + part * most) * law.served_parts) for part in range(plan.parts)]
    return [begin + each for each in served]


def _busiest_link(down: _Ring, across: _Ring, plan: PartitionPlan) -> int:
    """Flits over the link that carries most."""
    sent = (down, (plan.rounds - 1) * plan.parts), (across, plan.sums_sent)
    loads = Counter[Link]()
    for ring, messages in sent:
        for link, uses in ring.ways.links.items() if messages else ():
            loads[link] += uses * messages * ring.flits
    return max(loads.values(), default=0)
