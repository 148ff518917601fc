"""FlashAttention as a performance model: of one plan, or of many candidates at once.

With one block under way its steps follow each other; with two, the busiest of a tile's engines
sets the pace, or what brings the blocks: then the last one's product is what is left. What a run of
tiles has to do together comes after each stream. That is compiled (`flash_cycles`, and
`flash_joining` of messages), from what engines, network and memory say of each cut.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.transfer_times import (
    arrival_cycles,
    credit_cycles,
    multicast_cycles_over,
    reduction_cycles_over,
)
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_times, store_law
from workloads.kernels.attention.flash_cycles import Of, Plans, cycles_of
from workloads.kernels.attention.flash_plan import Counts, FlashPlan
from workloads.kernels.attention.plan import NAMES, Cut, Widths, flits_of, widths
from workloads.kernels.parts.channels import sharing
from workloads.kernels.parts.closed_form import all_reduce_cycles, reduce_cycles
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.message_times import rounds_of
from workloads.machine.place import Place

_Q, _K, _V, _O, _MASK, _, _TOTAL = range(len(NAMES))
#: What runs have that join.
_JOINED = tuple(kind for kind in Of if kind >= Of.MAXIMA)


def flash_attention_cycles(plan: FlashPlan, timing: NocTiming) -> int:
    """Cycles of a plan."""
    cut = Cut(*(np.array([[each]]) for each in plan.cut))
    fits, of = np.array(True), np.array(0)
    return round(float(candidate_cycles(plan, cut, plan.counted(cut), timing, fits, of)[0, 0]))


def candidate_cycles(
    problem: FlashPlan,
    cut: Cut,
    number: Counts,
    timing: NocTiming,
    fits: NDArray[np.bool_],
    of: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Cycles of cuts that fit and may be the fastest of their problem; infinite of others.

    Columns are broadcast: rows along the last axis but one, keys and runs along the last. What
    depends on one of them is worked out once for each.

    Args:
        problem: What problems have in common; its own cut does not matter.
        cut: The cuts.
        number: What they come to.
        timing: Of the network.
        fits: Whether a tile has room for each.
        of: Number of the problem of each.
    """
    edge = problem.place.offchip
    columns = {
        Of.PROBLEM: of,
        Of.FITS: fits,
        Of.KV_BLOCKS: cut.kv_blocks,
        Of.RUN: cut.run,
        Of.STREAMS: number.streams,
        Of.DEPTH: number.depth,
        Of.HELD: number.held,
        Of.SECOND: number.second,
        Of.LINES: number.rows,
        Of.PADDED: number.padded,
        Of.BLOCKS: number.blocks,
        Of.MASKS: number.masks,
        Of.MASK_LOADS: number.mask_loads,
        Of.CARRIED: number.carried,
        **_worked(problem, cut),
        **_joined(problem, cut, timing),
    }
    if edge is None:
        columns |= _at_hand(problem, cut, timing)
    else:
        columns |= _in_memory(problem, cut, number, timing, edge)
    shape = np.broadcast_shapes(*map(np.shape, columns.values()))
    table = np.zeros((len(Of), *shape))
    for at, column in columns.items():
        table[at] = column
    plans = Plans(problem.shared, edge is not None, edge is not None and edge.at_tiles)
    found: NDArray[np.float64] = cycles_of(table.reshape(len(Of), -1), plans)
    return found.reshape(shape)


def _worked(problem: FlashPlan, cut: Cut) -> dict[Of, Any]:
    """Cycles of a tile's engines."""
    place, shape, vector = problem.place, problem.shape, problem.place.vector
    depth, v_depth = np.array([shape.qk_depth]), np.array([shape.v_depth])
    after = place.after_vector or place.matrix
    return {
        Of.SCORES: place.matrix.gemm_cycles_over(cut.rows, depth, cut.keys),
        Of.OUTPUT: after.gemm_cycles_over(cut.rows, cut.keys, v_depth),
        Of.WIDE: vector.pass_cycles_over(cut.rows, cut.keys),
        Of.COLUMN: vector.pass_cycles_over(cut.rows, 1),
        Of.DEEP: vector.pass_cycles_over(cut.rows, shape.v_depth),
    }


def _joined(problem: FlashPlan, cut: Cut, timing: NocTiming) -> dict[Of, Any]:
    """Cycles by which a run's tiles put together what they found; none of tiles alone."""
    runs = np.flatnonzero(np.bincount(cut.run.ravel()))
    if runs[-1] == 1:
        return {}
    rows = tuple(cut.rows.ravel().tolist())
    of = problem.place, problem.method, widths(problem), timing
    found = _of_runs(*of, rows, tuple(runs.tolist()))
    where = np.arange(len(rows)).reshape(cut.rows.shape), cut.run
    return {kind: each[where] for kind, each in zip(_JOINED, found, strict=True)}


@lru_cache(1 << 10)
def _of_runs(
    place: Place,
    method: str,
    of: Widths,
    timing: NocTiming,
    rows: tuple[int, ...],
    runs: tuple[int, ...],
) -> NDArray[np.float64]:
    """The same, of blocks of some rows and of runs: shape (kinds, rows, the longest run + 1)."""
    found = np.zeros((len(_JOINED), len(rows), runs[-1] + 1))
    high, vector = np.array(rows), place.vector
    total, output = (flits_of(of, name, high, 1) for name in (_TOTAL, _O))
    column, deep = (vector.pass_cycles_over(high, width) for width in (1, of.v_depth))
    for run in runs:
        if run == 1:
            continue
        each = {Of.SENT_OUTPUT: output}
        if method == "network":
            farthest = np.full_like(high, max(run // 2, 1))
            maxima = reduction_cycles_over(timing, farthest, total)
            each[Of.MAXIMA] = maxima + multicast_cycles_over(timing, farthest, total)
            each[Of.REDUCED] = reduction_cycles_over(timing, farthest, output)
        else:
            root = Lines("row", range(1), run), run // 2, method, "", "", ""
            each[Of.MAXIMA] = all_reduce_cycles(Reduction(*root, total, column), timing)
            each[Of.REDUCED] = reduce_cycles(Reduction(*root, output, deep), timing)
            # The root's engine adds what comes for all streams but the last.
            each[Of.ADDED] = np.ceil(np.log2(run)) * (column + deep)
            each |= _by_messages(method, run, timing, total, output)
        for kind, cycles in each.items():
            found[_JOINED.index(kind), :, run] = cycles
    return found


def _by_messages(
    method: str, run: int, timing: NocTiming, total: Any, output: Any
) -> dict[Of, Any]:
    """What `Joining` has of messages with so many flits of a column, and of an output."""
    chain = method == "chain"
    messages = {"chain": min(run - 1, 2), "tree": len(rounds_of(run))}.get(method, run - 1)
    hops = 1 if chain else run // 2
    return {
        Of.MESSAGES: messages,
        # The root is in the middle. Of a tree the last one comes from before it.
        Of.ASIDE: run // 2 if method == "sequential" else messages - 1,
        Of.STAGES: run // 2 - 1 if chain else 0,
        Of.RISE: int(method == "tree"),
        # Along a chain they go back as a multicast.
        Of.SPREAD: (1 if chain else messages) * (timing.launch_cycles + total),
        Of.TOTAL: total,
        Of.TOTAL_WAY: arrival_cycles(timing, hops, total),
        Of.OUTPUT_WAY: arrival_cycles(timing, hops, output),
        Of.CREDIT: credit_cycles(timing, hops),
        # The nearest tile's are those of the root's router.
        Of.ROOM: timing.input_places + timing.output_depth,
    }


def _at_hand(problem: FlashPlan, cut: Cut, timing: NocTiming) -> dict[Of, Any]:
    """Blocks that a tile sends to itself."""
    of, names = widths(problem), (_Q, _K, _V, _MASK)
    q, k, v, mask = (flits_of(of, name, cut.rows, cut.keys) for name in names)
    return {
        Of.Q: q,
        Of.K: k,
        Of.V: v,
        Of.MASK: mask,
        Of.KEYS: arrival_cycles(timing, 0, k),
        Of.VALUES: arrival_cycles(timing, 0, v),
        Of.SHARERS: 1,
    }


class _Results(NamedTuple):
    """Of a stream's results, by the rows of its block: arrays of the rows' shape.

    Attributes:
        sent: Flits.
        served: For which a channel is busy with them.
        near: From the last one's start to its being stored, next to the channel.
        way: What each hop adds.
    """

    sent: Any
    served: Any
    near: Any
    way: Any


@lru_cache(1 << 10)
def _results(timing: NocTiming, edge: Edge, of: Widths, rows: tuple[int, ...]) -> _Results:
    names = _TOTAL, _O
    total, output = (store_law(timing, edge, flits_of(of, n, np.array(rows), 1)) for n in names)
    return _Results(
        total.sent_flits + output.sent_flits,
        sum(np.maximum(law.served_cycles, law.sent_flits) for law in (total, output)),
        output.alone_cycles(0),
        output.way_cycles,
    )


def _in_memory(
    problem: FlashPlan, cut: Cut, number: Counts, timing: NocTiming, edge: Edge
) -> dict[Of, Any]:
    """Blocks that come from off-chip memory, and results that go there."""
    tiles, of, names = sharing(edge, number.rows, number.cols), widths(problem), (_Q, _K, _V, _MASK)
    hops = tiles.farthest
    q, k, v, mask = (
        load_times(timing, edge, flits_of(of, name, cut.rows, cut.keys)) for name in names
    )
    results = _results(timing, edge, of, tuple(cut.rows.ravel().tolist()))
    sent, served, near, way = (np.reshape(each, (-1, 1)) for each in results)
    return {
        Of.Q: q.served_cycles,
        Of.K: k.served_cycles,
        Of.V: v.served_cycles,
        Of.MASK: mask.served_cycles,
        Of.KEYS: k.alone_cycles(hops),
        Of.VALUES: v.alone_cycles(hops),
        Of.SHARERS: tiles.most,
        Of.APART: timing.hop_cycles * (hops - tiles.nearest),
        Of.SENT: sent,
        Of.STORED: served,
        Of.WRITTEN: near + hops * way,
    }
