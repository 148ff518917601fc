"""Attention as a performance model.

With one block under way its steps follow each other; with two, the busiest of a tile's engines
sets the pace, and what is left of the steps shows at the beginning and at the end. Channels of
off-chip memory count as their latency at the beginning, and in the pace as their bandwidth.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from tlm.interconnect.packets import TileSet
from tlm.interconnect.transfer_times import arrival_cycles, hold_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law, store_law
from workloads.kernels.attention.core import Core
from workloads.kernels.attention.flash_attention import FlashPlan
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


def flash_attention_cycles(plan: FlashPlan, timing: NocTiming) -> int:
    """Cycles of FlashAttention-2 (a block under way) and -3 (two).

    Either a tile's engines set the pace, or what brings the blocks: then the last one's product is
    what is left.
    """
    core, place = plan.core, plan.place
    passes = [place.vector.pass_cycles(core.block.rows, n) for n in (core.block.v_depth, 1)]
    if place.offchip is None:
        blocks, written = _blocks_at_hand(plan, timing, sum(passes)), sum(passes)
    else:
        blocks, written = _blocks_in_memory(plan, place.offchip, timing), passes[1]
    scores, output = core.scores_cycles, core.output_cycles
    softmax = _softmax_cycles(core, plan.kv_blocks)
    items = plan.streams * plan.kv_blocks
    if plan.depth == 1:
        # The next stream's loads stand behind the stores of this one.
        waits = blocks.turn or max(0.0, written - scores)
        worked = items * (scores + softmax + output) + (plan.streams - 1) * waits
        left = output
    else:
        # The matrix engine waits for the first softmax and for the last, the vector engine for the
        # first scores.
        last = softmax + core.mask_cycles * (1 - 1 / plan.kv_blocks)
        first = last - core.mask_cycles if plan.kv_blocks > 1 else last
        waits = max(0, first - scores) + max(0, last - output)
        waits += (plan.streams - 1) * max(0, last - scores - output)
        matrix = items * (scores + output) + waits
        vector = scores + items * softmax + (plan.streams - 1) * written + output
        worked = max(matrix, vector)
        left = max(output, scores + 2 * output - blocks.between)
    # A block is asked for when its buffer's last product has been made.
    again = max(blocks.keys + scores, blocks.values + output) / plan.depth
    asked = blocks.begin + items * again
    return round(max(blocks.begin + worked, asked, blocks.brought + left) + blocks.end)


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


@dataclass(frozen=True, slots=True)
class _OwnBlocks:
    """What the blocks of tiles cost that bring their own.

    Attributes:
        keys: Cycles from asking for a block of K to its arrival.
        values: The same of V.
        begin: Before the first product, of the tile that begins last.
        brought: Until the last block of the last tile is there, if no buffer is waited for.
        between: From the last block of K to that of V.
        turn: From a stream's last result to the next one's first product, one after the other; 0:
            nothing is in their way.
        end: From the last result to its being stored.
    """

    keys: int
    values: int
    begin: float
    brought: float
    between: int
    turn: float
    end: float


def _blocks_at_hand(plan: FlashPlan, timing: NocTiming, written: int) -> _OwnBlocks:
    """Blocks that a tile sends to itself."""
    q, k, v = (plan.flits(name) for name in "qkv")
    keys, values = (arrival_cycles(timing, 0, flits) for flits in (k, v))
    mask = plan.flits("mask") if plan.core.padded else 0
    return _OwnBlocks(
        keys=keys,
        values=values,
        begin=q + keys + (mask if plan.kv_blocks == 1 else 0),
        brought=plan.streams * (q + plan.kv_blocks * (k + v)) + mask + values - v,
        between=v,
        turn=0,
        end=written,
    )


def _blocks_in_memory(plan: FlashPlan, edge: Edge, timing: NocTiming) -> _OwnBlocks:
    """The tiles of a channel are served in turn, and so begin one after the other."""
    sharers, hops = _reach(edge, plan.tiles)
    q, k, v = (load_law(timing, edge, plan.flits(name)) for name in "qkv")
    stores = [store_law(timing, edge, plan.flits(name)) for name in ("total", "o")]
    stored = sum(law.paced_cycles for law in stores)
    keys, values = k.alone_cycles(hops), v.alone_cycles(hops)
    first = q.served_cycles + k.served_cycles
    loaded = q.served_cycles + plan.kv_blocks * (k.served_cycles + v.served_cycles)
    # The last stream's results go after all.
    mask = load_law(timing, edge, plan.flits("mask")).served_cycles if plan.core.padded else 0
    served = sharers * (plan.streams * loaded + (plan.streams - 1) * stored + mask)
    # The mask comes behind the first keys; a single block of keys waits for it.
    waited = sharers * mask if plan.kv_blocks == 1 else 0
    total = plan.place.vector.pass_cycles(plan.block.rows, 1)
    return _OwnBlocks(
        keys=keys,
        values=values,
        begin=keys + q.served_cycles + (sharers - 1) * first + waited,
        brought=served + values - v.served_cycles,
        between=v.served_cycles,
        turn=total + sum(law.sent_flits for law in stores) + q.served_cycles + keys,
        end=total + stores[-1].alone_cycles(hops) + (sharers - 1) * max(0, stored - first),
    )


@lru_cache(1 << 10)
def _reach(edge: Edge, tiles: TileSet) -> tuple[int, int]:
    """Most tiles of a channel, and most hops between a tile and its channel."""
    each = list(tiles)
    return max(Counter(map(edge.channel, each)).values()), max(map(edge.hops, each))


def _softmax_cycles(core: Core, kv_blocks: int) -> float:
    """Mean cycles of the passes over a block, of the last one's mask among them."""
    first, later = core.softmax_cycles(first=True), core.softmax_cycles(first=False)
    return (first + (kv_blocks - 1) * later + core.mask_cycles) / kv_blocks
