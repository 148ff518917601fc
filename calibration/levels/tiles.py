"""Whole kernels on tiles in Verilog, and at the level `at`: what the lowest model level leaves out.

Every kernel that tiles in Verilog run is run there, on random blocks that are held against the
functional interpreter bit for bit, and at `at`: for elements of both widths, on up to 8x8 tiles,
attention, streamed products and kernels of rows with their blocks in off-chip memory, too. Nothing
is fitted to these runs: the constants come from single jobs, transfers and credits
(`calibration.tiles`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from calibration.levels.cases import STREAMED, Blocks, Tiles, problems
from calibration.levels.in_parts import Progress, kept_or_made, unheard
from calibration.store import save_tiles, tile_sources
from cosim.tiles.functional import held_equal
from cosim.tiles.lowering import lower
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import tile_model
from cosim.verilog import EDGE_FILES, TILE_SOURCES
from tlm.comparisons import TilePoint, load_tiles
from tlm.engines.at import run_at
from tlm.interconnect.base import Interconnect
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.memory.dram.calibration import rtl_channel
from tlm.memory.dram.target import DramMemory
from tlm.offchip.system import OffChipMemory
from tlm.program.functional import TileBlocks
from tlm.program.operations import Engine
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.programs import on_tiles
from tlm.trace import EngineSpan, Recorder, TransferSpan
from workloads.kernels.catalogue import (
    ATTENTION,
    HEADS,
    KERNELS,
    LATENT,
    ROWS,
    SUMS,
    Choices,
    Kernel,
    Sizes,
)

# In panels: as many rows, or columns, as the array has.
_BLOCKS: Blocks = {
    "gemm": ((1, 1, 1), (2, 2, 2), (1, 1, 4), (3, 3, 1)),
    "gemv": ((1, 2), (8, 4)),
    "softmax": ((3, 6), (8, 32)),
    "attention": ((1, 2, 1, 1), (2, 2, 2, 1)),
}
_SQUARE = ("mesh-gemm", "mesh-gemm-t", "cannon")
#: Products whose operands lie in off-chip memory, if there is some.
_FROM_MEMORY = ("stream-gemm", "grouped-gemm", "partitioned-gemm")
_SEED = 11
# In Verilog 8x8 tiles take a second for a thousand cycles: the first of the panels will do.
_MOST_TILES_OF_ALL_PANELS = 16


#: What is compared.
COMPARED = (
    *(Tiles(grid) for grid in ((2, 2), (4, 4), (3, 5), (8, 8))),
    *(Tiles(grid, "int16") for grid in ((2, 2), (4, 4))),
    *(Tiles(grid, memory=True) for grid in ((2, 2), (4, 4))),
)


@dataclass(frozen=True, slots=True)
class TileCase:
    """A kernel on some tiles."""

    kernel: str
    tiles: Tiles
    sizes: Sizes
    choices: Choices = Choices()

    @property
    def variant(self) -> str:
        """The choices in words; empty for what a kernel does by itself."""
        chosen = (self.choices.collective, self.choices.schedule)
        return " ".join(choice for choice in chosen if choice is not None)

    @property
    def label(self) -> str:
        """Tiles and sizes in words."""
        return self.tiles.label(KERNELS[self.kernel], self.sizes)


def compare_tiles(
    *, force: bool = False, workers: int = 1, progress: Progress = unheard
) -> list[TilePoint]:
    """Run every kernel on every case both ways; store the outcome.

    Args:
        force: Also if what is stored still holds.
        workers: Processes.
        progress: Told what is done.

    Raises:
        SimulationError: if the tiles cannot be built, stop, or compute something else.
        HangError: if they stand still.
    """
    rtl = (*TILE_SOURCES, *EDGE_FILES)
    return kept_or_made(
        TilePoint, COMPARED, _part, tile_sources(rtl), lambda: load_tiles().points,
        lambda points: save_tiles(points, rtl), force=force, workers=workers, progress=progress,
    )  # fmt: skip


def _part(tiles: Tiles) -> list[TilePoint]:
    """Every case on some tiles."""
    with TileMachine(tile_model(tiles.chip, tiles.grid, memory=tiles.memory)) as machine:
        return [point(case, machine) for case in cases(tiles)]


def point(case: TileCase, machine: TileMachine) -> TilePoint:
    """A case both ways."""
    grid, memory, kernel = case.tiles.grid, case.tiles.memory, KERNELS[case.kernel]
    timing, tile, place = case.tiles.timing, case.tiles.tile, case.tiles.place
    edge = place.offchip
    plan = kernel.planned(case.sizes, place, case.choices)
    program = kernel.program(plan)
    run = held_equal(program, lower(program, machine.model), TileBlocks(program, _SEED), machine)
    seen = _Busy(grid)
    timed = on_tiles(program, tile)
    rows = grid[0] + memory

    def at(mesh: Interconnect, recorder: Recorder | None = None) -> int:
        channels = None
        if edge is not None:
            channels = OffChipMemory(edge, lambda env: DramMemory(env, rtl_channel()))
        return run_at(timed, timing, mesh, recorder, tile.queues, channels).cycles

    cycles = at(TiledMesh(*grid, timing, tile, edge_rows=int(memory)), seen)
    busy = {
        engine.name.lower(): (
            sum(span.cycles for span in run.spans if span.engine is engine),
            int(seen.cycles[engine]),
        )
        for engine in Engine
    }
    return TilePoint(
        kernel=case.kernel,
        variant=case.variant,
        case=case.label,
        dtype=case.tiles.dtype,
        memory=memory,
        balance=plan.balance,
        rtl=run.cycles,
        at=cycles,
        alone=at(HandshakeMesh(rows, grid[1], timing)),
        busy={name: both for name, both in busy.items() if any(both)},
    )


class _Busy:
    """How long engines were busy, all tiles together."""

    def __init__(self, grid: tuple[int, int]) -> None:
        self.region = TileSet(range(grid[0]), range(grid[1]))
        self.cycles = np.zeros(len(Engine), dtype=np.int64)

    def operation(self, span: EngineSpan) -> None:
        """An operation of an engine."""
        self.cycles[span.engine] += span.end_cycle - span.start_cycle

    def transfer(self, span: TransferSpan) -> None:
        """Its arrival keeps no engine busy."""


def cases(tiles: Tiles) -> Iterator[TileCase]:
    """Every kernel that some tiles run, in sizes from bound by messages to bound by work."""
    rows, cols = tiles.grid
    for name, kernel in KERNELS.items():
        if (name in _SQUARE and rows != cols) or (tiles.memory and not _loads(name, kernel)):
            continue
        for sizes in _sizes(name, kernel, tiles):
            for choices in _choices(name):
                yield TileCase(name, tiles, sizes, choices)


def _loads(name: str, kernel: Kernel) -> bool:
    """Whether a kernel's blocks lie in off-chip memory: of attention, of rows, or of products."""
    rows = kernel.form in (ATTENTION, LATENT, ROWS, HEADS, SUMS) and name != "softmax"
    return rows or name in _FROM_MEMORY


def _choices(name: str) -> tuple[Choices, ...]:
    if name == "softmax":
        return tuple(Choices(each) for each in (None, "chain", "tree", "sequential"))
    if name == "flat-attention":
        return (Choices(), Choices(schedule="naive"))
    return (Choices(), *(Choices(each) for each in STREAMED.get(name, ())))


def _sizes(name: str, kernel: Kernel, tiles: Tiles) -> Iterator[Sizes]:
    rows, cols = tiles.grid
    some = None if rows * cols <= _MOST_TILES_OF_ALL_PANELS else 1
    unit, sharers = tiles.tile.array_size, rows if name.startswith(("flash", "tile")) else cols
    return islice(problems(name, kernel, tiles.grid, _BLOCKS, unit=unit, sharers=sharers), some)
