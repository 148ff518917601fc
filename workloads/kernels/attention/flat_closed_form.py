"""FlatAttention as a performance model: the timeline of a plan, or of many candidates at once."""

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import allocating, forget_stale
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import PARTS_OF_A_CYCLE
from workloads.kernels.attention.flat_costs import MASK_SERVED, Costs, Slices, costs_of
from workloads.kernels.attention.flat_laws import cut_costs, laws_of
from workloads.kernels.attention.flat_masks import MaskChannels, mask_loads
from workloads.kernels.attention.flat_memory import brought_blocks
from workloads.kernels.attention.flat_order import BLOCKS, Order
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.flat_timeline import timeline
from workloads.kernels.attention.flat_transfers import SCRATCH_SHAPE
from workloads.kernels.attention.flat_work import (
    Head,
    Streams,
    count_masks,
    loads_of,
    longest,
    streams_of,
    totals_of,
    work_of,
)
from workloads.kernels.attention.groups import differ
from workloads.kernels.attention.plan import held_blocks


def flat_attention_cycles(plan: FlatPlan, timing: NocTiming) -> int:
    """Cycles of a plan."""
    cut = np.array([*plan.cut, *plan.group])
    return int(cut_cycles(plan, cut[:, None], timing)[0])


def cut_cycles(problem: FlatPlan, cuts: NDArray[np.int64], timing: NocTiming) -> NDArray[np.int64]:
    """Cycles of plans of a problem, whose own cut and group do not matter.

    Args:
        problem: The problem.
        cuts: Of the plans, as `flat_cuts.causal_cuts` has them: its first six rows.
        timing: Of the network.

    Returns:
        Shape (plans,).
    """
    shape, head = problem.shape, problem.head
    depths, flags = (shape.qk_depth, shape.v_depth), (shape.latent, shape.causal)
    laws = laws_of(timing, problem.place, depths, flags, (problem.method, problem.operands))
    columns = zip(cuts[:6].T.tolist(), _lies(head, cuts).tolist(), strict=True)
    costs = np.concatenate([part for cut, lie in columns for part in cut_costs(laws, *cut, *lie)])
    channels = 0 if laws.edge is None or laws.edge.at_tiles else laws.edge.channels
    found: NDArray[np.int64] = _cycles(head, cuts, channels, costs.reshape(cuts.shape[1], -1))
    return found


@allocating
def _lies(head: Head, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the groups of plans lie.

    Returns:
        The first row of groups, groups of a row, blocks under way, and the group with the most to
        do with those that have as much, if it matters which they are; shape (plans, 5).
    """
    found = np.zeros((cuts.shape[1], 5), dtype=np.int64)
    for number in range(cuts.shape[1]):
        rows, keys, q_blocks, kv_blocks, down, across = cuts[:6, number]
        plan = streams_of(head, rows, keys, q_blocks, kv_blocks, down, across)
        found[number, 0], found[number, 1], found[number, 2] = plan.first, plan.beside, plan.depth
        if plan.causal and differ(down, across, head.sizes.rows // down - plan.first):
            totals = totals_of(plan)
            found[number, 3], found[number, 4] = totals.busiest, totals.alike
    return found


@allocating
def _cycles(
    head: Head, cuts: NDArray[np.int64], channels: int, costs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cycles of plans; costs as `flat_laws.cut_costs` has them."""
    found = np.empty(cuts.shape[1], dtype=np.int64)
    sizes = head.sizes
    for number in range(len(found)):
        rows, keys, q_blocks, kv_blocks, down, across = cuts[:6, number]
        plan = streams_of(head, rows, keys, q_blocks, kv_blocks, down, across)
        # As it lets streams of a head share what is brought, if all of them see all keys.
        loads = brought_blocks(q_blocks, kv_blocks, plan.streams, min(plan.states, plan.streams))
        held = held_blocks(sizes.shared, plan.depth, loads)
        own = costs[number]
        edge = MaskChannels(channels, sizes.cols, own[MASK_SERVED] / PARTS_OF_A_CYCLE)
        found[number] = _longest(plan, held, sizes.shared, edge, costs_of(own))
    return found


@allocating
def _longest(plan: Streams, held: int, shared: bool, edge: MaskChannels, costs: Costs) -> int:
    """Cycles of the groups of which one ends last."""
    work, number, masks, known = work_of(plan)
    every = longest(work, number, plan)
    if plan.causal:
        costs = _of_mean(costs, _part_of_loads(plan, work, number, every[0]))
    cycles, none = 0, np.zeros((1, 3), dtype=np.int64)
    for group in every:
        streams = number[group]
        states, own = min(plan.states, streams), work[group, :streams]
        first, loads = -1, none
        if plan.causal:
            counts = np.zeros(len(known), dtype=np.int64)
            first = count_masks(own, streams, plan, states, masks, counts)
            loads = mask_loads(plan, edge, work, number, masks, known, group)
        order = Order(
            streams, own[:, BLOCKS].sum(), loads_of(own, streams, plan.alike, states), plan.depth,
            states, held, plan.alike, plan.padded != 0, first,
            plan.causal != 0 and plan.down * plan.across > 1, shared,
        )  # fmt: skip
        scratch = np.zeros(SCRATCH_SHAPE, dtype=np.int64)
        cycles = max(cycles, timeline(scratch, own, masks, loads, order, costs))
    return cycles


@allocating
def _part_of_loads(  # type: ignore[no-untyped-def]  # arrays, of types that Numba finds
    plan: Streams, work, number, most: int
) -> float:
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
        costs.rows, costs.summed, costs.added, costs.again, costs.q,
        Slices(
            k.port, k.there, k.asked, int(np.rint(part * k.served)), int(np.rint(part * k.ahead)),
            k.tiles, k.nearer,
        ),
        Slices(
            v.port, v.there, v.asked, int(np.rint(part * v.served)), int(np.rint(part * v.ahead)),
            v.tiles, v.nearer,
        ),
        costs.mask, costs.unseen, costs.total, costs.o,
        costs.packets, costs.room, costs.turns,
    )  # fmt: skip


forget_stale(_lies, _cycles)
