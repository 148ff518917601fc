"""FlatAttention as a performance model: what a plan's parts take, and their timeline."""

from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from tlm.interconnect.transfer_times import arrival_cycles, hold_cycles, multicast_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law, store_law
from workloads.kernels.attention.core import Core
from workloads.kernels.attention.flat_costs import Costs, Slices, Stored, Together
from workloads.kernels.attention.flat_masks import mask_loads, masks_of
from workloads.kernels.attention.flat_order import BLOCKS, MASK, WHOLE, Order
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.flat_timeline import SCRATCH_SHAPE, timeline
from workloads.kernels.attention.groups import Groups
from workloads.kernels.attention.items import blocks_brought
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.closed_form import (
    all_reduce_cycles,
    broadcast_cycles,
    reduce_cycles,
)


class _Ways(NamedTuple):
    """Between the tiles that load and their channels."""

    hops: int  # of the farthest
    most: int  # tiles of one channel
    others: int  # of these, those of other groups than the last one's


def flat_attention_cycles(plan: FlatPlan, timing: NocTiming) -> int:
    """Cycles of a plan."""
    costs = _costs(plan, timing)
    return max(_core_cycles(plan, core, timing, costs) for core in plan.longest)


def _core_cycles(plan: FlatPlan, core: Core, timing: NocTiming, costs: Costs) -> int:
    scratch = np.zeros(SCRATCH_SHAPE, dtype=np.int64)
    masked = core.masks or ((),) * core.streams
    work = np.empty((core.streams, 3), dtype=np.int64)
    work[:, BLOCKS] = core.blocks
    number = np.array([len(each) for each in masked])
    work[:, WHOLE] = work[:, BLOCKS] - number
    work[:, MASK] = number.cumsum() - number
    masks = np.array([*chain.from_iterable(masked)], dtype=np.int64)
    brought = masks_of(core) if plan.shape.causal else []
    order = Order(
        core.streams, sum(core.blocks), _loads(core), plan.depth, core.states, plan.held,
        plan.alike, plan.padded, brought[0] if brought else -1,
        bool(core.parts), plan.shared,
    )  # fmt: skip
    return int(timeline(scratch, work, masks, mask_loads(plan, core, timing), order, costs))


def _loads(core: Core) -> int:
    return blocks_brought(core.blocks, core.alike, core.states)


def _costs(plan: FlatPlan, timing: NocTiming) -> Costs:
    core, block, vector = plan.core, plan.block, plan.place.vector
    maximum, output, memory = (
        core.maximum[0],
        plan.outputs(plan.groups, 0)[0],
        plan.place.offchip is not None,
    )
    # The diagonal sends the result out as soon as it has come.
    gathered, port = reduce_cycles(maximum, timing), hold_cycles(timing, maximum.flits)
    if maximum.method in BY_MESSAGES:
        port = _messages(maximum.method, maximum.lines.length) * maximum.flits
    spread = all_reduce_cycles(maximum, timing) - gathered
    rows = Together(gathered, port, spread, sends=maximum.method == "network")
    # Of messages the root of a row sends none. One item after the other that is all that counts,
    # if the row's other tiles have no slices to send on.
    sends = output.method == "network" or plan.operands == "tree" or plan.depth > 1
    sends |= plan.group[1] > plan.group[0]
    return Costs(
        scores=core.scores_cycles,
        output=core.output_cycles,
        wide=vector.pass_cycles(block.rows, block.keys),
        column=vector.pass_cycles(block.rows, 1),
        deep=vector.pass_cycles(block.rows, block.v_depth),
        ask=timing.launch_cycles + 1 if memory else 0,
        sent=output.flits if sends else 0,
        rows=rows,
        summed=reduce_cycles(output, timing),
        added=output.method != "network",
        q=_slices(plan, "q", timing),
        k=_slices(plan, "k", timing),
        v=_slices(plan, "k" if plan.shared else "v", timing),
        mask=_slices(plan, "mask", timing),
        unseen=_own(plan, "unseen", timing) if core.parts else Slices(0, 0, 0, 0, 0),
        total=_stored(plan, "total", timing),
        o=_stored(plan, "o", timing),
    )


def _slices(plan: FlatPlan, name: str, timing: NocTiming) -> Slices:
    if name == "mask" and plan.shape.causal:
        return _own(plan, name, timing)
    flits, edge, length = plan.flits(name), plan.place.offchip, plan.groups.lines(name)[0].length
    if plan.operands in BY_MESSAGES:
        own = edge is None  # without memory a root sends a copy to itself
        roots = set(plan.groups.line_roots(name))
        port = (own + _messages(plan.operands, length)) * flits
        there = max(
            broadcast_cycles(timing, plan.operands, length, root, flits, own=own) for root in roots
        )
    else:
        port, there = (
            hold_cycles(timing, flits, multicast=length > 1),
            _spread(timing, length, flits),
        )
    if edge is None:
        return Slices(port, there, 0, 0, 0)
    law, way = load_law(timing, edge, flits), _ways(edge, plan.groups, name)
    served, asked = law.served_cycles, law.alone_cycles(way.hops) - law.served_cycles
    # Groups that have fewer blocks of keys ask for fewer.
    part = _part_of_loads(plan) if name != "q" else 1.0
    return Slices(
        port, there, asked, round(part * way.most * served), round(part * way.others * served)
    )


def _part_of_loads(plan: FlatPlan) -> float:
    """Blocks of keys that a group brings, the mean of all, over those of the one with the most."""
    if len(plan.cores) == 1:
        return 1.0
    number = [len(groups.down) * len(groups.across) for groups, _ in plan.cores]
    loads = np.average([_loads(core) for _, core in plan.cores], weights=number)
    return float(loads) / _loads(plan.core)


def _own(plan: FlatPlan, name: str, timing: NocTiming) -> Slices:
    """Of what every tile brings for itself."""
    flits, edge = plan.flits(name), plan.place.offchip
    if edge is None:
        return Slices(hold_cycles(timing, flits), arrival_cycles(timing, 0, flits), 0, 0, 0)
    law, way = load_law(timing, edge, flits), _ways(edge, plan.groups, "")
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


def _stored(plan: FlatPlan, name: str, timing: NocTiming) -> Stored:
    edge = plan.place.offchip
    if edge is None:
        return Stored(0, 0, 0, 0)
    law, way = store_law(timing, edge, plan.flits(name)), _ways(edge, plan.groups, "q")
    port = timing.launch_cycles + law.sent_flits
    written = law.alone_cycles(way.hops) - port - law.served_cycles
    return Stored(port, way.most * law.paced_cycles, way.others * law.paced_cycles, written)


@lru_cache(1 << 10)
def _ways(edge: Edge, groups: Groups, name: str) -> _Ways:
    """Of the tiles of each group that load slices of a kind; of no name of all."""
    rows, cols = groups.size
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
