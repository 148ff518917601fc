"""Cycles of FlashAttention's cuts, compiled: one after the other, from what each of them has.

The mechanism is told by `workloads.kernels.attention.flash_closed_form`, which asks.
"""

from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import allocating, compiled, forget_stale
from workloads.kernels.attention.flash_joining import Beside, Joining, Joins, joins
from workloads.kernels.parts.channels import sooner

#: Passes over a block of scores.
PASSES = 6
#: Passes over a column by which a stream's maxima and sums are made those of its run.
_JOINING_COLUMNS = 7
#: Places among the blocks that a tile asks for at first.
_KEYS, _MASK, _NEXT_KEYS = 1, 3, 4


class Of(IntEnum):
    """What a cut has: rows of a table."""

    PROBLEM = 0  # the number of its problem
    FITS = auto()  # whether a tile has room for it
    KV_BLOCKS = auto()  # blocks of keys of a tile
    RUN = auto()  # tiles that share a stream's keys
    # As `flash_plan.Counts` has them.
    STREAMS = auto()
    DEPTH = auto()
    HELD = auto()
    SECOND = auto()
    LINES = auto()  # rows of the tiles in use
    PADDED = auto()
    BLOCKS = auto()
    MASKS = auto()
    MASK_LOADS = auto()
    CARRIED = auto()
    # Cycles of an item.
    SCORES = auto()
    OUTPUT = auto()
    WIDE = auto()  # of a pass over its scores
    COLUMN = auto()  # of one over an element a row
    DEEP = auto()  # of one over its output
    # For which a channel is busy with a block; of blocks at hand their flits.
    Q = auto()
    K = auto()
    V = auto()
    MASK = auto()
    KEYS = auto()  # from asking for a block of K to its arrival
    VALUES = auto()  # the same of V
    # Of blocks in memory.
    SHARERS = auto()  # tiles of a channel
    APART = auto()  # from the request of the nearest of them to that of the farthest
    SENT = auto()  # for which a tile sends a stream's results
    STORED = auto()  # for which the channel is busy with them
    WRITTEN = auto()  # from the last result to its being stored
    # Of runs.
    MAXIMA = auto()  # until maxima have come together and gone back
    REDUCED = auto()  # until the output has come together
    ADDED = auto()  # of what the root's engine adds
    SENT_OUTPUT = auto()  # for which a tile sends its output to others
    # Of those that join by messages what `flash_joining.Joining` has.
    MESSAGES = auto()
    ASIDE = auto()
    STAGES = auto()
    RISE = auto()
    SPREAD = auto()
    TOTAL = auto()
    TOTAL_WAY = auto()
    OUTPUT_WAY = auto()
    CREDIT = auto()
    ROOM = auto()


class Plans(NamedTuple):
    """What all cuts have in common.

    Attributes:
        shared: Whether values are taken from the blocks of keys.
        in_memory: Whether blocks lie in off-chip memory.
        at_tiles: Whether each tile has a channel of its own.
    """

    shared: bool
    in_memory: bool
    at_tiles: bool


class _Blocks(NamedTuple):
    """What its own blocks cost a tile; of several that share a channel the one that begins last."""

    begin: float  # before the first product
    masked: float  # from its keys to the mask, if a single block of keys waits for it
    brought: float  # until the last block is there, if no buffer is waited for
    second: float  # from the first keys to the next ones
    idle: float  # from a stream's last result to the next one's first block on its way, beside work
    turn: float  # from a stream's last result to the next one's first product, one after the other;
    # 0: nothing is in their way
    # What tiles wait for that share a channel.
    lag: float  # what the last one begins later than the first one
    first: float  # until the channel has served the first blocks of all; 0: there are no more
    last: float  # for which it is busy with the last block of one of them
    pair: float  # with a block of K and of V
    storing: float  # tiles that store there


@allocating
def cycles_of(table: NDArray[np.float64], plans: Plans) -> NDArray[np.float64]:
    """Cycles of cuts that fit and may be the fastest of their problem; infinite of others.

    The cut that takes least at least comes first: most others take more than that at least.

    Args:
        table: What they have; shape (len(Of), cuts).
        plans: What they have in common.

    Returns:
        Shape (cuts,).
    """
    cuts = table.shape[1]
    found, least = np.full(cuts, np.inf), np.full(cuts, np.inf)
    problems = 1 + int(table[Of.PROBLEM].max())
    first = np.full(problems, -1)
    for number in range(cuts):
        if table[Of.FITS, number] != 0:
            least[number] = _least(table[:, number], plans)
            problem = int(table[Of.PROBLEM, number])
            if first[problem] < 0 or least[number] < least[first[problem]]:
                first[problem] = number
    fastest = np.full(problems, np.inf)
    for problem in range(problems):
        if first[problem] >= 0:
            fastest[problem] = _cycles(table[:, first[problem]], plans)
    for number in range(cuts):
        problem = int(table[Of.PROBLEM, number])
        # Cycles are rounded after all.
        if least[number] <= fastest[problem] + 1 and table[Of.FITS, number] != 0:
            found[number] = _cycles(table[:, number], plans)
            fastest[problem] = min(fastest[problem], found[number])
    return found


@compiled
def _least(own: NDArray[np.float64], plans: Plans) -> float:
    """What a cut takes at least: its engines' work, or its channel's.

    Of blocks that take turns the busier engine counts, and of the passes those over scores.
    """
    matrix, passes = own[Of.SCORES] + own[Of.OUTPUT], PASSES * own[Of.WIDE]
    each = matrix + passes if own[Of.DEPTH] == 1 else max(matrix, passes)
    least: float = own[Of.STREAMS] * own[Of.BLOCKS] * each
    if plans.in_memory:
        loaded = own[Of.Q] + own[Of.CARRIED] * (own[Of.K] + own[Of.V])
        least = max(least, own[Of.SHARERS] * own[Of.STREAMS] * loaded)
    return least


@compiled
def _cycles(own: NDArray[np.float64], plans: Plans) -> float:
    """Of a cut."""
    blocks = _in_memory(own, plans) if plans.in_memory else _at_hand(own, plans.shared)
    streams, each, masks, held = own[Of.STREAMS], own[Of.BLOCKS], own[Of.MASKS], own[Of.HELD]
    scores, output, column, deep = own[Of.SCORES], own[Of.OUTPUT], own[Of.COLUMN], own[Of.DEEP]
    keys, values, one = own[Of.KEYS], own[Of.VALUES], own[Of.DEPTH] == 1
    # The mean of an item's passes, those of the mask among them.
    mask = own[Of.WIDE] if own[Of.PADDED] else 0.0
    first, later = PASSES * own[Of.WIDE] + 3 * column, PASSES * own[Of.WIDE] + 9 * column + deep
    softmax = (first + (each - 1) * later + mask * masks) / each
    # The passes that put a stream's results where they belong, and those behind its last product.
    written, behind = (column, 0.0) if plans.in_memory else (column + deep, deep)
    items = streams * each
    by_messages = own[Of.MESSAGES] > 0 and not plans.in_memory
    # One block under way: the next stream's loads stand behind the stores of this one.
    waits = blocks.turn if blocks.turn > 0 else max(0.0, behind - scores)
    alone = items * (scores + softmax + output) + (streams - 1) * waits
    # A run puts together what its tiles found.
    maxima = rest = reduced = 0.0
    together = Joins(0.0, 0.0, 0.0)
    if own[Of.RUN] > 1:
        maxima, reduced = _JOINING_COLUMNS * column + own[Of.MAXIMA], own[Of.REDUCED]
        rest = deep + own[Of.ADDED]
        if streams > 1:
            together = _joins(own, plans, softmax)
    # A stream's last product goes on beside that: of the very last one what is left behind the end
    # of the stream before. A stream without another that takes turns with it begins behind that.
    solo = streams % 2 == 1 and each > 1
    ending = output if solo else max(0.0, output - together.last)
    late = max(0.0, maxima - ending) + rest
    # Two: the matrix engine waits for the first softmax and for the last, the vector engine for the
    # first scores.
    last = softmax + mask * (1 - masks / each)
    first = last - mask if each > masks else last
    second = blocks.second if items > 1 else 0.0
    waits = max(0.0, max(second, first) - scores) + max(0.0, last - output)
    between = streams - 1 if own[Of.KV_BLOCKS] > 1 else max(streams - 2, 0.0)
    waits = waits + between * max(0.0, last - scores - output)
    matrix = items * (scores + output) + waits
    vector = scores + items * softmax + max(streams - 2, 0.0) * written
    vector = vector + (max(ending, written) if streams > 1 else output) + together.vector
    if items > 1:
        # The second item's keys may come late.
        vector = vector + max(0.0, blocks.second - first)
        alone = alone + max(0.0, blocks.second - scores - first - output)
    alone = alone + (together.vector if by_messages else (streams - 1) * late)
    worked = alone if one else max(matrix, vector)
    # A block is asked for when its buffer's last product has been made.
    if plans.shared:
        left = scores + last + output
        again = (keys + scores + softmax + output) / held
        if not one:
            # The scores of the next item come before the output of this one.
            again = max(again, (keys + scores + output) / max(held - 1, 1.0))
        asked = blocks.begin + items * again - keys
    else:
        # The last block of K comes before that of V.
        left = scores + max(last, output) + output - own[Of.V]
        left = output if one else max(output, left)
        # The first blocks are asked for at once; behind the last come what is left of its item.
        turns = max(np.floor((items - 1) / own[Of.DEPTH]), 0.0)
        keyed = turns * (keys + scores) + scores + last + output
        valued = own[Of.V] + turns * (values + output) + output
        asked = blocks.begin + max(keyed, valued)
    if together.last > 0:
        left = left - output + ending
        # The last passes come behind the end of an earlier stream.
        if streams > 2 and (solo or each == 1):
            left = max(left, last + ending)
    # What brings the blocks waits, too, for the end of a stream before which it may not ask.
    brought = blocks.brought + left
    if one and not by_messages:
        brought = brought + (streams - 1) * (output + late + blocks.idle)
    elif not plans.in_memory:
        brought = brought + together.transfer
        if together.last > 0:
            # Between two ends the engines may set the pace, but for the first block of each stream.
            slower = max(scores + output, softmax) - own[Of.K] - own[Of.V]
            brought = brought + streams * (each - 1) * max(0.0, slower)
    worked = worked + max(0.0, blocks.masked - scores)
    paced = max(blocks.begin + worked, asked)
    queued = _queued(own, blocks, blocks.begin + scores, paced, brought)
    # Sums of rows are put where they belong beside the last product.
    end = own[Of.WRITTEN] + queued + max(0.0, column - output) + behind
    cycles: float = max(paced, brought) + late + reduced + end
    return cycles


@compiled
def _joins(own: NDArray[np.float64], plans: Plans, softmax: float) -> Joins:
    """What a run puts together between its streams."""
    ends, column, deep = own[Of.STREAMS] - 1, own[Of.COLUMN], own[Of.DEEP]
    maxima = _JOINING_COLUMNS * column + own[Of.MAXIMA]
    if plans.in_memory or own[Of.MESSAGES] == 0:
        # The root waits for an output that it takes from the network.
        each = maxima + deep + own[Of.ADDED] + (0.0 if plans.in_memory else own[Of.REDUCED])
        left = maxima + deep + own[Of.SENT_OUTPUT]
        unseen = plans.in_memory or own[Of.DEPTH] == 1
        return Joins(ends * left, ends * each, 0.0 if unseen else left)
    of = Joining(
        own[Of.MESSAGES], own[Of.ASIDE], own[Of.STAGES], own[Of.RISE], own[Of.SPREAD],
        own[Of.TOTAL], own[Of.SENT_OUTPUT], own[Of.TOTAL_WAY], own[Of.OUTPUT_WAY],
        own[Of.CREDIT], own[Of.ROOM], column, deep,
    )  # fmt: skip
    q, k, v = own[Of.Q], own[Of.K], own[Of.V]
    return joins(of, Beside(
        own[Of.STREAMS], own[Of.DEPTH], own[Of.BLOCKS], own[Of.SCORES], softmax, own[Of.OUTPUT],
        q, k, v, own[Of.KEYS] - k,
    ))  # fmt: skip


@compiled
def _queued(
    own: NDArray[np.float64], blocks: _Blocks, begin: float, paced: float, brought: float
) -> float:
    """What the last one's results wait for those of others.

    Tiles that end one after the other store one after the other, if that is as fast. The
    nearest ends as it began before the last one, or when its last block is there. What it asks
    for next waits behind the first blocks of all.

    Args:
        own: What the cut has.
        blocks: What its blocks cost.
        begin: Until the end of the last one's first product.
        paced: Until its last result, as its engines and buffers set the pace.
        brought: The same as the channel does.
    """
    others, lag = own[Of.SHARERS] - 1, blocks.lag
    most = max(0.0, lag - others * blocks.pair)
    held_up = min(max(blocks.first - (begin - lag), 0.0), most)
    soonest = max(paced - lag + held_up, brought - others * blocks.last)
    apart = (max(paced, brought) - soonest) / max(others, 1.0)
    waits: float = (blocks.storing - 1) * max(0.0, own[Of.STORED] - apart)
    return waits


@compiled
def _at_hand(own: NDArray[np.float64], shared: bool) -> _Blocks:
    """Blocks that a tile sends to itself."""
    q, k, v, streams = own[Of.Q], own[Of.K], own[Of.V], own[Of.STREAMS]
    mask = own[Of.MASK] if own[Of.PADDED] else 0.0
    last = own[Of.KEYS] - k if shared else own[Of.VALUES] - v
    waits = own[Of.PADDED] != 0 and own[Of.BLOCKS] <= own[Of.MASKS]
    brought = streams * (q + own[Of.BLOCKS] * (k + v)) + mask * own[Of.MASK_LOADS] + last
    return _Blocks(
        begin=q + own[Of.KEYS],
        masked=v + mask if waits else 0.0,
        brought=brought,
        second=v + mask + k + (q if own[Of.SECOND] else 0.0),
        idle=0.0,
        # The next stream's blocks leave behind the outputs of a run.
        turn=q + own[Of.KEYS] if own[Of.RUN] > 1 else 0.0,
        lag=0.0,
        first=0.0,
        last=0.0,
        pair=0.0,
        storing=1.0,
    )


@compiled
def _in_memory(own: NDArray[np.float64], plans: Plans) -> _Blocks:
    """The tiles of a channel are served in turn, and so begin one after the other.

    Each asks for all that it has room for. So the channel serves tiles that are nearer to it some
    of what they need later before the last one's first keys.
    """
    q, k, v, streams, sharers = own[Of.Q], own[Of.K], own[Of.V], own[Of.STREAMS], own[Of.SHARERS]
    each, masks, depth, lines = own[Of.BLOCKS], own[Of.MASKS], own[Of.DEPTH], own[Of.LINES]
    keys, values, column = own[Of.KEYS], own[Of.VALUES], own[Of.COLUMN]
    # Runs lie along rows: most results of a channel's tiles.
    storing = 1.0
    if not plans.at_tiles:
        storing = lines * np.ceil(sharers / lines / own[Of.RUN])
    first = q + k
    mask = own[Of.MASK] if own[Of.PADDED] else 0.0
    # The last stream's results go after all.
    loaded = q + own[Of.CARRIED] * (k + v)
    served = sharers * streams * loaded + storing * (streams - 1) * own[Of.STORED]
    served = served + sharers * mask * own[Of.MASK_LOADS]
    more, waits = depth > 1 and streams * each > 1, own[Of.PADDED] != 0 and each <= masks
    again_k, again_v = (k, v) if more else (0.0, 0.0)
    burst = (q, k, v, mask, again_k, again_v)
    keyed = _until(burst, _KEYS, sharers, own[Of.APART])
    lag = keyed - first
    second = v + k + mask
    if more:
        second = _until(burst, _NEXT_KEYS, sharers, own[Of.APART]) - keyed
    # The tiles of runs ask for the next stream's blocks at the same time.
    beside = (sharers - 1) * first if own[Of.RUN] > 1 else 0.0
    return _Blocks(
        begin=keys + q + lag,
        masked=_until(burst, _MASK, sharers, own[Of.APART]) - keyed if waits else 0.0,
        brought=served + (keys - k if plans.shared else values - v),
        second=second + (q if own[Of.SECOND] else 0.0),
        idle=column + keys - k,
        turn=column + own[Of.SENT] + q + keys + beside,
        lag=lag,
        first=sharers * (q + k + v + mask + again_k + again_v) if streams * each > depth else 0.0,
        last=k if plans.shared else v,
        pair=k + (0.0 if plans.shared else v),
        storing=storing,
    )


@compiled
def _until(
    burst: tuple[float, float, float, float, float, float], place: int, sharers: float, apart: float
) -> float:
    """For which the channel is busy until the last tile's block of a place is on its way.

    Each tile asks for a burst at first, a request a cycle. Before that block come those that
    other tiles ask for sooner.

    Args:
        burst: For which the channel is busy with each block.
        place: Of the block in the burst.
        sharers: Tiles of the channel.
        apart: From the request of the nearest of them to that of the farthest.
    """
    before = 0.0
    for number in range(place):
        before += burst[number]
    total = sharers * before + burst[place]
    for number in range(place, len(burst)):
        later = number - place + 1
        if later < len(burst):
            total += burst[number] * sooner(sharers, apart, later)
    return total


forget_stale(cycles_of)
