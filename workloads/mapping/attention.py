"""Attention on a grid of tiles, by the FlatAttention dataflow (sections III-B to III-D).

A square group of tiles works on a block of queries against blocks of keys and values, each tile on
a slice of both. Keys and values are read from memory once a group and multicast to its columns,
queries to its rows; row maxima and sums are reduced along rows, the output once at the end. The
query heads that share keys and values form one longer query sequence (section III-D), and two
blocks are in flight in a group (section III-C), so that matrix engine, vector engine, network and
memory overlap: the busiest sets the pace. A group that has a single block runs its stages one
after another, except memory.

Scores under the causal mask are computed for whole key blocks up to the last visible token.
"""

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.mapping.machine import Breakdown, Machine, exposed

# Vector operations on each score: scale, running maximum, subtraction, exponential (one operation
# of the unit of section IV), row sum; and on each output element: rescaling and its share of the
# final division.
_OPS_PER_SCORE = 5
_OPS_PER_OUTPUT = 2
_SLICES = (16, 32, 64, 128, 256)
_COLLECTIVES_PER_STEP = 4  # row maximum and row sum, each reduced and multicast back


class AttentionShape(NamedTuple):
    """Heads of one attention layer and the bytes of an element."""

    kv_heads: int
    queries_per_kv: int
    head_dim: int
    element_bytes: int


class _Tilings(NamedTuple):
    """Candidate mappings, one element each: sizes in effective rows, times in cycles."""

    groups: NDArray[np.float64]
    block_rows: NDArray[np.float64]
    block_columns: NDArray[np.float64]
    matrix: NDArray[np.float64]
    vector: NDArray[np.float64]
    network: NDArray[np.float64]
    network_ends: NDArray[np.float64]


class AttentionMapper:
    """Times of the attention kernels of one model on one machine, in cycles of one layer."""

    def __init__(self, machine: Machine, shape: AttentionShape) -> None:
        self._machine = machine
        self._shape = shape
        self._tilings = _tilings(machine, shape)
        queries = shape.queries_per_kv
        self._decode_steps = [
            (columns, max(_step_cycles(machine, shape, queries, columns))) for columns in _SLICES
        ]
        self.prefill = lru_cache(maxsize=1 << 16)(self._prefill)

    def _prefill(self, new: int, context: int, causal: bool = True) -> Breakdown:
        """Attention of ``new`` query tokens on ``context`` cached tokens and themselves.

        Keys and values of all ``context + new`` tokens come from memory. The fastest group and
        slice sizes are taken.
        """
        machine, shape, tiling = self._machine, self._shape, self._tilings
        rows = new * shape.queries_per_kv
        row_blocks = np.ceil(rows / tiling.block_rows)
        longest = np.ceil((context + new) / tiling.block_columns)
        visits = row_blocks * longest
        if causal:
            visits = np.minimum(visits, self._causal_visits(new, context, row_blocks))
        jobs = shape.kv_heads * row_blocks
        steps = np.maximum(np.ceil(shape.kv_heads * visits / tiling.groups), longest)
        jobs_per_group = np.ceil(jobs / tiling.groups)

        row_bytes = shape.head_dim * shape.element_bytes
        kv_bytes = (
            2
            * shape.kv_heads
            * visits
            * np.minimum(tiling.block_columns, context + new)
            * row_bytes
        )
        query_bytes = 2 * shape.kv_heads * rows * row_bytes
        memory = (kv_bytes + query_bytes) / machine.memory_bytes_per_cycle
        matrix = steps * tiling.matrix
        vector = steps * tiling.vector
        compute = np.where(jobs_per_group > 1, np.maximum(matrix, vector), matrix + vector)
        network = steps * tiling.network + jobs_per_group * tiling.network_ends
        busy = np.maximum(compute, network)
        on_tiles = np.where(jobs_per_group > 1, busy, compute + network)
        # First operands in, last step and its output out.
        fill = memory / steps + tiling.matrix + tiling.network_ends
        total = np.maximum(on_tiles, memory) + fill
        total += machine.memory_latency_cycles + 2 * machine.cross_cycles
        best = int(np.argmin(total))
        return exposed(
            float(compute[best]), float(network[best]), float(memory[best]), float(total[best])
        )

    def _causal_visits(
        self, new: int, context: int, row_blocks: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Key blocks visited by all query blocks, whole ones each.

        What rounding up adds is the same for every query block if those are the longer ones, else
        its mean over them.
        """
        tokens = self._tilings.block_rows / self._shape.queries_per_kv
        columns = self._tilings.block_columns
        ends = context + np.minimum(tokens * (row_blocks + 1) / 2, new)
        rounding = np.where(
            tokens < columns, (1 - tokens / columns) / 2, -context % columns / columns
        )
        return np.maximum(row_blocks, row_blocks * (ends / columns + rounding))

    def decode(self, sequences: int, context_tokens: int) -> Breakdown:
        """Attention of one new token in each of ``sequences`` with ``context_tokens`` in all.

        A (sequence, key-value head) pair is a job. Jobs are spread over the tiles; if there are
        fewer jobs than tiles, a job's keys and values are cut along a row of tiles (section III-D).
        The fastest slice size is taken. Contexts count as equal in length; that they end within a
        slice costs half a slice on average.
        """
        machine, shape = self._machine, self._shape
        jobs = sequences * shape.kv_heads
        spread = max(1, min(machine.cols, machine.tiles // jobs))
        rounds = -(-jobs * spread // machine.tiles)
        tokens = (context_tokens / sequences + 1) / spread
        kv_bytes = 2 * shape.head_dim * shape.element_bytes * tokens
        network = rounds * kv_bytes / machine.link_bytes_per_cycle
        if spread > 1:
            network += rounds * _COLLECTIVES_PER_STEP * machine.cross_cycles
        memory = jobs * spread * kv_bytes / machine.memory_bytes_per_cycle
        best_total, best_compute = math.inf, 0.0
        for columns, step in self._decode_steps:
            slices = rounds * (tokens / columns + 0.5)
            compute = slices * step
            total = max(compute, network, memory) + memory / max(slices, 1.0) + step
            if total < best_total:
                best_total, best_compute = total, compute
        best_total += machine.memory_latency_cycles + 2 * machine.cross_cycles
        return exposed(best_compute, network, memory, best_total)


def _step_cycles(
    machine: Machine, shape: AttentionShape, rows: int, columns: int
) -> tuple[int, float]:
    """Matrix and vector cycles of a slice of ``rows`` x ``columns`` scores on one tile."""
    gemm = machine.engine.gemm_cycles
    matrix = gemm(rows, shape.head_dim, columns) + gemm(rows, columns, shape.head_dim)
    vector = rows * (columns * _OPS_PER_SCORE + shape.head_dim * _OPS_PER_OUTPUT)
    return matrix, vector / machine.vector_ops_per_cycle


def _tilings(machine: Machine, shape: AttentionShape) -> _Tilings:
    """Group sides that divide the grid, and slices whose buffers fit a tile's memory twice over."""
    dim, element = shape.head_dim, shape.element_bytes
    sides = [side for side in range(1, machine.rows + 1) if machine.rows % side == 0]
    found = []
    for side, rows, columns in product(sides, _SLICES, _SLICES):
        buffers = 2 * (2 * rows * dim + 2 * columns * dim + rows * columns) * element
        if machine.cols % side or buffers > machine.sram_bytes:
            continue
        matrix, vector = _step_cycles(machine, shape, rows, columns)
        statistics = _COLLECTIVES_PER_STEP * rows * element / machine.link_bytes_per_cycle
        latency = 2 * side * machine.hop_cycles
        crossing = _COLLECTIVES_PER_STEP * latency if side > 1 else 0
        keys_values = 2 * columns * dim * element / machine.link_bytes_per_cycle
        query_output = 2 * rows * dim * element / machine.link_bytes_per_cycle
        network = keys_values + (statistics if side > 1 else 0.0) + crossing
        found.append(
            (
                machine.tiles / side**2,
                side * rows,
                side * columns,
                matrix,
                vector,
                network,
                query_output + latency,
            )
        )
    return _Tilings(*np.array(found, dtype=np.float64).T)
