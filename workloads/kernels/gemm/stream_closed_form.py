"""The streaming product as a performance model: of one plan, or of many candidates at once.

The slowest of what a step needs sets the pace: the product, what a tile's interface and port take,
a channel that loads for its tiles and stores for them, or the way that a buffer takes from its
being free to its being full. Before it comes the way of the first blocks, behind it that of the
last block of C.
"""

from typing import Any, NamedTuple

import numpy as np

from tlm.interconnect.transfer_times import (
    arrival_cycles,
    credit_cycles,
    multicast_cycles_over,
    reduction_cycles_over,
)
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from workloads.kernels.gemm.stream_channels import (
    Channel,
    apart,
    behind_cycles,
    burst_cycles,
    channel_of,
    early_cycles,
    load_of,
    store_of,
)
from workloads.kernels.gemm.stream_columns import (
    column_cycles,
    drifted,
    met_before,
    stall_cycles,
    stored_cycles,
    turns_cycles,
)
from workloads.kernels.gemm.stream_lines import beside_own_blocks
from workloads.kernels.gemm.stream_meeting import met_flits
from workloads.kernels.gemm.stream_plan import StreamPlan
from workloads.kernels.gemm.stream_steps import (
    Candidates,
    CutFigures,
    Numbers,
    Operand,
    Steps,
    cut_figures,
    steps_of,
)
from workloads.kernels.parts.closed_form import reduce_cycles
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.machine.place import Place

_CROSSING = 0.4
"""Of a multicast's time, what trees across it lose where trees share links (measured at lt)."""


def stream_gemm_cycles(plan: StreamPlan, timing: NocTiming) -> int:
    """Cycles of a plan."""
    figures = CutFigures(*(np.array([each]) for each in cut_figures(plan.place, plan.cut)))
    blocks = (np.array([side]) for side in plan.block)
    return round(float(candidate_cycles(plan, Candidates(figures, *blocks), timing)[0]))


def candidate_cycles(
    problem: StreamPlan, which: Candidates, timing: NocTiming, rivals: Numbers | None = None
) -> Numbers:
    """Cycles of candidates of a problem, whose own cut and block do not matter.

    Args:
        problem: The problem.
        which: The candidates.
        timing: Of the network.
        rivals: Whose candidates they are: infinity stands for some that are not the fastest of
            theirs. None: each one's cycles are asked for.
    """
    place = problem.place
    steps = steps_of(problem, which, timing)
    ported = _ported_flits(place, steps)
    network = _network_cycles(steps, ported)
    channel = channel_of(place, steps)
    operands = _operands(place, timing, steps, network)
    summed = _sum_cycles(problem, timing, steps)
    left = _left_cycles(problem, timing, steps, summed)
    beside = np.maximum(_sender_flits(place, steps), _summing_cycles(problem, steps, left))
    pace = np.maximum(steps.product, network + beside)
    pace = np.maximum(pace, _interface_cycles(place, steps, left))
    if place.offchip is not None and place.offchip.fills_links:
        sums = np.where(steps.cut.k_rows > 1, _met_sums(problem, steps), 0)
        column = np.maximum(pace, column_cycles(steps, channel, sums / steps.count))
        pace = np.where(steps.a.shared & steps.b.shared, pace, column)
    begin = _begin_cycles(operands, ported)
    if place.offchip is None:
        begin = np.maximum(begin, _meeting_cycles(steps, operands, timing))
    # A step asks for the next one's blocks before it stores what is done, which at the edge some
    # tiles do ahead of others. What is summed first is stored a step later. Nothing waits for what
    # comes behind the last loads.
    later = (1 + _beside_tiles(place) + (summed > 0)) / steps.depth
    stored = channel.stores * np.maximum(0, steps.passes - 1 - later)
    loaded = (steps.count - 1) * channel.loads - channel.ahead + stored
    longest = (steps.count - 1) * pace
    port = (steps.count - 1) * _port_cycles(steps, ported) + _met_sums(problem, steps)
    longest = np.maximum(longest, port)
    for each in operands:
        longest = np.maximum(longest, _buffer_cycles(steps, each, pace, left))
    longest, stalls = np.maximum(longest + burst_cycles(steps, channel, pace), loaded), 0
    if place.offchip is not None and place.offchip.fills_links:
        stalls = stall_cycles(steps, channel, column, left, summed)
        longest = np.maximum(longest, turns_cycles(steps, column, stalls, summed))
    if place.offchip is None:
        late = _late_cycles(steps, operands) - begin
        longest = np.maximum(longest, late + (steps.count - 1) * steps.product)
    end = _end_cycles(place, steps, summed, channel, drifted(steps, stalls, summed))
    last = begin + longest + steps.product + end
    # Results leave when the first pass is over, and all of them go through a router's port.
    behind = channel.posted * np.minimum(steps.passes, 1 + 1 / steps.depth)
    stored = steps.depth * pace + channel.posted * steps.passes
    if place.offchip is not None and place.offchip.fills_links:
        # Behind what is summed the next step's blocks go first, but for passes of one step.
        first = summed + np.where((summed > 0) & (steps.depth > 1), network, 0)
        stored = np.maximum(stored, stored_cycles(steps, channel, column, left, first))
    cycles = np.maximum(last, begin + np.maximum(loaded + behind, stored))
    if place.offchip is not None:
        return cycles
    return beside_own_blocks(problem, steps, timing, cycles, rivals)


def _beside_tiles(place: Place) -> bool:
    """Whether each tile has a channel of its own."""
    return place.offchip is not None and place.offchip.at_tiles


def _ported_flits(place: Place, steps: Steps) -> tuple[Numbers, Numbers]:
    """Flits of blocks of A and of B that come through a tile's port."""
    if not _beside_tiles(place):
        return steps.a.flits, steps.b.flits
    a, b = (np.where(each.shared, each.flits, 0) for each in (steps.a, steps.b))
    return a, b


def _holds(steps: Steps, ported: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
    """For which blocks of A and of B leave a sender, or come to a tile alone."""
    (a, b), (a_flits, b_flits) = (steps.a, steps.b), ported
    return np.where(a.shared, a.hold, a_flits), np.where(b.shared, b.hold, b_flits)


def _port_cycles(steps: Steps, ported: tuple[Numbers, Numbers]) -> Numbers:
    """For which a step's blocks come through a tile's port."""
    (a_flits, b_flits), (a_hold, b_hold) = ported, _holds(steps, ported)
    # Packets of both take turns at a port, and only those of the longer one wait for each other.
    port: Numbers = 2 * np.minimum(a_flits, b_flits) + np.abs(a_hold - b_hold)
    return port


def _network_cycles(steps: Steps, ported: tuple[Numbers, Numbers]) -> Numbers:
    """Pace of a step's multicasts."""
    a, b, (a_hold, b_hold) = steps.a, steps.b, _holds(steps, ported)
    # Trees between each other's tiles share links, and wait at ports for those across.
    a_links, b_links = a.trees * a_hold, b.trees * b_hold
    crossed = np.maximum(a_links + _CROSSING * b_hold, b_links + _CROSSING * a_hold)
    between = (a.shared & (a.trees > 1)) | (b.shared & (b.trees > 1))
    sent = np.where(steps.cut.both, a_links + b_links, 0)
    links = np.maximum(np.where(between, crossed, 0), sent)
    return np.maximum(_port_cycles(steps, ported), links)


def _met_sums(problem: StreamPlan, steps: Steps) -> Numbers:
    """Flits of partial blocks that come through their root's port beside operands, of all passes.

    Those of the last one come alone.
    """
    if problem.method == "network":
        return 0
    length = np.maximum(steps.cut.k_rows, steps.cut.k_cols)
    messages = length - 1 if problem.method == "sequential" else np.ceil(np.log2(length))
    return (steps.passes - 1) * messages * steps.c_flits


def _sender_flits(place: Place, steps: Steps) -> Numbers:
    """Flits that come to a sender's port beside those of all: what it sends on."""
    if place.offchip is None or _beside_tiles(place):
        return 0
    a, b = (np.where(each.shared, each.flits, 0) for each in (steps.a, steps.b))
    return np.maximum(a, b)


def _summing_cycles(problem: StreamPlan, steps: Steps, left: Numbers) -> Numbers:
    """Of a step, for which tiles send nothing as they sum in the network.

    A sum waits until the last of its tiles has sent its operands, and those of the next step wait
    for the sum.
    """
    return left / steps.depth if problem.method == "network" else 0


def _interface_cycles(place: Place, steps: Steps, left: Numbers) -> Numbers:
    """For which a tile sends in a step."""
    memory, operands = place.offchip is not None, (steps.a, steps.b)
    # It asks for blocks, or sends its own ones to itself.
    asks = [
        load_of(each).sent_flits if memory else np.where(each.shared, 0, each.flits)
        for each in operands
    ]
    # One that sends both waits with its second block for those of trees across its first one.
    a, b = (
        np.where(steps.cut.both, each.trees, 1) * each.hold + np.where(each.shared, ask, 0)
        for each, ask in zip(operands, asks, strict=True)
    )
    sent = np.where(steps.cut.both, a + b, np.maximum(a, b))
    own = sum(
        np.where(each.shared, 0, ask)
        for each, ask in zip(operands, asks, strict=True)
        if not each.there
    )
    stored = store_of(steps).sent_flits if memory else 0
    return sent + own + (left + stored) / steps.depth


class _Way(NamedTuple):
    """How blocks of an operand come."""

    begin: Numbers  # when the first one is at the tile to which it comes last
    again: Numbers  # from the freeing of a buffer to the next block in it
    turn: Numbers  # from a sender's block to its next but one; 0: tiles have their own
    next: Numbers  # to its next one, where no further one follows
    held: Numbers  # the same where blocks of C leave at the same time
    behind: tuple[Numbers, bool]  # whether its buffers, and its loads, wait for partial blocks
    early: Numbers = 0  # of ``begin``, for which channels have loaded second blocks


def _operands(place: Place, timing: NocTiming, steps: Steps, network: Numbers) -> tuple[_Way, _Way]:
    """Ways of A and of B."""
    ways = []
    for each, other in ((steps.a, steps.b), (steps.b, steps.a)):
        if each.there:
            ways.append(_Way(0, 0, 0, 0, 0, (False, False)))
            continue
        between = np.where(each.shared, (each.trees - 1) * each.hold, 0)
        spread = multicast_cycles_over(timing, each.hops, each.flits) + between
        # Later ones share the network.
        hops = each.hops * timing.hop_cycles
        later = credit_cycles(timing, 0) + hops + np.maximum(
            spread, network + timing.launch_cycles + timing.ejection_cycles + hops
        )  # fmt: skip
        if place.offchip is None:
            own: Any = arrival_cycles(timing, 0, each.flits)
            # A tile sends itself its own block first.
            before = np.where(other.shared, 0, other.flits)
            come = np.where(each.shared, spread + before, own)
            again = np.where(each.shared, later, credit_cycles(timing, 0) + own)
            ways.append(_Way(come, again, 0, 0, 0, (True, True)))
            continue
        ways.append(_loaded(timing, place.offchip, steps, each, (spread, later, network)))
    return ways[0], ways[1]


def _loaded(
    timing: NocTiming,
    edge: Edge,
    steps: Steps,
    operand: Operand,
    cycles: tuple[Numbers, Numbers, Numbers],
) -> _Way:
    """The way of blocks from off-chip memory.

    Args:
        timing: Of the network.
        edge: That memory.
        steps: The steps.
        operand: Which one.
        cycles: Of the first multicast and of a later one, and those of a step's multicasts.
    """
    (spread, later, network), (a, b) = cycles, (steps.a, steps.b)
    law = load_of(operand)
    own, alone = law.served_cycles, law.alone_cycles(operand.way)
    a_served, b_served = (each.loads * load_of(each).served_cycles for each in (a, b))
    if edge.at_tiles:  # what others load counts only where it comes from the same channel
        others = apart(steps)
        a_served = np.where(others & (operand is b), 0, a_served)
        b_served = np.where(others & (operand is a), 0, b_served)
    # The order in which the first blocks are asked for.
    direct = b.shared & ~a.shared
    if operand is a:
        before = a_served + np.where(direct, b_served, 0)
    else:
        before = b_served + np.where(direct, 0, a_served * (1 + steps.ahead))
    queue = a_served + b_served - own
    # A sender has two buffers: it asks again when what was in one of them has left.
    turn, following = alone + queue + operand.hold, np.maximum(own + queue, network)
    held: Numbers = 0
    early: Numbers = 0
    if not edge.at_tiles:
        both, one = a.shared & b.shared, b.shared & ~a.shared
        first, second = behind_cycles(steps)[operand is b]
        if edge.fills_links:
            met = met_before(steps, timing, of_b=operand is b)
            second, spread = second + met[0], spread + met[1]
        early = np.where(both, second, 0)
        before = np.where(both, first + second, before)
        before = before + np.where(operand.shared, 0, early_cycles(steps))
        following = (alone + queue + network) / 2
        held = np.where(both, following, 0)
        # Blocks of A that go straight to their tiles come to the ports before those of B.
        straight = a_served + load_of(a).alone_cycles(a.way) - load_of(a).served_cycles + b.hold
        following = np.where(one, np.maximum(following, straight), following)
        turn = 2 * following
    return _Way(
        begin=alone + before - own + np.where(operand.shared, spread, 0),
        again=np.where(operand.shared, later, alone),
        turn=np.where(operand.shared, turn, 0),
        next=np.where(operand.shared, following, 0),
        held=held,
        # A channel at the tile loads while they are sent.
        behind=(operand.shared if edge.at_tiles else True, not edge.at_tiles),
        early=early,
    )


def _begin_cycles(operands: tuple[_Way, _Way], ported: tuple[Numbers, Numbers]) -> Numbers:
    """Until the first product; what comes to a tile shares its port."""
    (a_way, b_way), (a, b) = operands, ported
    first = np.minimum(a_way.begin - a, b_way.begin - b)
    return np.maximum(np.maximum(a_way.begin, b_way.begin), first + a + b)


def _late_cycles(steps: Steps, operands: tuple[_Way, _Way]) -> Numbers:
    """Until the first blocks have come behind second ones of nearer senders, if all go at once."""
    late = [
        way.begin + np.where(each.shared & (steps.count > 1), (each.trees - 2) * each.hold, 0)
        for each, way in zip((steps.a, steps.b), operands, strict=True)
    ]
    return np.maximum(*late)


def _meeting_cycles(steps: Steps, operands: tuple[_Way, _Way], timing: NocTiming) -> Numbers:
    """Until the first blocks have come if both are sent on, and all begin at once."""
    (a_way, b_way), (a, b) = operands, (steps.a, steps.b)
    if b.there:
        return 0
    first = np.minimum(a_way.begin - a.flits, b_way.begin - b.flits)
    return np.where(a.shared & b.shared, first + met_flits(steps, timing), 0)


def _buffer_cycles(steps: Steps, way: _Way, pace: Numbers, left: Numbers) -> Numbers:
    """From the first product to the last one, if an operand's buffers are waited for."""
    count, pairs, turned = steps.count - 1, (steps.count - 1) // 2, steps.passes - 1
    alone = steps.depth == 1
    # Partial blocks of C go before the next operands that their tiles send on.
    late = left + way.again - steps.product
    waits = np.where(alone | (left == 0), 0, turned * np.maximum(0, late))
    hidden = count * steps.product + waits
    held_up = left if way.behind[0] is True else left * way.behind[0]
    # Tiles of a channel are served one after the other, and ask so again.
    again = way.again + np.where(alone & (left > 0), held_up, 0)
    waited = pairs * (steps.product + again) + (count - 2 * pairs) * steps.product
    waited = waited + np.where(alone, 0, turned * left)
    held = np.where(steps.passes > 1, way.held, 0)
    slowed = (steps.depth - 1) * pace + (count - steps.depth + 1) * held
    turns = pairs * way.turn + (count - 2 * pairs) * way.next - way.early
    asked = np.maximum(turns, slowed)
    if way.behind[1]:
        asked = asked + np.where(asked > 0, turned * left, 0)
    return np.maximum.reduce([hidden, waited, asked])


def _end_cycles(
    place: Place, steps: Steps, summed: Numbers, channel: Channel, groups: Numbers
) -> Numbers:
    """From the last product to the last block of C in its place; they come in so many groups."""
    if place.offchip is None:
        return summed + np.where(summed > 0, steps.combine, 0)
    # Tiles that are served one after the other end one after the other.
    apart = [
        np.where(
            each.shared | (summed > 0),
            0,
            (each.loads - 1) * load_of(each).served_cycles,
        )
        for each in (steps.a, steps.b)
    ]
    stores = np.maximum(steps.cut.c_stores, 1)
    waits = channel.posted / groups - channel.posted / stores - np.maximum(*apart)
    law = store_of(steps)
    return summed + law.alone_cycles(steps.cut.c_way) + np.maximum(0, waits)


def _sum_cycles(problem: StreamPlan, timing: NocTiming, steps: Steps) -> Numbers:
    """Cycles until partial blocks are summed; 0 where K is not cut."""
    cut = steps.cut
    length = np.maximum(cut.k_rows, cut.k_cols)
    # Sums along rows end at a diagonal, those along columns in the middle.
    farthest = np.where(cut.k_cols > 1, length - 1, length // 2)
    if problem.method == "network":
        cycles = reduction_cycles_over(timing, farthest, steps.c_flits)
        return np.where(length > 1, cycles, 0)
    summed = np.zeros_like(steps.c_flits)
    for pair in {*zip(length.tolist(), farthest.tolist(), strict=True)}:
        if pair[0] > 1:
            same = (length == pair[0]) & (farthest == pair[1])
            summed[same] = reduce_cycles(
                Reduction(
                    Lines("row", range(1), pair[0]), pair[1], problem.method, "", "", "",
                    steps.c_flits[same], steps.combine[same],
                ),
                timing,
            )  # fmt: skip
    return summed


def _left_cycles(problem: StreamPlan, timing: NocTiming, steps: Steps, summed: Numbers) -> Numbers:
    """For how long partial blocks hold up what their tiles send next."""
    if problem.method != "network":
        # Some tiles have left half way, the root only at the end.
        return summed / 2
    one = np.ones_like(steps.c_flits)
    first = reduction_cycles_over(timing, one, one)
    return np.where(summed > 0, reduction_cycles_over(timing, one, steps.c_flits) - first + 1, 0)
