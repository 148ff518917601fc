"""What attention takes at least on tiles that work alone, however its keys are cut.

That is the passes over all scores, or all products, behind the first rows of Q; or the keys and
values that the busiest channel serves. Each is least of a cut with all keys in a block. A tile
has its share of what is seen, and one of them a stream that sees all keys. Before keys and
values rows of Q come on top: not less than the last unit that a channel fills up, which its
tile need not wait for.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, forget_stale
from tlm.compute.base import ceil_div
from tlm.compute.vector_unit import pass_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law, served_cycles, store_law
from workloads.kernels.attention.flash_cycles import PASSES
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.plan import NAMES, Widths, flits_of, widths
from workloads.kernels.parts.channels import sharing

_Q, _K, _V = map(NAMES.index, "qkv")
_ROWS, _STREAMS, _MEAN, _BUSIEST, _QUERIES = range(5)


class _Keys:
    """For which a channel is busy with the keys of a head, and their values."""

    def __init__(self, timing: NocTiming, edge: Edge, of: Widths) -> None:
        self._timing, self._edge, self._widths = timing, edge, of
        self._known: dict[int, float] = {}

    def served(self, length: int) -> float:
        """With so many keys."""
        if length not in self._known:
            flits = (flits_of(self._widths, name, 1, length) for name in (_K, _V))
            laws = (load_law(self._timing, self._edge, each) for each in flits)
            self._known[length] = sum(law.served_cycles for law in laws)
        return self._known[length]


@lru_cache(256)
def _keys_of(timing: NocTiming, edge: Edge, of: Widths) -> _Keys:
    return _Keys(timing, edge, of)


class Bounds:
    """Least cycles of a problem, whose keys do not matter, by the rows of its blocks.

    Args:
        problem: The problem.
        rows: Rows of blocks to try.
    """

    def __init__(self, problem: FlashPlan, rows: tuple[int, ...]) -> None:
        place, shape, self.rows = problem.place, problem.shape, rows
        self._problem, edge = problem, problem.place.offchip
        after = place.after_vector or place.matrix
        self._each = shape.qk_depth / place.matrix.macs_per_cycle
        self._each += shape.v_depth / after.macs_per_cycle
        self._unseen = shape.q_length - 1 if shape.causal else 0
        high = np.array(rows)
        every = shape.heads * ceil_div(shape.rows, high)
        streams = ceil_div(every, place.rows * place.cols)
        needed = ceil_div(every, streams)
        down, across = ceil_div(needed, place.cols), np.minimum(needed, place.cols)
        # Streams of all tiles over as many as all tiles in use could have; the tiles of the busiest
        # channel, and for which that is busy with the first rows of Q of all of them.
        mean: NDArray[np.float64] = np.ones(len(rows))
        if shape.causal:
            mean = every / (streams * down * across)
        busiest = queries = np.zeros(len(rows))
        self._keys = None
        if edge is not None:
            of = widths(problem)
            busiest = sharing(edge, down, across).most
            queries = busiest * served_cycles(place.timing, edge, flits_of(of, _Q, high, 1))
            self._keys = _keys_of(place.timing, edge, of)
        self._table = np.stack([high, streams, mean, busiest, queries], axis=1).astype(np.float64)
        self._found = np.empty(len(rows))

    def within(self, length: int, cycles: int) -> list[int]:
        """Places of rows with which it may take so many cycles at most, of so many keys."""
        keys, vector = self._keys, self._problem.place.vector
        least = _least(
            self._table, self._unseen, self._each, vector.lanes, vector.pipeline_cycles, length,
            0.0 if keys is None else keys.served(length), self._found,
        )  # fmt: skip
        if least > cycles:
            return []
        may = (self._found <= cycles) & (self._of_engines(length) <= cycles)
        found: list[int] = np.flatnonzero(may).tolist()
        return found

    def _of_engines(self, length: int) -> NDArray[np.float64]:
        """By what the engines take for products of all keys, between load and store.

        It is dearer to tell. A stream's blocks of keys take no less than all of them at once: cut
        products fill no more of an engine.
        """
        place, shape, edge = self._problem.place, self._problem.shape, self._problem.place.offchip
        after, high = place.after_vector or place.matrix, np.array(self.rows)
        least: NDArray[np.float64] = self._table[:, _QUERIES] + place.matrix.gemm_cycles_over(
            high, shape.qk_depth, length
        )
        least += after.gemm_cycles_over(high, length, shape.v_depth)
        if edge is not None:
            # The first keys take no less than a flit, nor do the last results.
            least += sum(
                law(place.timing, edge, 1).alone_cycles(0) for law in (load_law, store_law)
            )
        return least


@compiled
def _least(
    table: NDArray[np.float64],
    unseen: int,
    each: float,
    lanes: int,
    pipeline_cycles: int,
    length: int,
    keys: float,
    found: NDArray[np.float64],
) -> float:
    """Write down the least of all rows; returns the least of these.

    Args:
        table: Of each rows what `Bounds` has; shape (rows, 5).
        unseen: Keys that the first row of a head does not see.
        each: Cycles of a product of a row with a key, and with its value.
        lanes: Elements of a word of the vector engine.
        pipeline_cycles: Cycles of a pass beyond one a word.
        length: Keys of a head.
        keys: For which a channel is busy with all of them.
        found: Shape (rows,).
    """
    least = np.inf
    for number in range(len(table)):
        rows = table[number, _ROWS]
        part = table[number, _MEAN] * (1 - unseen / (2 * length)) * table[number, _STREAMS]
        passes = PASSES * pass_cycles(lanes, pipeline_cycles, rows, length)
        worked = max(part, 1.0) * max(passes, rows * length * each)
        served = part * table[number, _BUSIEST] * keys
        found[number] = max(table[number, _QUERIES] + worked, served)
        least = min(least, found[number])
    return least


forget_stale(_least)
