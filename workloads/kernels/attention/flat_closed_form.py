"""FlatAttention as a performance model: of one plan, or of many candidates at once.

With one block under way its steps follow each other; with two, the busiest of a tile's engines
sets the pace, and what is left of the steps shows at the beginning and at the end. Channels of
off-chip memory count as their latency at the beginning, and in the pace as their bandwidth.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.transfer_times import (
    arrival_cycles,
    hold_cycles_over,
    multicast_cycles_over,
)
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import OffChipLaw, load_law, store_law
from tlm.program.operations import Tile
from workloads.kernels.attention.flat_attention import FlatPlan
from workloads.kernels.attention.plan import Cut, flits
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.closed_form import (
    all_reduce_cycles,
    broadcast_cycles,
    reduce_cycles,
)
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.kernels.vector.softmax import diagonal


def flat_attention_cycles(plan: FlatPlan, timing: NocTiming) -> int:
    """Cycles of a plan."""
    cut = Cut(*(np.array([each]) for each in plan.cut))
    return round(float(flat_candidate_cycles(plan, cut, timing)[0]))


def flat_candidate_cycles(problem: FlatPlan, cut: Cut, timing: NocTiming) -> Any:
    """Cycles of cuts of a problem, whose own does not matter."""
    place, kv_blocks = problem.place, cut.kv_blocks
    sent, streams = _Sent(problem, cut, timing), problem.shape.heads * cut.q_blocks
    items = streams * kv_blocks
    padded = cut.keys * kv_blocks * place.cols > cut.length
    one = np.minimum(cut.turns, items) == 1
    work = _work(problem, cut, padded, timing)
    memory = _NONE if place.offchip is None else _memory(problem, cut, place.offchip, timing)
    end = work.written if place.offchip is None else memory.end
    q, k, v = sent.hold("q"), sent.hold("k"), sent.hold("v")
    masked = np.where(padded, sent.mask(one), 0)
    load = q + sent.down + memory.begin
    waited = np.where(kv_blocks == 1, q + k + masked + memory.begin, 0)
    first = np.maximum(load + work.scores, waited)
    # One block under way.
    ported = q + k + masked + v + memory.begin
    step = q / kv_blocks + sent.down + work.scores + work.output + work.softmax + memory.step
    alone = np.maximum(first, ported - work.front) + work.first + work.output
    alone = alone + (items - 1) * step + (streams - 1) * sent.flits("o")
    # Two. A tile of the diagonal sends the second keys before what its row brings together.
    values = memory.keys.then(0, masked + v)
    second = memory.values.then(np.where(kv_blocks == 1, q, 0), k)
    second = q + k + memory.begin + values + second
    second = np.maximum(second, memory.second + np.where(padded, memory.mask, 0) + k)
    softmax = np.maximum(first, second - work.front) + work.first
    begun = np.maximum(load + work.scores, second - k + sent.down) + work.scores
    engines = _engines(work, items, streams, softmax, np.maximum(softmax, begun))
    moves = _moves(sent, work, memory, items, load + work.scores, softmax)
    # The busiest channel's last block, and what it is for.
    loaded = memory.first + items * memory.pace + np.where(padded, memory.mask, 0)
    last = sent.down + work.scores + work.softmax if problem.shared else v
    cycles = np.where(one, alone, np.maximum(engines, moves))
    return np.maximum(cycles, loaded + last + work.output) + work.reduced + end


def _engines(work: "_Work", items: Any, streams: Any, softmax: Any, begun: Any) -> Any:
    """Until the last product, as a tile's engines allow.

    Args:
        work: What they do.
        items: Blocks of keys for streams.
        streams: Their streams.
        softmax: When the first item's passes end.
        begun: When its second product begins.
    """
    scores, output, passes = work.scores, work.output, work.passes
    matrix = begun + items * output + (items - 2) * scores + np.maximum(0, work.softmax - output)
    vector = softmax + (items - 1) * work.softmax
    vector = vector + np.maximum(streams - 2, 0) * (passes - np.maximum(0, work.ahead))
    vector = vector + np.where(streams > 1, np.maximum(output, passes), output)
    return np.maximum(matrix, vector)


def _moves(
    sent: "_Sent", work: "_Work", memory: "_Memory", items: Any, scored: Any, softmax: Any
) -> Any:
    """Until the last product, as a tile of the diagonal sends and loads; else as `_engines`.

    ``scored`` is when the first scores are there.
    """
    kv_blocks = sent.cut.kv_blocks
    q, k, v, o = sent.hold("q"), sent.hold("k"), sent.hold("v"), sent.flits("o")
    # A row's sums, the next values, an output, and the next keys but one follow each other.
    keys = _keys_turn(memory, sent, work) / kv_blocks
    keys = keys + memory.values.then(0, k) * (1 - 1 / kv_blocks)
    turns = softmax + (items - 1) * (work.summed + memory.ask + v) + (items - 2) * keys
    # The keys of an item leave after the sums of the last but one.
    port = (q + o) / kv_blocks + v
    loop = (work.softmax + port + sent.down + work.scores) / 2
    turns = np.maximum(turns, softmax + (items - 2) * loop)
    pace = np.maximum(np.maximum(port + k, memory.pace), memory.again + k)
    return np.maximum(turns, scored + work.softmax + (items - 1) * pace) + work.output


def _keys_turn(memory: "_Memory", sent: "_Sent", work: "_Work") -> Any:
    """Cycles from sending values to having sent keys, a stream's output and rows of Q between.

    Then maxima may wait, too.
    """
    place, ask, o, tile = sent.problem.place, memory.ask, sent.flits("o"), memory.tile
    (q, own_q), (k, own_k) = ((sent.hold(name), sent.copy(name)) for name in "qk")
    come = np.maximum(work.reduced, tile.values.then(ask + work.come - o, o))
    come = np.maximum(come, memory.total - sent.hold("v"))
    # Rows of Q wait for what is asked for when an output is stored, and for values.
    queries = come + tile.output.then(memory.stored, q, own_q)
    queries = np.maximum(queries, tile.values.then(come + memory.stored, q, own_q))
    turn = queries + tile.queries.then(ask, k, own_k)
    if place.cols > place.rows:
        # Of two tiles in a row that send keys one has no output, and asks for its next ones before.
        begun = np.where(ask + o + own_k <= queries - q, ask + o, queries)
        since = turn + work.late - begun - k
        turn = turn + tile.keys.then(since, 0) - since
    return np.atleast_2d(turn).max(axis=0)


class _Work(NamedTuple):
    """Cycles of a tile's engines, and of what tiles do together."""

    scores: Any  # of an item
    output: Any
    front: Any  # of the passes before the first item's maxima come together
    late: Any  # of an all-reduction of its maxima at a tile whose own are the last
    summed: Any  # the mean from an item's maxima to its sums, of all tiles of a row
    first: Any  # of the first item's passes and reductions
    softmax: Any  # the mean of an item's, those of the mask among them
    column: Any  # of a pass over one element a row
    written: Any  # of the passes that put a stream's results where they belong
    reduced: Any  # of a stream's output to the diagonal
    passes: Any  # with which the vector engine ends a stream beside another
    ahead: Any  # of the maxima of others, at a tile that puts a result where it belongs
    come: Any  # of it at a tile of the diagonal, at least


def _work(problem: FlatPlan, cut: Cut, padded: Any, timing: NocTiming) -> _Work:
    place, shape, vector = problem.place, problem.shape, problem.place.vector
    column = vector.pass_cycles_over(cut.rows, 1)
    scores = vector.pass_cycles_over(cut.rows, cut.keys)
    values = vector.pass_cycles_over(cut.rows, shape.v_depth)
    first, later = 6 * scores + 3 * column, 6 * scores + 9 * column + values
    mask = np.where(padded, scores, 0)
    lines, roots = Lines("row", range(place.rows), place.cols), diagonal(place.rows, place.cols)

    def reduction(name: str, combine_cycles: Any) -> Reduction:
        length = flits(problem, name, cut.rows, cut.keys)
        method, names = problem.method, ("", "", "")
        return Reduction(lines, tuple(roots), method, *names, length, combine_cycles)

    collectives = 2 * all_reduce_cycles(reduction("total", column), timing)
    late = _late_cycles(reduction("total", column), timing)
    output = reduction("o", values)
    come = arrival_cycles(timing, 0, output.flits)
    reduced = reduce_cycles(output, timing)
    if problem.method != "network":
        # The first messages come beside the passes of another stream.
        added = reduced - arrival_cycles(timing, 1, output.flits) if place.cols > 1 else 0
    elif place.offchip is None:
        # The network has them behind the sums of another stream, whose last pass is beside.
        added = np.maximum(0, reduced - scores - column)
    else:
        added = 0
    depth = np.full_like(cut.rows, shape.qk_depth)
    v_depth = np.full_like(cut.rows, shape.v_depth)
    after = place.after_vector or place.matrix
    return _Work(
        scores=place.matrix.gemm_cycles_over(cut.rows, depth, cut.keys),
        output=after.gemm_cycles_over(cut.rows, cut.keys, v_depth),
        front=scores + np.where(cut.kv_blocks == 1, mask, 0),
        late=late,
        # Who sends keys is the last to give its maxima, and waits for sums from all.
        summed=4 * scores + (6 - 4 / cut.kv_blocks) * column + collectives / 2 + late,
        first=first + np.where(cut.kv_blocks == 1, mask, 0) + collectives,
        softmax=(first + (cut.kv_blocks - 1) * later + mask) / cut.kv_blocks + collectives,
        column=column,
        written=column + values,
        reduced=reduced,
        come=come,
        passes=added + column + (0 if place.offchip else values),
        ahead=np.minimum(collectives / 2 - late, added + (0 if place.offchip else values)),
    )


def _late_cycles(reduction: Reduction, timing: NocTiming) -> Any:
    """An all-reduction at a root whose part is the last."""
    others = reduction.lines.length - 1
    if reduction.method == "network":
        return 2 * arrival_cycles(timing, 0, reduction.flits)
    additions = {"tree": others.bit_length(), "sequential": others}.get(reduction.method, 2)
    return min(additions, others) * reduction.combine_cycles


@dataclass(frozen=True)
class _Sent:
    """Slices on their way from the diagonal."""

    problem: FlatPlan
    cut: Cut
    timing: NocTiming
    holds: dict[str, Any] = field(default_factory=dict)  # those known

    def flits(self, name: str) -> Any:
        """Length of a slice."""
        return flits(self.problem, name, self.cut.rows, self.cut.keys)

    def hold(self, name: str) -> Any:
        """Cycles for which a slice keeps the busiest tile's port."""
        if name not in self.holds:
            self.holds[name] = self._hold(name)
        return self.holds[name]

    def _hold(self, name: str) -> Any:
        place, operands = self.problem.place, self.problem.operands
        if operands not in BY_MESSAGES:
            return hold_cycles_over(self.timing, self.flits(name))
        length = place.cols if name == "q" else place.rows
        messages = length if operands == "sequential" else 1 + (length - 1).bit_length()
        return messages * self.flits(name)

    def copy(self, name: str) -> Any:
        """Cycles from then to the arrival of the tile's own copy."""
        if self.problem.operands in BY_MESSAGES:
            return self.hold(name)
        length = self.flits(name)
        return multicast_cycles_over(self.timing, 0 * length, length) - self.timing.launch_cycles

    @cached_property
    def down(self) -> Any:
        """Cycles from sending a slice of K to its arrival at the whole column."""
        length, operands, timing = self.flits("k"), self.problem.operands, self.timing
        rows = self.problem.place.rows
        if operands in BY_MESSAGES:
            roots = set(diagonal(self.problem.place.cols, rows))
            each = [broadcast_cycles(timing, operands, rows, root, length) for root in roots]
            return np.maximum.reduce(each)
        if rows == 1:
            return arrival_cycles(timing, 0, length)
        return multicast_cycles_over(timing, np.full_like(length, rows - 1), length)

    def mask(self, one: Any) -> Any:
        """Cycles in which the mask comes to all tiles, beside those in which a block of V comes."""
        hold, edge = self.hold("mask"), self.problem.place.offchip
        if edge is None:
            return hold
        law, ways = load_law(self.timing, edge, self.flits("mask")), _ways(edge)["k"]
        waited = hold + law.alone_cycles(ways.hops)
        return np.where(one, waited, np.maximum(hold, ways.most * law.served_cycles))


class _Memory(NamedTuple):
    """Cycles that off-chip memory adds."""

    begin: Any  # before the first item
    step: Any  # of every item, where one follows the other
    pace: Any  # for which the busiest channel serves an item
    again: Any  # from asking for keys to their arrival, for which there is one buffer
    second: Any  # until the second item's keys are there, beside the mask
    first: Any  # until the busiest channel begins, but for the last results
    mask: Any  # for which it serves the mask
    ask: Any  # from having sent a slice to having asked for the next one
    total: Any  # from a stream's last sums to having stored them
    stored: Any  # for which a tile stores the output
    end: Any  # from the last result to its being stored
    keys: "_Answer"  # to the farthest tile that sends keys
    values: "_Answer"
    tile: "_Answers"  # to those that send keys and queries: the nearest and the farthest


class _Answer(NamedTuple):
    """What comes from a channel to a tile's port, by which the tile sends slices to itself, too."""

    begin: Any  # from asking to its first flit
    end: Any  # to its last

    def then(self, before: Any, sent: Any, copy: Any = 0) -> Any:
        """Cycles for a slice that is sent so long after it is asked: before it comes, or behind.

        ``copy`` is when the tile's own copy comes, if that is later than all has been sent.
        """
        meets = before + np.maximum(sent, copy) > self.begin
        return sent + np.where(meets, np.maximum(before, self.end), before)


class _Answers(NamedTuple):
    """To tiles that ask for slices, and store an output; shape (tiles, candidates)."""

    queries: _Answer
    keys: _Answer
    values: _Answer
    output: _Answer


_NO_ANSWER = _Answer(0, 0)
_NO_ANSWERS = _Answers(_NO_ANSWER, _NO_ANSWER, _NO_ANSWER, _NO_ANSWER)
_NONE = _Memory(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, _NO_ANSWER, _NO_ANSWER, _NO_ANSWERS)


def _memory(problem: FlatPlan, cut: Cut, edge: Edge, timing: NocTiming) -> _Memory:
    """Slices come to the diagonal, results leave from there."""
    q, k, v, mask = (
        load_law(timing, edge, flits(problem, name, cut.rows, cut.keys))
        for name in ("q", "k", "v", "mask")
    )
    total, output = (
        store_law(timing, edge, flits(problem, name, cut.rows, cut.keys)) for name in ("total", "o")
    )
    rows, columns, both = _ways(edge)["q"], _ways(edge)["k"], _both(edge)
    stored = total.paced_cycles + output.paced_cycles
    stream = rows.most * (q.served_cycles + stored)
    item = columns.most * (k.served_cycles + v.served_cycles)
    vector = problem.place.vector
    column, scores = (vector.pass_cycles_over(cut.rows, each) for each in (1, cut.keys))
    asked = q.alone_cycles(rows.hops)
    return _Memory(
        begin=asked + columns.most * k.served_cycles,
        step=asked / cut.kv_blocks + k.alone_cycles(columns.hops),
        pace=item + stream / cut.kv_blocks,
        again=k.alone_cycles(columns.hops),
        second=asked + columns.most * (2 * k.served_cycles + v.served_cycles),
        first=asked - q.served_cycles - rows.most * stored,
        mask=columns.most * mask.served_cycles,
        ask=timing.launch_cycles + 1,
        total=scores + 2 * column + timing.launch_cycles + total.sent_flits,
        stored=timing.launch_cycles + output.sent_flits,
        end=column + output.alone_cycles(rows.hops),
        keys=_answer(k, edge, columns.hops),
        values=_NO_ANSWER if problem.shared else _answer(v, edge, columns.hops),
        tile=_Answers(
            queries=_answer(q, edge, both),
            keys=_answer(k, edge, both),
            values=_NO_ANSWER if problem.shared else _answer(v, edge, both),
            output=_answer(output, edge, both),
        ),
    )


def _answer(law: OffChipLaw, edge: Edge, hops: Any) -> _Answer:
    """Channels at tiles answer beside their ports."""
    if edge.at_tiles:
        return _NO_ANSWER
    end = law.alone_cycles(hops)
    return _Answer(end - law.come_flits, end)


class _Ways(NamedTuple):
    """Between the tiles that load and their channels."""

    hops: int  # of the farthest
    most: int  # tiles of one channel


@lru_cache(256)
def _ways(edge: Edge) -> dict[str, _Ways]:
    """Of slices of ``q``, and of ``k``, ``v`` and the mask."""
    return {
        name: _Ways(max(map(edge.hops, each)), max(Counter(map(edge.channel, each)).values()))
        for name, each in _senders(edge).items()
    }


@lru_cache(256)
def _both(edge: Edge) -> NDArray[np.int64]:
    """Hops of the nearest and the farthest tile that send ``q`` and ``k``: shape (2, 1)."""
    senders = _senders(edge)
    hops = [edge.hops(tile) for tile in {*senders["q"]} & {*senders["k"]}]
    return np.array([[min(hops)], [max(hops)]])


def _senders(edge: Edge) -> dict[str, list[Tile]]:
    """Tiles that hand on slices of ``q``, and those of ``k``, ``v`` and the mask."""
    rows, cols = edge.rows, edge.cols
    return {
        "q": list(enumerate(diagonal(rows, cols))),
        "k": [(row, col) for col, row in enumerate(diagonal(cols, rows))],
    }
