"""Mapping of C[m, n] = A[m, k] B[k, n] on a grid of tiles with off-chip memory.

The dataflow is SUMMA with stationary output, as the FlatAttention paper runs its GEMMs (section
III-E), generalised by a split of k for flat shapes. The grid is cut into ``tiles_m`` x ``tiles_n``
x ``tiles_k``. A tile computes its share of C in blocks of ``block_m`` x ``block_n`` that stay in
its memory while ``block_k`` of k at a time streams past, double-buffered: read from memory once
and multicast to the tiles that share it. With a split of k, partial blocks are summed in the
network on their way to one tile. Operands come from memory and results return there, as kernels
run one after another.

Time is that of a two-stage pipeline over the steps (blocks times k panels):

- supply, the longer of memory (A once for each pass over n, B for each pass over m, C) and
  network (what a tile's port takes in, the diagonal placement keeping every link below that);
- compute, the engine's cycles for a block.

``steps - 1`` times the longer, plus one of each to fill and drain, plus memory latency, crossing
the network, and reduction and write-back of the last block. Counts are padded up to whole blocks.

A grouped product is that many products of one shape, each with weights B of its own (the experts of
a layer): they run one after another in one pipeline, without draining it in between.

B may be narrower than A and C in memory and in the network; tiles widen it in their memory.
"""

from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.mapping.machine import Machine, Moved

Array = NDArray[np.float64]

_ROW_MULTIPLES = (1, 2, 4, 8)
_COLUMN_MULTIPLES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
_INNER_MULTIPLES = (1, 4, 16, 32)


class GemmPlan(NamedTuple):
    """A mapping, the tiles and the block along (m, n, k), its time in cycles and what it moves."""

    tiles: tuple[int, ...]
    block: tuple[int, ...]
    cycles: float
    moved: Moved


class GemmMapper:
    """Finds the fastest mapping of a shape among all grid cuts and block sizes."""

    def __init__(
        self, machine: Machine, element_bytes: int, weight_bytes: float | None = None
    ) -> None:
        self._machine = machine
        self._bytes = element_bytes
        self._weight_bytes = element_bytes if weight_bytes is None else weight_bytes
        self._cuts = np.array(_grid_cuts(machine.rows, machine.cols), dtype=np.float64)
        self._blocks = np.array(_blocks(machine, element_bytes), dtype=np.float64)

    def plan(self, m: int, n: int, k: int, groups: int = 1) -> GemmPlan:
        """The fastest mapping of ``groups`` times C[m, n] = A[m, k] B[k, n].

        The first found among equals is taken.
        """
        # Cutting m well below the engine's rows, or blocks past the whole of m, only pads.
        grain = self._machine.row_grain
        tiles_m, block_m = self._cuts[:, 0], self._blocks[:, 0]
        cuts = self._cuts[(tiles_m == 1) | (tiles_m * grain < 2 * m)]
        blocks = self._blocks[block_m < m + grain]
        times = self._times(cuts[:, :, np.newaxis], blocks.T, (m, n, k), groups)
        best = np.unravel_index(int(np.argmin(times)), times.shape)
        tiles, block = (tuple(map(int, part)) for part in (cuts[best[0]], blocks[best[1], :3]))
        return GemmPlan(
            tiles, block, float(times[best]), self._moved(tiles, block, (m, n, k), groups)
        )

    def _times(self, cuts: Array, blocks: Array, shape: tuple[int, int, int], groups: int) -> Array:
        """Times of every cut (first axis) with every block (second axis)."""
        m, n, k = shape
        tiles_m, tiles_n, tiles_k = cuts[:, 0], cuts[:, 1], cuts[:, 2]
        block_m, block_n, block_k, block_cycles = blocks
        machine = self._machine
        per_link = self._bytes / machine.link_bytes_per_cycle
        per_memory = self._bytes / machine.memory_bytes_per_cycle
        per_weight = self._weight_bytes / machine.memory_bytes_per_cycle
        narrow = self._weight_bytes / self._bytes
        share_m, share_n, share_k = np.ceil(m / tiles_m), np.ceil(n / tiles_n), np.ceil(k / tiles_k)
        passes_m, passes_n = np.ceil(share_m / block_m), np.ceil(share_n / block_n)
        passes = groups * passes_m * passes_n
        steps = passes * np.ceil(share_k / block_k)
        reduction = np.where(tiles_k > 1, share_m * share_n * per_link, 0.0)
        last = 1 / passes
        write = m * n * per_memory

        compute = steps * block_cycles
        taken_in = share_m * passes_n + share_n * passes_m * narrow
        communication = groups * (share_k * per_link * taken_in + reduction * (1 - last))
        read = m * k * per_memory * passes_n + k * n * per_weight * passes_m
        memory = groups * (read + write * (1 - last))
        supply = np.maximum(communication, memory)
        longer = np.maximum(compute, supply)
        pipeline = longer + (compute + supply - longer) / steps
        crossings = machine.cross_cycles * (1 + (tiles_k > 1))
        written = (write + reduction) * last
        total: Array = pipeline + written + crossings + machine.memory_latency_cycles
        return total

    def _moved(
        self,
        tiles: tuple[int, ...],
        block: tuple[int, ...],
        shape: tuple[int, int, int],
        groups: int,
    ) -> Moved:
        """What a mapping moves, as its times count it."""
        m, n, k = shape
        share_m, share_n, share_k = (
            -(-size // parts) for size, parts in zip(shape, tiles, strict=True)
        )
        passes_m, passes_n = -(-share_m // block[0]), -(-share_n // block[1])
        read = m * k * passes_n * self._bytes + k * n * passes_m * self._weight_bytes
        taken_in = share_m * passes_n * self._bytes + share_n * passes_m * self._weight_bytes
        summed = share_m * share_n * self._bytes if tiles[2] > 1 else 0
        delivered = prod(tiles) * (share_k * taken_in + summed)
        return Moved(groups * (read + m * n * self._bytes), groups * delivered)


def least_gemm_bytes(machine: Machine, element_bytes: int) -> int:
    """Bytes of a tile's memory that the buffers of the smallest block take."""
    sides = machine.row_grain, machine.column_grain, machine.inner_grain
    return _buffer_bytes(*sides, element_bytes)


def _buffer_bytes(m: int, n: int, k: int, element_bytes: int) -> int:
    """Bytes of a block of C and of two panels each of A and B."""
    return (m * n + 2 * (m * k + k * n)) * element_bytes


def _blocks(machine: Machine, element_bytes: int) -> list[tuple[int, int, int, int]]:
    """Blocks (m, n, k, engine cycles) whose buffers fit a tile's memory."""
    result = []
    for rows, columns, inner in product(_ROW_MULTIPLES, _COLUMN_MULTIPLES, _INNER_MULTIPLES):
        m, n, k = (
            rows * machine.row_grain,
            columns * machine.column_grain,
            inner * machine.inner_grain,
        )
        if _buffer_bytes(m, n, k, element_bytes) <= machine.sram_bytes:
            result.append((m, n, k, machine.engine.gemm_cycles(m, k, n)))
    return result


def _grid_cuts(rows: int, cols: int) -> list[tuple[int, int, int]]:
    """Cuts (m, n, k) of the grid that give each part a rectangle, all tiles used."""
    return sorted(
        {
            (row[0] * col[0], row[1] * col[1], row[2] * col[2])
            for row, col in product(_factors(rows), _factors(cols))
        }
    )


def _factors(side: int) -> list[tuple[int, int, int]]:
    return [
        (first, second, side // (first * second))
        for first in range(1, side + 1)
        for second in range(1, side + 1)
        if side % (first * second) == 0
    ]
