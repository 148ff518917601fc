"""FlatAttention as a performance model: what a plan's parts take, and their timeline."""

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tlm.compiled import allocating, forget_stale
from tlm.interconnect.transfer_times import arrival_cycles, hold_cycles, multicast_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law, store_law
from workloads.kernels.attention.core import products
from workloads.kernels.attention.flat_costs import Costs, Slices, Stored, Together
from workloads.kernels.attention.flat_masks import MaskChannels, mask_loads
from workloads.kernels.attention.flat_order import BLOCKS, Order
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.flat_timeline import SCRATCH_SHAPE, timeline
from workloads.kernels.attention.flat_work import Streams, count_masks, loads_of, longest, work_of
from workloads.kernels.attention.groups import Groups
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.closed_form import (
    all_reduce_cycles,
    broadcast_cycles,
    reduce_cycles,
)
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines


class _Ways(NamedTuple):
    """Between the tiles that load and their channels."""

    hops: int  # of the farthest
    most: int  # tiles of one channel
    others: int  # of these, those of other groups than the last one's


class _Turns(NamedTuple):
    """How a plan's streams take turns, whichever group's: see `Order`."""

    depth: int
    held: int
    padded: bool
    shared: bool


class _Laws:
    """What a network and the memory behind it say of slices; equal ones are one object.

    Figures that plans of many problems have in common are kept by it.
    """

    def __init__(self, timing: NocTiming, edge: Edge | None, method: str, operands: str) -> None:
        self.timing, self.edge = timing, edge
        self.method, self.operands = method, operands


_laws = lru_cache(64)(_Laws)


def flat_attention_cycles(plan: FlatPlan, timing: NocTiming) -> int:
    """Cycles of a plan."""
    laws = _laws(timing, plan.place.offchip, plan.method, plan.operands)
    turns = _Turns(plan.depth, plan.held, plan.padded, plan.shared)
    return int(_cycles(plan.all_streams, turns, _mask_channels(plan, laws), _costs(plan, laws)))


@allocating
def _cycles(plan: Streams, turns: _Turns, edge: MaskChannels, costs: Costs) -> int:
    """Cycles of the groups of which one ends last."""
    work, number, masks, known = work_of(plan)
    every = longest(work, number, plan)
    if plan.causal:
        costs = _of_mean(costs, _part_of_loads(plan, work, number, every[0]))
    cycles, none = 0, np.zeros((1, 2), dtype=np.int64)
    for group in every:
        streams = number[group]
        states, own = min(plan.states, streams), work[group, :streams]
        first, loads = -1, none
        if plan.causal:
            counts = np.zeros(len(known), dtype=np.int64)
            first = count_masks(own, streams, plan, states, masks, counts)
            loads = mask_loads(plan, edge, work, number, masks, known, group)
        order = Order(
            streams, own[:, BLOCKS].sum(), loads_of(own, streams, plan.alike, states), turns.depth,
            states, turns.held, plan.alike, turns.padded, first,
            plan.causal != 0 and plan.down * plan.across > 1, turns.shared,
        )  # fmt: skip
        scratch = np.zeros(SCRATCH_SHAPE, dtype=np.int64)
        cycles = max(cycles, timeline(scratch, own, masks, loads, order, costs))
    return cycles


@allocating
def _part_of_loads(plan: Streams, work, number, most: int) -> float:  # type: ignore[no-untyped-def]
    """Blocks of keys that a group brings, the mean of all, over those of the one with the most."""
    loads = groups = 0
    for group in range(plan.groups):
        if number[group]:
            groups += 1
            states = min(plan.states, number[group])
            loads += loads_of(work[group], number[group], plan.alike, states)
    states = min(plan.states, number[most])
    return loads / groups / loads_of(work[most], number[most], plan.alike, states)


@allocating
def _of_mean(costs: Costs, part: float) -> Costs:
    """Where groups that have fewer blocks of keys ask for fewer."""
    k, v = costs.k, costs.v
    return Costs(
        costs.scores, costs.output, costs.wide, costs.column, costs.deep, costs.ask, costs.sent,
        costs.rows, costs.summed, costs.added, costs.q,
        Slices(
            k.port, k.there, k.asked, int(np.rint(part * k.served)), int(np.rint(part * k.ahead))
        ),
        Slices(
            v.port, v.there, v.asked, int(np.rint(part * v.served)), int(np.rint(part * v.ahead))
        ),
        costs.mask, costs.unseen, costs.total, costs.o,
    )  # fmt: skip


forget_stale(_cycles)


def _mask_channels(plan: FlatPlan, laws: _Laws) -> MaskChannels:
    edge = laws.edge
    if edge is None or not plan.shape.causal:
        return MaskChannels(0, plan.place.cols, 1)
    served = load_law(laws.timing, edge, plan.flits("mask")).served_cycles
    return MaskChannels(0 if edge.at_tiles else edge.channels, edge.cols, served)


def _costs(plan: FlatPlan, laws: _Laws) -> Costs:
    block, vector, memory = plan.block, plan.place.vector, laws.edge is not None
    flits, groups = plan.flits, plan.groups
    scores, output = products(plan.place, block)
    column = vector.pass_cycles(block.rows, 1)
    deep = vector.pass_cycles(block.rows, block.v_depth)
    # Of messages the root of a row sends none. One item after the other that is all that counts,
    # if the row's other tiles have no slices to send on.
    sends = plan.method == "network" or plan.operands == "tree" or plan.depth > 1
    sends |= plan.group[1] > plan.group[0]
    nothing = Slices(0, 0, 0, 0, 0)
    if plan.shape.causal:
        mask = _own(laws, groups, flits("mask"))
    else:
        mask = _slices(laws, groups, "mask", flits("mask"))
    return Costs(
        scores=scores,
        output=output,
        wide=vector.pass_cycles(block.rows, block.keys),
        column=column,
        deep=deep,
        ask=laws.timing.launch_cycles + 1 if memory else 0,
        sent=flits("o") if sends else 0,
        rows=_together(laws, plan.busiest, flits("total"), column),
        summed=_summed(laws, groups, flits("o"), deep),
        added=plan.method != "network",
        q=_slices(laws, groups, "q", flits("q")),
        k=_slices(laws, groups, "k", flits("k")),
        v=_slices(laws, groups, "k", flits("k" if plan.shared else "v")),
        mask=mask,
        unseen=_own(laws, groups, flits("unseen")) if plan.mask_parts else nothing,
        total=_stored(laws, groups, flits("total")),
        o=_stored(laws, groups, flits("o")),
    )


def _reduction(laws: _Laws, groups: Groups, flits: int, cycles: int) -> Reduction:
    """Of what comes together along the rows of tiles: one for each place of a root."""
    roots = tuple(sorted(set(groups.line_roots("q"))))
    lines = Lines("row", range(len(roots)), groups.size[1])
    return Reduction(lines, roots, laws.method, "", "", "", flits, cycles)


@lru_cache(1 << 14)
def _together(laws: _Laws, groups: Groups, flits: int, column: int) -> Together:
    """Maxima or sums of rows of a block."""
    # The diagonal sends the result out as soon as it has come.
    reduction = _reduction(laws, groups, flits, column)
    gathered, port = reduce_cycles(reduction, laws.timing), hold_cycles(laws.timing, flits)
    if laws.method in BY_MESSAGES:
        port = _messages(laws.method, groups.size[1]) * flits
    spread = all_reduce_cycles(reduction, laws.timing) - gathered
    return Together(gathered, port, spread, sends=laws.method == "network")


@lru_cache(1 << 14)
def _summed(laws: _Laws, groups: Groups, flits: int, deep: int) -> int:
    """Outputs of a block."""
    return reduce_cycles(_reduction(laws, groups, flits, deep), laws.timing)


@lru_cache(1 << 14)
def _slices(laws: _Laws, groups: Groups, name: str, flits: int) -> Slices:
    """Of what tiles of the diagonal bring for all."""
    timing, edge, length = laws.timing, laws.edge, groups.lines(name)[0].length
    if laws.operands in BY_MESSAGES:
        own = edge is None  # without memory a root sends a copy to itself
        roots = set(groups.line_roots(name))
        port = (own + _messages(laws.operands, length)) * flits
        there = max(
            broadcast_cycles(timing, laws.operands, length, root, flits, own=own) for root in roots
        )
    else:
        port, there = (
            hold_cycles(timing, flits, multicast=length > 1),
            _spread(timing, length, flits),
        )
    if edge is None:
        return Slices(port, there, 0, 0, 0)
    law, way = load_law(timing, edge, flits), _ways(laws, groups, name)
    served, asked = law.served_cycles, law.alone_cycles(way.hops) - law.served_cycles
    return Slices(port, there, asked, way.most * served, way.others * served)


@lru_cache(1 << 14)
def _own(laws: _Laws, groups: Groups, flits: int) -> Slices:
    """Of what every tile brings for itself."""
    timing, edge = laws.timing, laws.edge
    if edge is None:
        return Slices(hold_cycles(timing, flits), arrival_cycles(timing, 0, flits), 0, 0, 0)
    law, way = load_law(timing, edge, flits), _ways(laws, groups, "")
    served, asked = law.served_cycles, law.alone_cycles(way.hops) - law.served_cycles
    return Slices(0, 0, asked, way.most * served, way.others * served)


def _messages(method: str, length: int) -> int:
    """Of a line's root to the others, which a tree's send on."""
    return length - 1 if method == "sequential" else (length - 1).bit_length()


def _spread(timing: NocTiming, length: int, flits: int) -> int:
    """Cycles from the sending of a slice to its arrival at a whole line."""
    if length == 1:
        return arrival_cycles(timing, 0, flits)
    return int(multicast_cycles_over(timing, np.array([length - 1]), np.array([flits]))[0])


@lru_cache(1 << 14)
def _stored(laws: _Laws, groups: Groups, flits: int) -> Stored:
    """Of results, which tiles of the diagonal store."""
    timing, edge = laws.timing, laws.edge
    if edge is None:
        return Stored(0, 0, 0, 0)
    law, way = store_law(timing, edge, flits), _ways(laws, groups, "q")
    port = timing.launch_cycles + law.sent_flits
    written = law.alone_cycles(way.hops) - port - law.served_cycles
    return Stored(port, way.most * law.paced_cycles, way.others * law.paced_cycles, written)


@lru_cache(1 << 10)
def _ways(laws: _Laws, groups: Groups, name: str) -> _Ways:
    """Of the tiles of each group that load slices of a kind; of no name of all."""
    edge, (rows, cols) = laws.edge, groups.size
    assert edge is not None  # or there were no channels
    hops, found, own = 0, Counter[int](), 0
    for at, down in enumerate(groups.down):
        tiles = _loading(groups, name, at)
        for across in groups.across:
            one = Counter[int]()
            for row, col in tiles:
                tile = down * rows + row, across * cols + col
                hops = max(hops, edge.hops(tile))
                one[edge.channel(tile)] += 1
            own = max(own, *one.values(), 0)
            found += one
    most = max(found.values(), default=0)
    return _Ways(hops, most, most - own)


def _loading(groups: Groups, name: str, number: int) -> list[tuple[int, int]]:
    """Places in a group of a row of groups."""
    if not name:
        return [*groups.places]
    if name == "q":
        return [*enumerate(groups.diagonals(name)[number])]
    return [(row, col) for col, row in enumerate(groups.diagonals(name)[0])]
