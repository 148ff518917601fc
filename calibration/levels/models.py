"""Whole kernels at adjacent levels: what each level above `at` adds to the error below it.

The cases are small grids of the chip that is exactly the RTL, from bound by communication to bound
by computation. Where links and ports contend, `lt` differs from `at`; the closed forms differ from
`lt` where tiles do not all do the same.
"""

import math
from collections.abc import Iterator

from calibration.store import save_levels
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing, own_tile
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.level_errors import LevelPoint
from tlm.tiles.layout import SUM_BITS, WORD_BITS
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.programs import on_tiles
from workloads.kernels.catalogue import ATTENTION, GEMM, KERNELS, Kernel, Sizes
from workloads.kernels.target import chip_target

Grid = tuple[int, int]
_SQUARE: tuple[Grid, ...] = ((3, 3), (4, 4), (8, 8))
_ANY: tuple[Grid, ...] = ((3, 5), (4, 4), (8, 8))
_FEW: tuple[Grid, ...] = ((3, 5), (4, 4), (6, 6))
# The laws know the array by its size alone: one grid shows whether elements of 16 bits differ.
_WIDE: Grid = (4, 4)
# (m, k, n) of a tile: cubes, from fills-the-array to hides-the-transfers, and one that does not.
_GEMM_BLOCKS = ((8, 8, 8), (16, 16, 16), (32, 32, 32), (8, 32, 8))
# (k, n) of a tile.
_GEMV_BLOCKS = ((16, 8), (64, 16), (128, 64))
# (rows, columns) of a tile.
_SOFTMAX_BLOCKS = ((4, 8), (16, 16), (32, 64))
# (rows of Q, keys, depth) of a tile, a head for each column of tiles.
_ATTENTION_BLOCKS = ((8, 8, 16), (16, 16, 32), (32, 32, 32))


def compare_levels() -> list[LevelPoint]:
    """Run every kernel on every case at all levels, and store the outcome."""
    points = list(level_points(KERNELS))
    save_levels(points)
    return points


def level_points(kernels: dict[str, Kernel]) -> Iterator[LevelPoint]:
    """Run some kernels on every case at all levels."""
    for name, kernel in kernels.items():
        for grid in _grids(name, kernel):
            for sizes in _problems(name, kernel, grid):
                yield _point(name, kernel, grid, sizes, "int8")
        for sizes in _problems(name, kernel, _WIDE):
            yield _point(name, kernel, _WIDE, sizes, "int16")


def _grids(name: str, kernel: Kernel) -> tuple[Grid, ...]:
    if kernel.form == ATTENTION:  # long runs
        return _FEW
    return _ANY if name.endswith("gemv") or kernel.form != GEMM else _SQUARE


def _point(name: str, kernel: Kernel, grid: Grid, sizes: Sizes, dtype: str) -> LevelPoint:
    chip = load_chip(f"rtl-{grid[0]}x{grid[1]}").for_dtype(dtype)
    timing, tile = noc_timing(chip), own_tile(chip)
    assert tile is not None
    target = chip_target(chip, grid, timing, WORD_BITS // tile.array_size, SUM_BITS)
    plan = kernel.planned(sizes, target)
    program = on_tiles(kernel.program(plan), tile)
    shown = zip(kernel.form.text.split(","), sizes, strict=True)
    where = chip.name if dtype == "int8" else f"{chip.name} {dtype}"
    return LevelPoint(
        kernel=name,
        case=f"{where}: " + " ".join(f"{size}={value}" for size, value in shown),
        dtype=dtype,
        balance=plan.balance,
        at=run_at(program, timing, TiledMesh(*grid, timing, tile), queues=tile.queues).cycles,
        lt=run_lt(program, timing, queues=tile.queues).cycles,
        perf=kernel.closed_form(plan, timing),
    )


def _problems(name: str, kernel: Kernel, grid: Grid) -> Iterator[Sizes]:
    """Sizes that give the tiles of a grid their blocks."""
    rows, cols = grid
    if kernel.form == ATTENTION:
        for queries, keys, depth in _ATTENTION_BLOCKS:
            keys *= math.lcm(rows, cols)  # the one or the other shares them
            yield 1, cols, cols, rows * queries, keys, depth, depth
    elif kernel.form != GEMM:
        for height, width in _SOFTMAX_BLOCKS:
            yield rows * height, cols * width
    elif name.endswith("gemv"):
        for depth, width in _GEMV_BLOCKS:
            yield 1, cols * width, rows * depth
    else:
        for m, k, n in _GEMM_BLOCKS:
            yield rows * m, cols * n, rows * k
