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

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled
from workloads.mapping.machine import Machine, Moved

# Vector operations on each score: scale, running maximum, subtraction, exponential (one operation
# of the unit of section IV), row sum; and on each output element: rescaling and its share of the
# final division.
_OPS_PER_SCORE = 5
_OPS_PER_OUTPUT = 2
_SLICES = (16, 32, 64, 128, 256)
_COLLECTIVES_PER_STEP = 4  # row maximum and row sum, each reduced and multicast back


class AttentionShape(NamedTuple):
    """Heads of one attention layer and the bytes of an element.

    ``kept`` is how many elements are read of the cache for a token and head of keys and values:
    ``qk_dim + value_dim``, or fewer where values are a part of the keys (latent attention).
    """

    kv_heads: int
    queries_per_kv: int
    qk_dim: int
    value_dim: int
    kept: int
    element_bytes: int


class AttentionPlan(NamedTuple):
    """Time of a prompt chunk's attention in cycles, and what it moves."""

    cycles: float
    moved: Moved


class DecodeJoules(NamedTuple):
    """Energies of decoding's attention in one layer.

    Attributes:
        arithmetic: Of a (query token, visible token) pair.
        operands: Of the reads of a pair's operands from SRAM by a full matrix engine.
        read: Of reading a token's keys and values from SRAM once, which is the least.
        fetched: Of bringing them there from memory.
    """

    arithmetic: float = 0.0
    operands: float = 0.0
    read: float = 0.0
    fetched: float = 0.0


_NO_ENERGY = DecodeJoules()


class _Tilings(NamedTuple):
    """Candidate mappings, one element each: sizes in effective rows, times in cycles."""

    groups: NDArray[np.float64]
    block_rows: NDArray[np.float64]
    block_columns: NDArray[np.float64]
    matrix: NDArray[np.float64]
    vector: NDArray[np.float64]
    network: NDArray[np.float64]
    network_ends: NDArray[np.float64]


class _DecodeForm(NamedTuple):
    """What the time of decoding is made of, but for the contexts; ``columns`` are slice sizes."""

    spread: int
    rounds: int
    jobs: int
    bytes_per_token: int
    link_bytes_per_cycle: float
    memory_bytes_per_cycle: float
    sram_bytes_per_cycle: float
    collectives: float
    fixed: float
    columns: NDArray[np.float64]
    steps: NDArray[np.float64]


@compiled
def _decode_totals(
    contexts: NDArray[np.int64],
    in_sram: NDArray[np.float64],
    sequences: int,
    width: int,
    spread: int,
    rounds: int,
    jobs: int,
    bytes_per_token: int,
    link_bytes_per_cycle: float,
    memory_bytes_per_cycle: float,
    sram_bytes_per_cycle: float,
    collectives: float,
    fixed: float,
    columns: NDArray[np.float64],
    steps: NDArray[np.float64],
    arithmetic_j: float,
    operands_j: float,
    read_j: float,
    fetched_j: float,
    totals: NDArray[np.float64],
    joules: NDArray[np.float64],
) -> None:
    """``AttentionMapper.decode``; a serving run asks for hundreds of thousands."""
    own_pairs = sequences * (width * (width + 1) // 2)
    for place in range(len(contexts)):
        tokens = (contexts[place] / sequences + width) / spread
        kv_bytes = tokens * bytes_per_token
        spilled = kv_bytes * (1.0 - in_sram[place])
        network = rounds * spilled / link_bytes_per_cycle + collectives
        memory = jobs * spilled / memory_bytes_per_cycle
        sram = rounds * kv_bytes * in_sram[place] / sram_bytes_per_cycle
        read = max(memory, sram)
        best = np.inf
        for choice in range(len(columns)):
            slices = rounds * (tokens / columns[choice] + 0.5)
            longest = max(slices * steps[choice], network, read)
            total = longest + read / max(slices, 1.0) + steps[choice] + fixed
            best = min(best, total)
        totals[place] = best
        pairs = contexts[place] * width + own_pairs
        seen = contexts[place] + sequences * width
        joules[place] = pairs * arithmetic_j + max(pairs * operands_j, seen * read_j)
        joules[place] += seen * (1.0 - in_sram[place]) * fetched_j


class AttentionMapper:
    """Times of the attention kernels of one model on one machine, in cycles of one layer.

    Args:
        machine: The machine.
        shape: Heads of the layer.
        decode_j: What decoding takes; none by default.
    """

    def __init__(
        self,
        machine: Machine,
        shape: AttentionShape,
        decode_j: DecodeJoules = _NO_ENERGY,
    ) -> None:
        self._machine = machine
        self._decode_j = decode_j
        self._shape = shape
        self._tilings = _tilings(machine, shape)
        self._decode_steps = lru_cache(maxsize=64)(self._decode_steps_uncached)
        self._decode_form = lru_cache(maxsize=1 << 12)(self._decode_form_uncached)

    def prefill(
        self, new: int, context: int, causal: bool = True, window: int | None = None
    ) -> AttentionPlan:
        """Attention of ``new`` query tokens on ``context`` cached tokens and themselves.

        Keys and values of all visible tokens come from memory; under a ``window`` a block of
        queries visits those of its window alone. The fastest group and slice sizes are taken. Of
        what is delivered, row maxima and sums are left out: a few values a row.
        """
        machine, shape, tiling = self._machine, self._shape, self._tilings
        rows = new * shape.queries_per_kv
        row_blocks = np.ceil(rows / tiling.block_rows)
        query_tokens = tiling.block_rows / shape.queries_per_kv
        seen = np.inf if window is None else window + query_tokens
        reach = np.minimum(context + new, seen)
        longest = np.ceil(reach / tiling.block_columns)
        visits = row_blocks * longest
        if causal:
            visits = np.minimum(visits, self._causal_visits(new, context, row_blocks))
        jobs = shape.kv_heads * row_blocks
        steps = np.maximum(np.ceil(shape.kv_heads * visits / tiling.groups), longest)
        jobs_per_group = np.ceil(jobs / tiling.groups)

        block_tokens = np.minimum(tiling.block_columns, context + new)
        kv_bytes = shape.kv_heads * visits * block_tokens * shape.kept * shape.element_bytes
        row_bytes = (shape.qk_dim + shape.value_dim) * shape.element_bytes
        query_bytes = shape.kv_heads * rows * row_bytes
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
        moved = float(kv_bytes[best] + query_bytes)
        side = float(np.sqrt(machine.tiles / tiling.groups[best]))
        return AttentionPlan(float(total[best]), Moved(moved, moved * side))

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

    def decode(
        self,
        sequences: int,
        context_tokens: NDArray[np.int64],
        width: int,
        in_sram: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Attention of ``width`` new tokens in each of ``sequences``, for each of several contexts.

        ``context_tokens`` are the cached ones of all of them. A (sequence, key-value head) pair is
        a job. Jobs are spread over the tiles; if there are fewer jobs than tiles, a job's keys and
        values are cut along a row of tiles (section III-D). The fastest slice size is taken.
        Contexts count as equal in length; that they end within a slice costs half a slice on
        average. Of each, the share ``in_sram`` is in the memory of the tile that works on it, which
        reads it from there; the rest comes from off-chip memory over the network. Slices of
        decoding are not held against the size of a tile's memory.

        Returns:
            Cycles and joules.
        """
        cycles, joules = np.empty((2, len(context_tokens)))
        form = self._decode_form(sequences, width)
        _decode_totals(
            context_tokens, in_sram, sequences, width, *form, *self._decode_j, cycles, joules
        )
        return cycles, joules

    def _decode_form_uncached(self, sequences: int, width: int) -> "_DecodeForm":
        machine, shape = self._machine, self._shape
        jobs = sequences * shape.kv_heads
        spread = max(1, min(machine.cols, machine.tiles // jobs))
        rounds = -(-jobs * spread // machine.tiles)
        collectives = rounds * _COLLECTIVES_PER_STEP * machine.cross_cycles if spread > 1 else 0
        columns, steps = zip(*self._decode_steps(width), strict=True)
        return _DecodeForm(
            spread,
            rounds,
            jobs * spread,
            shape.kept * shape.element_bytes,
            float(machine.link_bytes_per_cycle),
            float(machine.memory_bytes_per_cycle),
            float(machine.sram_bytes_per_cycle),
            float(collectives),
            float(machine.memory_latency_cycles + 2 * machine.cross_cycles),
            np.array(columns, dtype=np.float64),
            np.array(steps, dtype=np.float64),
        )

    def _decode_steps_uncached(self, width: int) -> list[tuple[int, float]]:
        """Slice sizes and the cycles of a slice."""
        rows = self._shape.queries_per_kv * width
        return [
            (columns, max(_step_cycles(self._machine, self._shape, rows, columns)))
            for columns in _SLICES
        ]


def _step_cycles(
    machine: Machine, shape: AttentionShape, rows: int, columns: int
) -> tuple[int, float]:
    """Matrix and vector cycles of a slice of ``rows`` x ``columns`` scores on one tile."""
    gemm = machine.engine.gemm_cycles
    matrix = gemm(rows, shape.qk_dim, columns) + gemm(rows, columns, shape.value_dim)
    vector = rows * (columns * _OPS_PER_SCORE + shape.value_dim * _OPS_PER_OUTPUT)
    return matrix, vector / machine.vector_ops_per_cycle


def least_attention_bytes(shape: AttentionShape) -> int:
    """Bytes of a tile's memory that the buffers of a prompt chunk's smallest slices take."""
    return _buffer_bytes(shape, _SLICES[0], _SLICES[0])


def _buffer_bytes(shape: AttentionShape, rows: int, columns: int) -> int:
    """Bytes of two slices in flight: queries and output, keys and values, scores."""
    row = shape.qk_dim + shape.value_dim
    return 2 * (rows * row + columns * shape.kept + rows * columns) * shape.element_bytes


def _tilings(machine: Machine, shape: AttentionShape) -> _Tilings:
    """Group sides that divide the grid, and slices whose buffers fit a tile's memory twice over."""
    element, row = shape.element_bytes, shape.qk_dim + shape.value_dim
    sides = [side for side in range(1, machine.rows + 1) if machine.rows % side == 0]
    found = []
    for side, rows, columns in product(sides, _SLICES, _SLICES):
        if machine.cols % side or _buffer_bytes(shape, rows, columns) > machine.sram_bytes:
            continue
        matrix, vector = _step_cycles(machine, shape, rows, columns)
        statistics = _COLLECTIVES_PER_STEP * rows * element / machine.link_bytes_per_cycle
        latency = 2 * side * machine.hop_cycles
        crossing = _COLLECTIVES_PER_STEP * latency if side > 1 else 0
        keys_values = columns * shape.kept * element / machine.link_bytes_per_cycle
        query_output = rows * row * element / machine.link_bytes_per_cycle
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
