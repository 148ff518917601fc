"""FlatAttention as a performance model.

With one block under way its steps follow each other; with two, the busiest of a tile's engines
sets the pace, and what is left of the steps shows at the beginning and at the end. Channels of
off-chip memory count as their latency at the beginning, and in the pace as their bandwidth.
"""

from collections import Counter
from dataclasses import dataclass

from tlm.interconnect.transfer_times import arrival_cycles, hold_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law, store_law
from workloads.kernels.attention.core import Core
from workloads.kernels.attention.flat_attention import FlatPlan
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.closed_form import (
    all_reduce_cycles,
    broadcast_cycles,
    reduce_cycles,
)
from workloads.kernels.vector.softmax import diagonal


def flat_attention_cycles(plan: FlatPlan, timing: NocTiming) -> int:
    """Cycles of FlatAttention."""
    core, place, flits = plan.core, plan.place, plan.flits
    hold = {name: _hold_cycles(plan, name, timing) for name in "qkv"}
    reductions = [each for each in (core.maximum, core.total) if each is not None]
    collectives = sum(all_reduce_cycles(each, timing) for each in reductions)
    down = _down_cycles(plan, timing)
    load = hold["q"] / plan.kv_blocks + down
    masked = _flat_mask_cycles(plan, timing) if core.padded else 0
    memory = None if place.offchip is None else _flat_memory(plan, place.offchip, timing)
    softmax = _softmax_cycles(core, plan.kv_blocks) + collectives
    end = reduce_cycles(plan.output(0), timing)
    written: float = place.vector.pass_cycles(core.block.rows, core.block.v_depth)
    written += place.vector.pass_cycles(core.block.rows, 1)
    if memory is not None:
        written = memory.end
    items = plan.streams * plan.kv_blocks
    products = core.scores_cycles + core.output_cycles
    if plan.depth == 1:
        step = load + products + softmax + (memory.step if memory else 0)
        outputs = (plan.streams - 1) * flits["o"]
        return round(masked + items * step + outputs + end + written)
    sent = hold["q"] / plan.kv_blocks + hold["k"] + hold["v"] + flits["o"] / plan.kv_blocks
    passes = place.vector.pass_cycles(core.block.rows, 1) if memory else written
    pace = max(products, softmax + passes / plan.kv_blocks, sent, memory.pace if memory else 0)
    # The mask is on its way while the first blocks are worked on, but for the only one.
    masked = masked if plan.kv_blocks == 1 else 0
    return round(
        load
        + masked
        + (memory.begin if memory else 0)
        + core.scores_cycles
        + softmax
        + (items - 1) * pace
        + core.output_cycles
        + end
        + written
    )


def _down_cycles(plan: FlatPlan, timing: NocTiming) -> int:
    """From sending a slice of K to its arrival at the whole column."""
    rows, flits = plan.place.rows, plan.flits["k"]
    if plan.operands not in BY_MESSAGES:
        return arrival_cycles(timing, rows - 1, flits, multicast=rows > 1)
    roots = set(diagonal(plan.place.cols, rows))
    return max(broadcast_cycles(timing, plan.operands, rows, root, flits) for root in roots)


def _hold_cycles(plan: FlatPlan, name: str, timing: NocTiming) -> int:
    """For which a slice keeps the busiest tile's port."""
    flits, length = plan.flits[name], plan.place.cols if name == "q" else plan.place.rows
    if plan.operands not in BY_MESSAGES:
        return hold_cycles(timing, flits, multicast=True)
    messages = length if plan.operands == "sequential" else 1 + (length - 1).bit_length()
    return messages * flits


def _flat_mask_cycles(plan: FlatPlan, timing: NocTiming) -> float:
    """Cycles in which the mask comes to all tiles, beside those in which a block of V comes."""
    edge, flits = plan.place.offchip, plan.flits["mask"]
    hold = _hold_cycles(plan, "mask", timing)
    if edge is None:
        return hold
    tiles = [(each.rows[0], each.cols[0]) for each in plan.roots("mask")]
    most = max(Counter(map(edge.channel, tiles)).values())
    served = most * load_law(timing, edge, flits).served_cycles
    if plan.depth > 1:
        return max(hold, served)
    return hold + load_law(timing, edge, flits).alone_cycles(max(map(edge.hops, tiles)))


@dataclass(frozen=True, slots=True)
class _MemoryCycles:
    """What off-chip memory adds.

    Attributes:
        begin: Before the first item.
        step: Of every item, where one follows the other.
        pace: For which the busiest channel serves an item.
        end: From the last result to its being stored.
    """

    begin: float
    step: float
    pace: float
    end: float


def _flat_memory(plan: FlatPlan, edge: Edge, timing: NocTiming) -> _MemoryCycles:
    """Slices come to the diagonal, results leave from there."""
    loads = {name: load_law(timing, edge, plan.flits[name]) for name in "qkv"}
    stores = {name: store_law(timing, edge, plan.flits[name]) for name in ("total", "o")}
    roots = {name: [(each.rows[0], each.cols[0]) for each in plan.roots(name)] for name in "qk"}
    hops = {name: max(map(edge.hops, tiles)) for name, tiles in roots.items()}
    most = {name: max(Counter(map(edge.channel, tiles)).values()) for name, tiles in roots.items()}
    q, k, v = loads["q"], loads["k"], loads["v"]
    stream = most["q"] * (q.served_cycles + sum(law.paced_cycles for law in stores.values()))
    item = most["k"] * (k.served_cycles + v.served_cycles)
    total = plan.place.vector.pass_cycles(plan.block.rows, 1)
    return _MemoryCycles(
        begin=q.alone_cycles(hops["q"]) + most["k"] * k.served_cycles,
        step=q.alone_cycles(hops["q"]) / plan.kv_blocks + k.alone_cycles(hops["k"]),
        pace=item + stream / plan.kv_blocks,
        end=total + stores["o"].alone_cycles(hops["q"]),
    )


def _softmax_cycles(core: Core, kv_blocks: int) -> float:
    """Mean cycles of the passes over a block, of the last one's mask among them."""
    first, later = core.softmax_cycles(first=True), core.softmax_cycles(first=False)
    return (first + (kv_blocks - 1) * later + core.mask_cycles) / kv_blocks
