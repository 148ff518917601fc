"""A chip profile as the closed forms use it: a grid of tiles with off-chip memory, in cycles."""

from dataclasses import dataclass
from typing import NamedTuple

from tlm.chips import Chip
from tlm.chips.profile import ForeignNoc
from tlm.compute.base import Compute
from tlm.errors import InputError


class Moved(NamedTuple):
    """Bytes that a kernel moves.

    Attributes:
        memory: Read from off-chip memory and written to it.
        delivered: Taken in by tiles from the network. What is multicast counts once for each tile
            that it reaches: as each passes it on to the next, that is also the links it takes.
    """

    memory: float = 0.0
    delivered: float = 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What the closed forms need of a chip.

    ``row_grain``, ``column_grain`` and ``inner_grain`` are the block sizes that fill the matrix
    engine: C[rows, columns] = A[rows, inner] B[inner, columns]. ``memory_hops`` is the mean way
    between the memory, beyond an edge of the grid or at each tile, and the first tile.
    """

    rows: int
    cols: int
    clock_hz: float
    engine: Compute
    row_grain: int
    column_grain: int
    inner_grain: int
    vector_ops_per_cycle: float
    sram_bytes: int
    sram_bytes_per_cycle: int
    link_bytes_per_cycle: int
    hop_cycles: int
    cross_cycles: int
    memory_bytes_per_cycle: float
    memory_latency_cycles: int
    memory_hops: float
    memory_bytes: int

    @property
    def tiles(self) -> int:
        """Tiles of the grid."""
        return self.rows * self.cols

    @property
    def macs_per_cycle(self) -> float:
        """Peak multiply-accumulates of the chip."""
        return self.tiles * self.engine.macs_per_cycle


def machine_of(chip: Chip, tiles: int | None = None) -> Machine:
    """Take from a profile what the closed forms need.

    A pool of ``tiles`` of the chip's is whole rows of it, with its share of the memory's bandwidth;
    ``memory_bytes`` stays that of the chip where all tiles share it.

    ``cross_cycles`` is the network's latency from corner to corner. The vector engine's
    FLOP a cycle count a multiply-add as two, so half as many other operations.

    Raises:
        InputError: naming the parts that the chip lacks, as ``missing_parts`` says, or if the tiles
            are not whole rows.
    """
    if lacks := missing_parts(chip):
        raise InputError(
            f"chip '{chip.name}': no closed forms of it; allowed: chips with "
            "off-chip memory, a vector engine, a bandwidth of SRAM and a 'redmule' or "
            f"'tiled-systolic' matrix engine; it lacks {', '.join(lacks)}"
        )
    tile, memory, noc = chip.tile, chip.memory, chip.noc
    grains, vector, sram = tile.matrix.grains, tile.vector_flop_per_cycle, tile.sram_bytes_per_cycle
    assert memory and vector and sram and grains and isinstance(noc, ForeignNoc)  # as checked
    rows = chip.grid.rows
    if tiles is not None:
        rows, rest = divmod(tiles, chip.grid.cols)
        if rest or not 1 <= rows <= chip.grid.rows:
            raise InputError(
                f"tiles of a pool of '{chip.name}': found {tiles}; allowed: whole rows, multiples "
                f"of {chip.grid.cols} up to {chip.grid.rows * chip.grid.cols}"
            )
    share = rows / chip.grid.rows
    return Machine(
        rows=rows,
        cols=chip.grid.cols,
        clock_hz=chip.clock_hz,
        engine=tile.matrix.compute(),
        row_grain=grains.rows,
        column_grain=grains.columns,
        inner_grain=grains.inner,
        vector_ops_per_cycle=vector / 2,
        sram_bytes=int(tile.sram_kib * 1024),
        sram_bytes_per_cycle=sram,
        link_bytes_per_cycle=noc.flit_bytes,
        hop_cycles=noc.hop_cycles,
        cross_cycles=(rows + chip.grid.cols - 2) * noc.hop_cycles + noc.ejection_cycles,
        memory_bytes_per_cycle=memory.bandwidth_bytes_per_s * share / chip.clock_hz,
        memory_latency_cycles=memory.latency_cycles,
        memory_hops=0.0 if memory.per_tile else (rows + 1) / 2,
        memory_bytes=int(memory.capacity_bytes * (share if memory.per_tile else 1)),
    )


def missing_parts(chip: Chip) -> list[str]:
    """What ``machine_of`` needs and a profile does not have; empty if it knows such chips."""
    tile, noc = chip.tile, chip.noc
    engine = tile.matrix.kind
    parts = {
        "[memory], off-chip memory": chip.memory is not None,
        "tile.vector_flop_per_cycle, a vector engine": tile.vector_flop_per_cycle is not None,
        "tile.sram_bytes_per_cycle, a bandwidth of SRAM": tile.sram_bytes_per_cycle is not None,
        f"a [tile.matrix] of kind redmule or tiled-systolic (found {engine})": tile.matrix.grains,
        f"a [noc] of kind foreign (found {noc.kind})": isinstance(noc, ForeignNoc),
    }
    lacks = [part for part, there in parts.items() if not there]
    dies = chip.dies
    if dies is not None:
        lacks.append(
            f"closed forms of several dies: allowed without [dies], a single die, found "
            f"{dies.rows} x {dies.cols}"
        )
    return lacks
