"""The partitioned product as a performance model: its operations one by one.

A max-plus step over the cores for each operation: engines, tokens and credits as the program has
them, ways of their real lengths. Messages of one ring whose tiles lie side by side meet nobody.
Others share links or ports, with each other or with blocks of off-chip memory. They wait for each
other, and hold the links that they are spread over while they do. So all of them are a graph, and
go in order of time (`parts.shared_links`).

Where channels are locked a message is a request, an acknowledge and data
(`zero_load.NocTiming.head_cycles`), none of which waits: this is the formula mode beside the router
at level `at`. All takes no less than what the busiest link carries.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import in_cycles, load_law
from tlm.program import Engine
from tlm.program.operations import COMPUTING
from workloads.kernels.gemm.partition_gemm import moves_of, neighbours
from workloads.kernels.gemm.partition_plan import PartitionPlan
from workloads.kernels.parts.routes import Link, link_flits
from workloads.kernels.parts.shared_links import Graph, Messages, follows
from workloads.machine.order import Order

_Times = NDArray[np.int64]
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
        self.ways = _ways(plan.order, plan.cores, step)
        hops = self.ways.hops
        come = [arrival_cycles(timing, each, flits) for each in range(int(hops.max()) + 1)]
        #: From the first flit of each core's to the arrival.
        self.arrival = np.array(come)[hops] - timing.launch_cycles
        credit = credit_cycles_over(timing, hops)
        self.messages = Messages(
            self.ways.taker, self.ways.ends, credit, timing.launch_cycles, flits
        )


#: When units are there, or their numbers in a graph: shape (P,).
_Units = NDArray[np.int64]
#: A ring, what a core has that it sends, and what it has room for: the last unit of each counts.
_Sent = tuple[_Ring, Sequence[_Units], Sequence[_Units]]


class _InOrder:
    """The cores' engines, one operation after the other: no message meets another."""

    def __init__(self, plan: PartitionPlan, timing: NocTiming, free: int) -> None:
        del timing
        self._free = {engine: np.zeros(len(plan.order), dtype=np.int64) for engine in COMPUTING}
        self._interfaces = np.full(len(plan.order), free)

    def loaded(self, plan: PartitionPlan, edge: Edge, timing: NocTiming) -> list[_Units]:
        """Units of the cores when they have each part of B."""
        return _loaded(plan, edge, timing)

    def work(self, engine: Engine, cycles: int, *waits: _Units) -> _Units:
        """Units of all cores at the end of some work."""
        self._free[engine] = np.maximum.reduce([self._free[engine], *waits]) + cycles
        return self._free[engine]

    def send(self, *sent: _Sent) -> list[tuple[_Units, _Units]]:
        """Units when messages of each ring have left, and when they have come to their takers."""
        found = []
        for ring, there, room in sent:
            messages = ring.messages
            room = [each[messages.taker] + messages.credit for each in room]
            ready = [each + messages.launch for each in (*there, *room)]
            start = np.maximum.reduce([self._interfaces, *ready])
            self._interfaces = start + messages.flits
            found.append((self._interfaces, messages.at_takers(start + ring.arrival)))
        return found

    def times(self, units: _Units) -> _Times:
        """When units are there."""
        return units


class _Followed:
    """The same, with messages that share links, which go as soon as what they wait for is there."""

    def __init__(self, plan: PartitionPlan, timing: NocTiming, free: int) -> None:
        self._tiles = np.array(plan.order)
        edge = plan.place.offchip
        below = 0 if edge is None else edge.edge_rows
        self._graph = Graph(plan.place.rows + below, plan.place.cols, timing, free)
        self.times = self._graph.times

    def loaded(self, plan: PartitionPlan, edge: Edge, timing: NocTiming) -> list[_Units]:
        """Units of the cores when they have each part of B, which may share links with messages."""
        times = _loaded(plan, edge, timing)
        if not _meets_blocks(plan):
            return [self._graph.known(self._tiles, each) for each in times]
        tiles = plan.order
        places = np.array([edge.place(edge.channel(tile)) for tile in tiles])
        ends = np.concatenate([places, self._tiles], axis=1)
        way = np.array([arrival_cycles(timing, edge.hops(tile), plan.b_flits) for tile in tiles])
        way = way - timing.launch_cycles
        order = np.argsort([edge.number(tile) for tile in tiles], kind="stable")
        found = []
        for each in times:
            units = self._graph.answers(
                ends[order], plan.b_flits, (each - way)[order], edge.unit_flits
            )
            there = np.empty_like(units)
            there[order] = units
            found.append(there)
        return found

    def work(self, engine: Engine, cycles: int, *waits: _Units) -> _Units:
        """Units of all cores at the end of some work."""
        return self._graph.work(engine, self._tiles, cycles, waits)

    def send(self, *sent: _Sent) -> list[tuple[_Units, _Units]]:
        """Units when messages of each ring have left, and when they have come to their takers."""
        found = []
        for ring, there, room in sent:
            left, come = self._graph.send(ring.messages, there, room)
            found.append((left, ring.messages.at_takers(come)))
        return found


def partition_cycles(plan: PartitionPlan, timing: NocTiming, enough: int = NEVER) -> int:
    """Cycles until every core has its part of the product; or some beyond ``enough``."""
    return _cycles(plan, timing, enough, followed=follows(timing))


def least_cycles(plan: PartitionPlan, timing: NocTiming) -> int:
    """What it takes if no message waits for another's link: no more, and sooner known."""
    return _cycles(plan, timing, NEVER, followed=False)


def _cycles(plan: PartitionPlan, timing: NocTiming, enough: int, *, followed: bool) -> int:
    parts = plan.parts
    down = _Ring(plan, (1, 0), plan.b_flits, timing)
    across = _Ring(plan, (0, 1), plan.c_flits, timing)
    moving = [ring for ring, moves in ((down, plan.rounds > 1), (across, parts > 1)) if moves]
    # Where both move, parts of B come in a row, and sums between them at the same ports.
    met = bool(moving) and _meets_blocks(plan)
    followed = followed and (len(moving) > 1 or met or any(ring.ways.shared for ring in moving))
    free, loaded = timing.launch_cycles, plan.place.offchip is not None
    free += parts * loaded  # a request each
    cores = (_Followed if followed else _InOrder)(plan, timing, free)
    b_there: list[list[_Units]] = [[] for _ in range(parts)]
    if plan.place.offchip is not None:
        b_there = [[each] for each in cores.loaded(plan, plan.place.offchip, timing)]
    in_free: list[list[_Units]] = [[], []]
    rounds = _followed_rounds(plan, down, across) if followed else plan.rounds
    ends: list[_Units] = []
    done: list[_Units] = []
    moved: list[tuple[_Units, _Units]] = []
    if rounds > 1:
        moved = cores.send(*((down, there, []) for there in b_there))
    for turn in range(rounds):
        products = [cores.work(Engine.MATRIX, plan.product_cycles, *there) for there in b_there]
        ends.append(products[-1])
        if not followed:
            end = int(products[-1].max())
            if end + (plan.rounds - turn - 1) * parts * plan.product_cycles > enough:
                return enough + 1
        b_there = [[come] for _, come in moved]
        following, passed, ready = [], [], products[0]
        for step in range(parts):
            sent: list[_Sent] = []
            if turn + 2 < rounds:
                left, come = moved[step]
                sent.append((down, [come], [products[step], left]))
            if step < parts - 1:
                sent.append((across, [ready], in_free[step % 2]))
            gone = cores.send(*sent)
            if turn + 2 < rounds:
                following.append(gone[0])
            if step < parts - 1:
                left, come = gone[-1]
                passed.append(left)
                ready = cores.work(Engine.VECTOR, plan.combine_cycles, come, products[step + 1])
                in_free[step % 2] = [ready]
        moved = following
        done.append(ready)
        for room in [] if plan.scattered else passed:
            ((left, ready),) = cores.send((across, [ready], [room]))
            done += [left, ready]
    times = [int(cores.times(each).max()) for each in (*ends, *done)]
    end, half = max(times), rounds // 2
    if rounds < plan.rounds:  # the others go at the pace of the last ones
        end += (plan.rounds - rounds) * (times[rounds - 1] - times[half - 1]) // (rounds - half)
    return max(end, _busiest_link(down, across, plan) * timing.link_interval_cycles)


def _meets_blocks(plan: PartitionPlan) -> bool:
    """Whether messages wait for blocks of B on links, as channels keep them busy."""
    return plan.place.offchip is not None and plan.place.offchip.fills_links


def _followed_rounds(plan: PartitionPlan, down: _Ring, across: _Ring) -> int:
    """Rounds whose messages are followed over the links that they share."""
    sums = plan.sums_sent // plan.rounds
    hops = sum(
        messages * int(ring.ways.hops.sum())
        for ring, messages in ((down, plan.parts), (across, sums))
        if ring.ways.shared or _meets_blocks(plan)
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
            loads[link] += uses * messages * ring.messages.flits
    return max(loads.values(), default=0)
