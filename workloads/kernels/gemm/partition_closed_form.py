"""The partitioned product as a performance model: its operations one by one, on a free network.

A max-plus step over the cores for each operation: engines, tokens and credits as the program has
them, ways of their real lengths. Messages that share links do not wait for each other here; but all
takes no less than what the busiest link carries. Where channels are locked a
message is a request, an acknowledge and data (`zero_load.NocTiming.head_cycles`), none
of which waits: this is the formula mode beside the router at level `at`.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.transfer_times import arrival_cycles, credit_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law
from workloads.kernels.gemm.partition_gemm import moves_of, neighbours
from workloads.kernels.gemm.partition_plan import PartitionPlan
from workloads.kernels.parts.channels import sharing
from workloads.kernels.parts.routes import link_flits

_Times = NDArray[np.int64]
_BEFORE = -(2**40)
"""Of what is there from the start: longer ago than any credit takes."""


class _Ring:
    """Messages of each core to the next one along a line of cores.

    Attributes:
        taker: Shape (P,): whom a core sends to.
    """

    def __init__(
        self, plan: PartitionPlan, step: tuple[int, int], flits: int, timing: NocTiming
    ) -> None:
        self.taker = np.array(neighbours(plan.cores, step))
        tiles = np.array(plan.order)
        hops = np.abs(tiles - tiles[self.taker]).sum(axis=1)
        self._flits = flits
        self._way = np.array([arrival_cycles(timing, int(each), flits) for each in hops])
        self._credit = np.array([credit_cycles(timing, int(each)) for each in hops])

    def send(self, free: _Times, there: _Times, room: _Times) -> tuple[_Times, _Times]:
        """When interfaces are free again, and when messages have come.

        Args:
            free: When they were.
            there: When a core had what it sends.
            room: When a core had room for what it gets.
        """
        start = np.maximum.reduce([free, there, room[self.taker] + self._credit])
        come = np.empty_like(start)
        come[self.taker] = start + self._way
        return start + self._flits, come


def partition_cycles(plan: PartitionPlan, timing: NocTiming) -> int:
    """Cycles until every core has its part of the product."""
    parts, cycles, add = plan.parts, plan.product_cycles, plan.combine_cycles
    matrix = np.zeros(len(plan.order), dtype=np.int64)
    transfer, vector, done = matrix.copy(), matrix.copy(), matrix.copy()
    before = np.full_like(matrix, _BEFORE)
    b_there, b_free = [matrix] * parts, [[before] * parts] * 2
    if plan.place.offchip is not None:
        b_there = [matrix + each for each in _loaded(plan, plan.place.offchip, timing)]
        transfer += parts  # a request each
    in_free = [before, before]
    down = _Ring(plan, (1, 0), plan.b_flits, timing)
    across = _Ring(plan, (0, 1), plan.c_flits, timing)
    for turn in range(plan.rounds):
        products = []
        for there in b_there:
            matrix = np.maximum(matrix, there) + cycles
            products.append(matrix)
        if turn + 1 < plan.rounds:
            free, b_free[turn % 2] = b_free[(turn + 1) % 2], []
            for step in range(parts):
                transfer, come = down.send(transfer, b_there[step], free[step])
                b_free[turn % 2].append(np.maximum(products[step], transfer))
                b_there[step] = come
        if parts == 1:
            continue
        ready, sent = products[0], []
        for step in range(parts - 1):
            transfer, come = across.send(transfer, ready, in_free[step % 2])
            sent.append(transfer)
            vector = np.maximum.reduce([vector, come, products[step + 1]]) + add
            in_free[step % 2] = ready = vector
        for passed in [] if plan.scattered else sent:
            transfer, ready = across.send(transfer, ready, passed)
        done = np.maximum(done, ready)
    busiest = _busiest_link(plan) * timing.link_interval_cycles
    return int(max(matrix.max(), done.max(), transfer.max(), busiest))


def _loaded(plan: PartitionPlan, edge: Edge, timing: NocTiming) -> list[int]:
    """When each part of B is in the core that gets it last: all cores ask for all at once."""
    law, place = load_law(timing, edge, plan.b_flits), plan.place
    tiles = sharing(edge, place.rows, place.cols)
    alone, served = law.alone_cycles(int(tiles.farthest)), int(law.served_cycles)
    return [alone + ((part + 1) * int(tiles.most) - 1) * served for part in range(plan.parts)]


def _busiest_link(plan: PartitionPlan) -> int:
    """Flits over the link that carries most."""
    sent = (
        ((1, 0), (plan.rounds - 1) * plan.parts * plan.b_flits),
        ((0, 1), plan.sums_sent * plan.c_flits),
    )
    loads = link_flits((moves_of(plan.order, plan.cores, step), flits) for step, flits in sent)
    return max(loads.values(), default=0)
