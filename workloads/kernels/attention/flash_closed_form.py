"""FlashAttention as a performance model: of one plan, or of many candidates at once.

With one block under way its steps follow each other; with two, the busiest of a tile's engines
sets the pace, or what brings the blocks: then the last one's product is what is left. What a run of
tiles has to do together comes after each stream.
"""

from typing import Any, NamedTuple

import numpy as np

from tlm.interconnect.transfer_times import (
    arrival_cycles,
    multicast_cycles_over,
    reduction_cycles_over,
)
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_times, store_law
from workloads.kernels.attention.flash_bounds import PASSES
from workloads.kernels.attention.flash_plan import Counts, FlashPlan
from workloads.kernels.attention.plan import Cut, flits
from workloads.kernels.parts.channels import Sharing, sharing
from workloads.kernels.parts.closed_form import all_reduce_cycles, reduce_cycles
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines

_JOINING_COLUMNS = 7
"""Passes over a column by which a stream's maxima and sums are made those of its run."""


def flash_attention_cycles(plan: FlashPlan, timing: NocTiming) -> int:
    """Cycles of a plan."""
    cut = Cut(*(np.array([[each]]) for each in plan.cut))
    return round(float(_cycles(plan, cut, plan.counted(cut), timing)[0, 0]))


def candidate_cycles(problem: FlashPlan, cut: Cut, number: Counts, timing: NocTiming) -> Any:
    """Cycles of cuts of a problem, whose own does not matter, and of what they come to.

    The columns of a cut are broadcast: rows along the last axis but one, keys and runs along the
    last. What depends on one of them is worked out once for each.
    """
    return _cycles(problem, cut, number, timing)


def _cycles(problem: FlashPlan, cut: Cut, number: Counts, timing: NocTiming) -> Any:
    place = problem.place
    work = _work(problem, cut, number)
    joined = _joined(problem, cut, timing)
    if place.offchip is None:
        blocks, shared = _blocks_at_hand(problem, cut, number, timing), _ALONE
        written, values = work.written, work.written - work.column
    else:
        blocks, shared = _blocks_in_memory(problem, cut, number, timing, place.offchip)
        written, values = work.column, 0 * work.column
    items, streams = number.streams * number.blocks, number.streams
    scores, output, softmax = work.scores, work.output, work.softmax
    # One block under way: the next stream's loads stand behind the stores of this one.
    waits = np.where(blocks.turn > 0, blocks.turn, np.maximum(0, values - scores))
    alone = items * (scores + softmax + output) + (streams - 1) * waits
    # A stream's last product goes on beside what the run does with its maxima.
    late = np.maximum(0, joined.maxima - output) + joined.rest
    # Two: the matrix engine waits for the first softmax and for the last, the vector engine for the
    # first scores.
    last = softmax + work.mask * (1 - number.masks / number.blocks)
    first = np.where(number.blocks > number.masks, last - work.mask, last)
    waits = np.maximum(np.where(items > 1, blocks.second, 0), first) - scores
    waits = np.maximum(0, waits) + np.maximum(0, last - output)
    between = np.where(cut.kv_blocks > 1, streams - 1, np.maximum(streams - 2, 0))
    waits = waits + between * np.maximum(0, last - scores - output)
    matrix = items * (scores + output) + waits
    vector = scores + items * softmax + np.maximum(streams - 2, 0) * written
    vector = vector + np.where(streams > 1, np.maximum(output, written), output)
    vector = vector + (streams - 1) * (joined.maxima + joined.rest)
    # The second item's keys may come late.
    vector = vector + np.where(items > 1, np.maximum(0, blocks.second - first), 0)
    one = number.depth == 1
    alone = alone + np.where(items > 1, np.maximum(0, blocks.second - scores - first - output), 0)
    worked = np.where(one, alone + (streams - 1) * late, np.maximum(matrix, vector))
    # A block is asked for when its buffer's last product has been made.
    if problem.shared:
        left = scores + last + output
        again = (blocks.keys + scores + softmax + output) / number.held
        # The scores of the next item come before the output of this one.
        beside = (blocks.keys + scores + output) / np.maximum(number.held - 1, 1)
        again = np.where(one, again, np.maximum(again, beside))
        asked = blocks.begin + items * again - blocks.keys
    else:
        # The last block of K comes before that of V.
        left = scores + np.maximum(last, output) + output - blocks.between
        left = np.where(one, output, np.maximum(output, left))
        # The first blocks are asked for at once; behind the last come what is left of its item.
        turns = np.maximum(np.floor((items - 1) / number.depth), 0)
        keyed = turns * (blocks.keys + scores) + scores + last + output
        valued = blocks.between + turns * (blocks.values + output) + output
        asked = blocks.begin + np.maximum(keyed, valued)
    # What brings the blocks waits, too, for the end of a stream before which it may not ask.
    brought = blocks.brought + left
    brought = brought + np.where(one, (streams - 1) * (output + late + blocks.idle), 0)
    worked = worked + np.maximum(0, blocks.masked - scores)
    paced = np.maximum(blocks.begin + worked, asked)
    queued = shared.queued(blocks.begin + scores, paced, brought)
    # Sums of rows are put where they belong beside the last product.
    end = blocks.end + queued + np.maximum(0, work.column - output) + values
    return np.maximum(paced, brought) + late + joined.end + end


class _Work(NamedTuple):
    """Cycles of a tile's engines."""

    scores: Any  # of an item
    output: Any
    softmax: Any  # the mean of an item's passes, those of the mask among them
    mask: Any  # for one that has a mask
    column: Any  # of a pass over one element a row
    written: Any  # of the passes that put a stream's results where they belong


def _work(problem: FlashPlan, cut: Cut, number: Counts) -> _Work:
    place, shape, vector = problem.place, problem.shape, problem.place.vector
    column = vector.pass_cycles_over(cut.rows, 1)
    scores = vector.pass_cycles_over(cut.rows, cut.keys)
    values = vector.pass_cycles_over(cut.rows, shape.v_depth)
    first = PASSES * scores + 3 * column
    later = PASSES * scores + 9 * column + values
    mask = np.where(number.padded, scores, 0)
    depth, v_depth = np.array([shape.qk_depth]), np.array([shape.v_depth])
    after = place.after_vector or place.matrix
    return _Work(
        scores=place.matrix.gemm_cycles_over(cut.rows, depth, cut.keys),
        output=after.gemm_cycles_over(cut.rows, cut.keys, v_depth),
        softmax=(first + (number.blocks - 1) * later + mask * number.masks) / number.blocks,
        mask=mask,
        column=column,
        written=column + values,
    )


class _Joined(NamedTuple):
    """Cycles by which a run's tiles put together what they found; 0 of tiles alone."""

    maxima: Any  # until the maxima of a stream are those of the run
    rest: Any  # of the passes over its output, and of the root's
    end: Any  # from the last of these to the result at the root


def _joined(problem: FlashPlan, cut: Cut, timing: NocTiming) -> _Joined:
    vector, together = problem.place.vector, cut.run > 1
    if not together.any():
        return _Joined(0, 0, 0)
    column = vector.pass_cycles_over(cut.rows, 1)
    wide = vector.pass_cycles_over(cut.rows, problem.shape.v_depth)
    total, output = (flits(problem, name, cut.rows, cut.keys) for name in ("total", "o"))
    added: Any = 0
    if problem.method == "network":
        farthest = np.maximum(cut.run // 2, 1)
        maxima = reduction_cycles_over(timing, farthest, total) + multicast_cycles_over(
            timing, farthest, total
        )
        reduced = reduction_cycles_over(timing, farthest, output)
    else:
        runs, which = np.unique(cut.run.ravel(), return_inverse=True)
        maxima, reduced = np.zeros((2, column.size, len(runs)))
        for place, run in enumerate(runs.tolist()):
            if run > 1:
                root = Lines("row", range(1), run), run // 2, problem.method, "", "", ""
                top = Reduction(*root, total.ravel(), column.ravel())
                maxima[:, place] = all_reduce_cycles(top, timing)
                out = Reduction(*root, output.ravel(), wide.ravel())
                reduced[:, place] = reduce_cycles(out, timing)
        maxima, reduced = maxima[:, which], reduced[:, which]
        # The root's engine adds what comes for all streams but the last.
        added = np.ceil(np.log2(cut.run)) * (column + wide)
    maxima = _JOINING_COLUMNS * column + maxima
    return _Joined(*(np.where(together, each, 0) for each in (maxima, wide + added, reduced)))


class _OwnBlocks(NamedTuple):
    """What its own blocks cost a tile; of several that share a channel the one that begins last."""

    keys: Any  # from asking for a block of K to its arrival
    values: Any  # the same of V
    begin: Any  # before the first product
    masked: Any  # from its keys to the mask, if a single block of keys waits for it
    brought: Any  # until the last block is there, if no buffer is waited for
    second: Any  # from the first keys to the next ones
    between: Any  # from the last block of K to that of V
    idle: Any  # from a stream's last result to the next one's first block on its way, beside work
    turn: Any  # from a stream's last result to the next one's first product, one after the other;
    # 0: nothing is in their way
    end: Any  # from the last result, if the vector engine has put it there, to its being stored


class _Channel(NamedTuple):
    """What tiles wait for that share a channel."""

    tiles: Any
    lag: Any  # what the last one begins later than the first one
    first: Any  # until the channel has served the first blocks of all; 0: there are no more
    last: Any  # for which it is busy with the last block of one of them
    pair: Any  # with a block of K and of V
    storing: Any  # tiles that store there
    stored: Any  # for which it is busy with the results of one of these

    def queued(self, begin: Any, paced: Any, brought: Any) -> Any:
        """What the last one's results wait for those of others.

        Tiles that end one after the other store one after the other, if that is as fast. The
        nearest ends as it began before the last one, or when its last block is there. What it asks
        for next waits behind the first blocks of all.

        Args:
            begin: Until the end of the last one's first product.
            paced: Until its last result, as its engines and buffers set the pace.
            brought: The same as the channel does.
        """
        most = np.maximum(0, self.lag - (self.tiles - 1) * self.pair)
        held_up = np.clip(self.first - (begin - self.lag), 0, most)
        soonest = paced - self.lag + held_up
        soonest = np.maximum(soonest, brought - (self.tiles - 1) * self.last)
        apart = (np.maximum(paced, brought) - soonest) / np.maximum(self.tiles - 1, 1)
        return (self.storing - 1) * np.maximum(0, self.stored - apart)


#: Each tile has its blocks at hand.
_ALONE = _Channel(tiles=1, lag=0, first=0, last=0, pair=0, storing=1, stored=0)


def _blocks_at_hand(problem: FlashPlan, cut: Cut, number: Counts, timing: NocTiming) -> _OwnBlocks:
    """Blocks that a tile sends to itself."""
    q, k, v, mask = (flits(problem, name, cut.rows, cut.keys) for name in ("q", "k", "v", "mask"))
    mask = np.where(number.padded, mask, 0)
    masks = mask * number.mask_loads
    keys: Any = arrival_cycles(timing, 0, k)
    values: Any = arrival_cycles(timing, 0, v)
    last = keys - k if problem.shared else values - v
    return _OwnBlocks(
        keys=keys,
        values=values,
        begin=q + keys,
        masked=np.where(number.padded & (number.blocks <= number.masks), v + mask, 0),
        brought=number.streams * (q + number.blocks * (k + v)) + masks + last,
        second=v + mask + k + np.where(number.second, q, 0),
        between=v,
        idle=np.zeros_like(q),
        # The next stream's blocks leave behind the outputs of a run.
        turn=np.where(cut.run > 1, q + keys, 0),
        end=np.zeros_like(q),
    )


_KEYS, _MASK, _NEXT_KEYS = 1, 3, 4
"""Places among the blocks that a tile asks for at first."""


class _Burst(NamedTuple):
    """What each tile of a channel asks for at first, a request a cycle."""

    tiles: Any
    sooner: list[Any]  # of these, those that ask so many requests sooner than the last, less one
    served: tuple[Any, ...]  # for which the channel is busy with each block

    @classmethod
    def of(cls, tiles: Sharing, hop_cycles: int, served: tuple[Any, ...]) -> "_Burst":
        """Of the tiles of a channel."""
        sooner = [tiles.sooner(later, hop_cycles) for later in range(1, len(served))]
        return cls(tiles.most, sooner, served)

    def until(self, place: int) -> Any:
        """For which the channel is busy until the last tile's block of a place is on its way."""
        total: Any = self.tiles * sum(self.served[:place]) + self.served[place]
        for cycles, sooner in zip(self.served[place:], self.sooner, strict=False):
            total = total + cycles * sooner
        return total


def _blocks_in_memory(
    problem: FlashPlan, cut: Cut, number: Counts, timing: NocTiming, edge: Edge
) -> tuple[_OwnBlocks, _Channel]:
    """The tiles of a channel are served in turn, and so begin one after the other.

    Each asks for all that it has room for. So the channel serves tiles that are nearer to it some
    of what they need later before the last one's first keys.
    """
    tiles = sharing(edge, number.rows, number.cols)
    hops, sharers = tiles.farthest, tiles.most
    q, k, v, mask = (
        load_times(timing, edge, flits(problem, name, cut.rows, cut.keys))
        for name in ("q", "k", "v", "mask")
    )
    total, output = (
        store_law(timing, edge, flits(problem, name, cut.rows, cut.keys)) for name in ("total", "o")
    )
    # Runs lie along rows: most results of a channel's tiles.
    storing = 1 if edge.at_tiles else number.rows * np.ceil(sharers / number.rows / cut.run)
    stored: Any = sum(np.maximum(law.served_cycles, law.sent_flits) for law in (total, output))
    keys, values = k.alone_cycles(hops), v.alone_cycles(hops)
    last = keys - k.served_cycles if problem.shared else values - v.served_cycles
    first = q.served_cycles + k.served_cycles
    loaded = q.served_cycles + number.carried * (k.served_cycles + v.served_cycles)
    own_mask = np.where(number.padded, mask.served_cycles, 0)
    # The last stream's results go after all.
    served = sharers * number.streams * loaded + storing * (number.streams - 1) * stored
    served = served + sharers * own_mask * number.mask_loads
    column = problem.place.vector.pass_cycles_over(cut.rows, 1)
    only = number.padded & (number.blocks <= number.masks)
    more = (number.depth > 1) & (number.streams * number.blocks > 1)
    again_k, again_v = (np.where(more, law.served_cycles, 0) for law in (k, v))
    first_blocks = (
        q.served_cycles, k.served_cycles, v.served_cycles, own_mask, again_k, again_v,
    )  # fmt: skip
    ahead, burst = _Burst.of(tiles, timing.hop_cycles, first_blocks), sum(first_blocks)
    keyed = ahead.until(_KEYS)
    lag = keyed - first
    later = v.served_cycles + k.served_cycles + own_mask
    second = np.where(more, ahead.until(_NEXT_KEYS) - keyed, later)
    # The tiles of runs ask for the next stream's blocks at the same time.
    beside = np.where(cut.run > 1, (sharers - 1) * first, 0)
    blocks = _OwnBlocks(
        keys=keys,
        values=values,
        begin=keys + q.served_cycles + lag,
        masked=np.where(only, ahead.until(_MASK) - keyed, 0),
        brought=served + last,
        second=second + np.where(number.second, q.served_cycles, 0),
        between=v.served_cycles,
        idle=column + keys - k.served_cycles,
        turn=column + total.sent_flits + output.sent_flits + q.served_cycles + keys + beside,
        end=output.alone_cycles(hops),
    )
    shared = _Channel(
        tiles=sharers,
        lag=lag,
        first=np.where(number.streams * number.blocks > number.depth, sharers * burst, 0),
        last=(k if problem.shared else v).served_cycles,
        pair=k.served_cycles + (0 if problem.shared else v.served_cycles),
        storing=storing,
        stored=stored,
    )
    return blocks, shared
