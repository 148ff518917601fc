"""Attention as a performance model.

With one block under way its steps follow each other; with two, the busiest of a tile's engines
sets the pace, and what is left of the steps shows at the beginning and at the end. Channels of
off-chip memory count as their latency at the beginning, and in the pace as their bandwidth.
"""

from collections import Counter
from dataclasses import dataclass

from tlm.engines.transfer_times import arrival_cycles, hold_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law, store_law
from workloads.kernels.attention import Core
from workloads.kernels.closed_form_lines import all_reduce_cycles, reduce_cycles
from workloads.kernels.flash_attention import FlashPlan
from workloads.kernels.flat_attention import FlatPlan


def flat_attention_cycles(plan: FlatPlan, timing: NocTiming) -> int:
    """Cycles of FlatAttention."""
    core, target, flits = plan.core, plan.target, plan.flits
    hold = {name: hold_cycles(timing, flits[name], multicast=True) for name in "qkv"}
    reductions = [each for each in (core.maximum, core.total) if each is not None]
    collectives = sum(all_reduce_cycles(each, timing) for each in reductions)
    down = arrival_cycles(timing, target.rows - 1, flits["k"], multicast=target.rows > 1)
    load = hold["q"] / plan.kv_blocks + down
    memory = None if target.offchip is None else _flat_memory(plan, target.offchip, timing)
    softmax = _softmax_cycles(core, plan.kv_blocks) + collectives
    end = reduce_cycles(plan.output(0), timing)
    written: float = target.vector.pass_cycles(core.block.rows, core.block.v_depth)
    written += target.vector.pass_cycles(core.block.rows, 1)
    if memory is not None:
        written = memory.end
    items = plan.streams * plan.kv_blocks
    products = core.scores_cycles + core.output_cycles
    if plan.depth == 1:
        step = load + products + softmax + (memory.step if memory else 0)
        return round(items * step + plan.streams * flits["o"] + end - flits["o"] + written)
    sent = hold["q"] / plan.kv_blocks + hold["k"] + hold["v"] + flits["o"] / plan.kv_blocks
    passes = target.vector.pass_cycles(core.block.rows, 1) if memory else written
    pace = max(products, softmax + passes / plan.kv_blocks, sent, memory.pace if memory else 0)
    return round(
        load
        + (memory.begin if memory else 0)
        + core.scores_cycles
        + softmax
        + (items - 1) * pace
        + core.output_cycles
        + end
        + written
    )


def flash_attention_cycles(plan: FlashPlan, timing: NocTiming) -> int:
    """Cycles of FlashAttention-2 (a block under way) and -3 (two)."""
    core, target = plan.core, plan.target
    keys, values = plan.flits("k"), plan.flits("v")
    # The last tile of a column gets its copy after all others.
    load: float = target.rows * keys + arrival_cycles(timing, target.rows - 1, 0)
    softmax = _softmax_cycles(core, plan.kv_blocks)
    written: float = target.vector.pass_cycles(core.block.rows, core.block.v_depth)
    written += target.vector.pass_cycles(core.block.rows, 1)
    products = core.scores_cycles + core.output_cycles
    items = plan.streams * plan.kv_blocks
    sent = target.rows * (keys + values)
    alone = keys + arrival_cycles(timing, 1, 0) + products + softmax
    pace = max(
        alone if plan.depth == 1 else max(products, softmax), sent / 2 if plan.depth == 2 else sent
    )
    if target.offchip is not None:
        memory = _flash_memory(plan, target.offchip, timing)
        load, pace, written = load + memory.begin, max(pace, memory.pace), memory.end
    return round(load + products + softmax + (items - 1) * pace + plan.flits("q") + written)


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
    most = {
        name: max(Counter(edge.channel(col) for _, col in tiles).values())
        for name, tiles in roots.items()
    }
    q, k, v = loads["q"], loads["k"], loads["v"]
    stream = most["q"] * (q.served_cycles + sum(law.paced_cycles for law in stores.values()))
    item = most["k"] * (k.served_cycles + v.served_cycles)
    total = plan.target.vector.pass_cycles(plan.block.rows, 1)
    return _MemoryCycles(
        begin=q.alone_cycles(hops["q"]) + most["k"] * k.served_cycles,
        step=q.alone_cycles(hops["q"]) / plan.kv_blocks + k.alone_cycles(hops["k"]),
        pace=item + stream / plan.kv_blocks,
        end=total + stores["o"].alone_cycles(hops["q"]),
    )


def _flash_memory(plan: FlashPlan, edge: Edge, timing: NocTiming) -> _MemoryCycles:
    """Every tile has its own rows; a column's blocks of keys come to one tile after the other."""
    rows = plan.target.rows
    columns = max(Counter(map(edge.channel, range(plan.columns))).values())
    q, k, v = (load_law(timing, edge, plan.flits(name)) for name in "qkv")
    stores = [store_law(timing, edge, plan.flits(name)) for name in ("total", "o")]
    stored = sum(law.paced_cycles for law in stores)
    hops = edge.hops((0, 0))
    item = columns * (k.served_cycles + v.served_cycles)
    total = plan.target.vector.pass_cycles(plan.block.rows, 1)
    return _MemoryCycles(
        begin=k.alone_cycles(hops) + columns * rows * q.served_cycles,
        step=0,
        pace=item + columns * rows * (q.served_cycles + stored) / plan.kv_blocks,
        end=total + stores[-1].alone_cycles(hops) + columns * (rows - 1) * stored,
    )


def _softmax_cycles(core: Core, kv_blocks: int) -> float:
    """Mean cycles of the passes over a block."""
    first, later = core.softmax_cycles(first=True), core.softmax_cycles(first=False)
    return (first + (kv_blocks - 1) * later) / kv_blocks
