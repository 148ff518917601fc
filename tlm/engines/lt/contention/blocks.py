"""Blocks of off-chip memory among the packets of multicasts, for the loosely-timed engine.

A tile's request, or the block that it stores, goes down its column as a tree of one destination,
and what comes back goes up as another. Channels answer as they are asked. Each is as fast as its
link both ways (`Edge.fills_links`), so that links alone make one block wait for another.
"""

from collections.abc import Sequence

import numpy as np

from tlm.engines.lt.contention.multicast_network import NONE, Job, Tree, TreeTable, fill
from tlm.engines.lt.contention.tiles import ends_of
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import OffChipLaw, in_cycles, load_law, store_law
from tlm.program.operations import OffChip


def law_of(timing: NocTiming, edge: Edge, operation: OffChip) -> OffChipLaw:
    """What a block of an operation costs alone."""
    make = load_law if operation.loads else store_law
    return make(timing, edge, operation.flits)


def describe(
    trees: Sequence[TreeTable],
    first_answer: int,
    operation: OffChip,
    law: OffChipLaw,
    edge: Edge,
    timing: NocTiming,
    row: int,
) -> None:
    """Fill in the trees of an operation, one for each of its tiles.

    Args:
        trees: Of its requests, and of their answers.
        first_answer: Number of the first answer's tree.
        operation: What moves the blocks.
        law: What each costs.
        edge: The channels.
        timing: Constants of the network.
        row: Of the operation, among those under way.
    """
    tile, col = ends_of(operation.near.index)
    place = edge.rows + edge.rows_below
    served = in_cycles(law.latency_parts + law.moved_parts)
    answered = served + law.back_cycles - timing.ejection_cycles - law.come_flits
    answers = first_answer + np.arange(len(tile))
    ways = ((tile, place, law.sent_flits, 0, answers, Job.TREE),
            (place, tile, law.come_flits, answered, NONE, Job.ANSWER))  # fmt: skip
    for table, (root, end, flits, start, answer, job) in zip(trees, ways, strict=True):
        columns = {
            Tree.BASE: col,
            Tree.STEP: edge.cols,
            Tree.ROOT: root,
            Tree.FIRST: end,
            Tree.LAST: end,
            Tree.STRIDE: 1,
            Tree.FLITS: flits,
            Tree.READY: start,
            Tree.PACKET: edge.unit_flits,
            Tree.OPERATION: row,
            Tree.ROOM: 1,
            Tree.ANSWER: answer,
            Tree.JOB: job,
        }
        fill(table, columns)
