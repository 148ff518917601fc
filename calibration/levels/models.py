"""Whole kernels at adjacent levels: what each level above `at` adds to the error below it.

The cases are small grids of the chip that is exactly the RTL, from bound by communication to bound
by computation. Where links and ports contend, `lt` differs from `at`; the closed forms differ from
`lt` where tiles do not all do the same.
"""

import math
from collections.abc import Iterator

from calibration.levels.cases import Blocks, Grid, Tiles, problems
from calibration.levels.in_parts import Progress, kept_or_made, unheard
from calibration.store import level_sources, save_levels
from tlm.comparisons import LevelPoint, load_levels
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.programs import on_tiles
from workloads.kernels.catalogue import (
    ATTENTION,
    GEMM,
    GROUPS,
    KERNELS,
    LATENT,
    Choices,
    Kernel,
    Sizes,
)
from workloads.kernels.tile_jobs import on_own_tiles

_SQUARE: tuple[Grid, ...] = ((3, 3), (4, 4), (8, 8))
_ANY: tuple[Grid, ...] = ((3, 5), (4, 4), (8, 8))
_FEW: tuple[Grid, ...] = ((3, 5), (4, 4), (6, 6))
# The laws know the array by its size alone: one grid shows whether elements of 16 bits differ.
_WIDE: Grid = (4, 4)
_BLOCKS: Blocks = {
    # Cubes, from fills-the-array to hides-the-transfers, and one that does not.
    "gemm": ((8, 8, 8), (16, 16, 16), (32, 32, 32), (8, 8, 32)),
    "gemv": ((16, 8), (64, 16), (128, 64)),
    "softmax": ((4, 8), (16, 16), (32, 64)),
    "attention": ((8, 8, 16, 16), (16, 16, 32, 32), (32, 32, 32, 32)),
}


def compare_levels(
    *, force: bool = False, workers: int = 1, progress: Progress = unheard
) -> list[LevelPoint]:
    """Run every kernel on every case at all levels, and store the outcome.

    Args:
        force: Also if what is stored still holds.
        workers: Processes.
        progress: Told what is done.
    """
    return kept_or_made(
        LevelPoint, list(KERNELS), _part, level_sources(), lambda: load_levels().points,
        save_levels, force=force, workers=workers, progress=progress,
    )  # fmt: skip


def _part(name: str) -> list[LevelPoint]:
    return list(level_points({name: KERNELS[name]}))


def level_points(kernels: dict[str, Kernel]) -> Iterator[LevelPoint]:
    """Run some kernels on every case at all levels."""
    for name, kernel in kernels.items():
        narrow = [Tiles(grid) for grid in _grids(name, kernel)]
        for tiles in (*narrow, Tiles(_WIDE, "int16")):
            # The one or the other line of tiles shares the keys.
            sharers = math.lcm(*tiles.grid)
            for sizes in problems(name, kernel, tiles.grid, _BLOCKS, unit=1, sharers=sharers):
                yield _point(name, kernel, tiles, sizes, Choices())
                if "causal" in kernel.choices:
                    yield _point(name, kernel, tiles, sizes, Choices(causal=True))


def _grids(name: str, kernel: Kernel) -> tuple[Grid, ...]:
    if kernel.form in (ATTENTION, LATENT):  # long runs
        return _FEW
    products = not name.endswith("gemv") and kernel.form in (GEMM, GROUPS)
    return _SQUARE if products else _ANY


def _point(name: str, kernel: Kernel, tiles: Tiles, sizes: Sizes, choices: Choices) -> LevelPoint:
    timing, tile = tiles.timing, tiles.tile
    plan = kernel.planned(sizes, tiles.place, choices)
    planned = kernel.program(plan)
    program = on_tiles(planned, tile)
    mesh = TiledMesh(*tiles.grid, timing, tile)
    form = kernel.closed_form(*on_own_tiles(plan, planned, timing, tile))
    return LevelPoint(
        kernel=f"{name} {kernel.variant(choices, tiles.place)}".rstrip(),
        case=tiles.label(kernel, sizes),
        dtype=tiles.dtype,
        balance=plan.balance,
        at=run_at(program, timing, mesh, queues=tile.queues).cycles,
        lt=run_lt(program, timing, queues=tile.queues).cycles,
        perf=form,
    )
