"""The all-gather product on a line of tiles as a performance model: its packets, then products.

All tiles send all their blocks at once, those of one matrix to themselves. Nearer tiles' packets go
first on each link, and a tile's own blocks hold up all that pass it: the first panel may be the
last that comes. So packets go link by link, by the code of level `lt`: one code for one number.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.gemm.plan import GemmPlan


def gathered_on_a_line_cycles(plan: GemmPlan, timing: NocTiming) -> int:
    """Cycles of a plan on one row or column of several tiles, each with a panel."""
    ends = np.zeros(plan.panels, dtype=np.int64)
    for come in _come(plan, timing):
        ends = np.maximum(ends, come) + plan.step_cycles
    return int(ends.max())


def _come(plan: GemmPlan, timing: NocTiming) -> NDArray[np.int64]:
    """When both blocks of a panel are in a tile; shape (panels, tiles)."""
    from tlm.engines.lt.contention import multicast_network as parts  # slow to import
    from tlm.engines.lt.contention import multicast_packets as packets

    packets.ready()
    tiles, shared = plan.panels, 0 if plan.rows == 1 else 1  # the matrix that is multicast
    sent = _sent(tiles, shared)
    columns = dict.fromkeys(parts.Tree, np.zeros(len(sent), dtype=np.int64))
    panels, matrices, roots = sent.T
    to_all, flits = matrices == shared, np.where(matrices, plan.b_flits, plan.a_flits)
    last = np.diff(roots, append=-1) != 0
    longest = np.where(to_all, np.minimum(flits, timing.packet_bound), flits)
    columns |= {
        parts.Tree.STEP: np.ones_like(flits),
        parts.Tree.ROOT: roots,
        parts.Tree.FIRST: np.where(to_all, 0, roots),
        parts.Tree.LAST: np.where(to_all, tiles - 1, roots),
        parts.Tree.STRIDE: np.ones_like(flits),
        parts.Tree.FLITS: flits,
        parts.Tree.READY: np.full_like(flits, timing.launch_cycles),
        parts.Tree.PACKET: longest,
        parts.Tree.OPERATION: 2 * panels + matrices,
        parts.Tree.ROOM: longest,
        parts.Tree.ANSWER: np.full_like(flits, parts.NONE),
        parts.Tree.NEXT: np.where(last, parts.NONE, np.arange(len(sent)) + 1),
    }
    owed = np.zeros(2 * tiles, dtype=np.int64)
    np.add.at(owed, 2 * panels + matrices, np.where(to_all, tiles, 1) * -(-flits // longest))
    network = parts.Network(
        router=parts.router_of(timing),
        nodes=parts.fresh_nodes(tiles),
        queues=parts.fresh_queues(tiles),
        trees=np.stack([columns[column] for column in parts.Tree], axis=1),
        wheel=np.zeros(parts.WHEEL_SIZE, dtype=np.int64),
        arrivals=np.zeros((2 * tiles, tiles), dtype=np.int32),
        owed=owed,
        answers=np.zeros(0, dtype=np.int64),
        served=np.zeros(0, dtype=np.int64),
        graph=parts.no_graph(),
        cols=tiles,
    )
    for tile in range(tiles):
        packets.begin(network, tile * len(sent) // tiles, timing.launch_cycles)
    for operation in range(2 * tiles):
        packets.run(network, operation)
    come: NDArray[np.int64] = network.arrivals.reshape(tiles, 2, tiles).max(axis=1)
    return come


def _sent(tiles: int, shared: int) -> NDArray[np.int64]:
    """Panel, matrix and root of each block, tile by tile in the order in which that sends them."""
    return np.array(
        [
            (panel, matrix, tile)
            for tile in range(tiles)
            for panel in range(tiles)
            for matrix in range(2)
            if matrix != shared or panel == tile
        ]
    )
