"""Attention as a performance model.

With one block under way its steps follow each other; with two, the busiest of a tile's engines
sets the pace, and what is left of the steps shows at the beginning and at the end.
"""

from tlm.engines.transfer_times import arrival_cycles, hold_cycles
from tlm.interconnect.zero_load import NocTiming
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
    softmax = _softmax_cycles(core, plan.kv_blocks) + collectives
    end = reduce_cycles(plan.output(0), timing)
    written = target.vector.pass_cycles(core.block.rows, core.block.v_depth)
    written += target.vector.pass_cycles(core.block.rows, 1)
    items = plan.streams * plan.kv_blocks
    products = core.scores_cycles + core.output_cycles
    if plan.depth == 1:
        step = load + products + softmax
        return round(items * step + plan.streams * flits["o"] + end - flits["o"] + written)
    sent = hold["q"] / plan.kv_blocks + hold["k"] + hold["v"] + flits["o"] / plan.kv_blocks
    pace = max(products, softmax + written / plan.kv_blocks, sent)
    return round(
        load
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
    load = target.rows * keys + arrival_cycles(timing, target.rows - 1, 0)
    softmax = _softmax_cycles(core, plan.kv_blocks)
    written = target.vector.pass_cycles(core.block.rows, core.block.v_depth)
    written += target.vector.pass_cycles(core.block.rows, 1)
    products = core.scores_cycles + core.output_cycles
    items = plan.streams * plan.kv_blocks
    sent = target.rows * (keys + values)
    alone = keys + arrival_cycles(timing, 1, 0) + products + softmax
    pace = max(
        alone if plan.depth == 1 else max(products, softmax), sent / 2 if plan.depth == 2 else sent
    )
    return round(load + products + softmax + (items - 1) * pace + plan.flits("q") + written)


def _softmax_cycles(core: Core, kv_blocks: int) -> float:
    """Mean cycles of the passes over a block."""
    first, later = core.softmax_cycles(first=True), core.softmax_cycles(first=False)
    return (first + (kv_blocks - 1) * later) / kv_blocks
