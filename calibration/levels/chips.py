"""Closed forms against `lt` at the constants of the shipped chips, with off-chip memory or without.

Cases are drawn: grids from 4x4 to 32x32, and groups of four tiles, ragged sizes, from bound by
transfers or memory to bound by computation. No closed form is fitted to them. Those that cost
little run at level `at`, too. The project's own chips have a comparison to themselves besides, of
cases without off-chip memory (models.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibration.levels.cases import STREAMED, Grid
from calibration.levels.in_parts import Progress, kept_or_made, unheard
from calibration.store import chip_sources, save_chips
from tlm.chips import Chip, load_chip
from tlm.chips.parts import chip_router, noc_timing, own_tile
from tlm.comparisons import ChipPoint, load_chips
from tlm.compute.base import ceil_div
from tlm.engines.at.cost import Cost
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.zero_load import NocTiming
from tlm.on_routers import formula_memory, run_on_routers
from tlm.program import Program
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import FREE, QueueTiming, TileTiming
from workloads.kernels.catalogue import (
    ATTENTION,
    GEMM,
    GROUPS,
    HEADS,
    KERNELS,
    LATENT,
    SUMS,
    Choices,
    Kernel,
    Plan,
    Sizes,
)
from workloads.kernels.gemm.partition_plan import PARTITIONS
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.tile_jobs import on_own_tiles
from workloads.machine.dtypes import DTYPE_BITS
from workloads.machine.order import PLACEMENTS
from workloads.machine.place import Place, Rectangle, chip_place

#: Chips by name, with the elements that kernels compute there, and about a tile's side of a block.
CHIPS: dict[str, tuple[str, int]] = {
    "rtl": ("int8", 8),
    "flat32": ("fp16", 32),
    "flat32-wafer": ("fp8", 32),
    "npusim-large": ("fp16", 64),
    "npusim-small": ("fp16", 32),
    "wse2": ("fp16", 4),
}
GRIDS: tuple[Grid, ...] = ((2, 2), (4, 4), (8, 8), (16, 16), (32, 32))
#: The first is a group of tiles: only what runs in groups. Placements vary up to so many tiles.
_GROUP, _PLACED_TILES = (2, 2), 4 * 4
_SEED = 7
#: Of products: sides m, n, k of a tile's block in units; of one row: k and n.
_BLOCKS = ((1, 1, 1), (2, 2, 2), (4, 4, 4), (1, 1, 4), (4, 4, 1))
_VECTORS = ((1, 1), (4, 1), (1, 4), (4, 4), (8, 8))
#: Rows of a tile, and its columns in units.
_ROWS = ((4, 1), (4, 4), (16, 1), (16, 4), (64, 8))
#: Sequences, heads of queries and of keys, rows of Q and keys of a tile and depth in units; no
#: rows: one of each sequence.
_ATTENTION = ((1, 8, 8, 1, 1, 1), (1, 8, 8, 2, 2, 2), (2, 4, 4, 4, 4, 2), (1, 8, 2, 0, 8, 2),
              (4, 16, 4, 0, 32, 2))  # fmt: skip
_DEPTHS = (8, 128)
#: Of attention whose runs of tiles share several streams, without memory: streams of a tile alone,
#: beside which there are a few more; heads of keys, of queries for each, keys of a tile and depth
#: in units.
_IN_RUNS = ((1, 1, 4, 2, 4), (1, 4, 1, 4, 2), (2, 2, 8, 1, 2))
_RUNS = "decode-attention"
#: One more stream for so many tiles.
_TILES_A_STREAM = 8
_HEAD, _OPERANDS, _PRODUCTS = 32, 4, 3
#: Of products of experts: how many, rows of each, and a tile's share of n and k in units.
_EXPERTS = ((24, 4, 2, 2), (12, 64, 2, 2))
#: Of weights in fewer bits than tiles compute in.
_WEIGHT_BITS = 4.0
#: Kernels that serving may be asked to run with collectives by messages; tiles of such variants.
_SERVING = ("stream-gemm", "grouped-gemm", "rms-norm", "decode-attention", "flat-attention")
_VARIANT_TILES = 8 * 8
#: Level `at` runs cases up to so many steps and packets, and no tiles more than these.
_CHEAP, _AT_TILES = 1_000, 16 * 16
#: And of each kernel on a chip's grid the cheapest: how many, and up to which cost; others of
#: FlatAttention with all tiles in a group, and with operands in memory, whose channels tiles share.
_CHEAPEST, _CHEAPEST_GROUPS, _CHEAPEST_LOADED = (1, 10_000), (2, 80_000), (3, 20_000)


@dataclass(frozen=True, slots=True)
class Ground:
    """Tiles of a chip, and what they cost."""

    chip: Chip
    timing: NocTiming
    place: Place
    tile: TileTiming | None

    @classmethod
    def of(cls, name: str, grid: Grid, *, memory: bool) -> "Ground":
        """Tiles of a shipped chip.

        Raises:
            InputError: if the chip has not so many, or no memory; if a measurement is stale.
        """
        rows, cols = grid
        dtype = CHIPS[name][0]
        chip = _chip(name, grid).for_dtype(dtype)
        Rectangle(0, 0, rows, cols).check_within(chip)
        timing = noc_timing(chip)
        place = chip_place(chip, grid, timing, *DTYPE_BITS[dtype], memory=memory)
        return cls(chip, timing, place, own_tile(chip))

    def both(self, kernel: Kernel, plan: Plan) -> tuple[int, int] | None:
        """Cycles of a plan at `lt` and at `perf`; None if its buffers do not fit."""
        program, planned, timing = kernel.program(plan), plan, self.timing
        if program.tile_bytes > self.place.tile_bytes:
            return None
        if self.tile is not None:
            planned, timing = on_own_tiles(plan, program, timing, self.tile)
        timed = self._timed(program)
        ran = run_lt(timed, self.timing, queues=self._queues, offchip=self.place.offchip)
        return ran.cycles, kernel.closed_form(planned, timing)

    @property
    def _queues(self) -> QueueTiming:
        return FREE if self.tile is None else self.tile.queues

    def _timed(self, program: Program) -> Program:
        """A program with what the chip's tiles take for it."""
        return program if self.tile is None else on_tiles(program, self.tile)

    def at_cost(self, program: Program) -> int | None:
        """Steps and packets at level `at`; None on large grids."""
        if program.rows * program.cols > _AT_TILES:
            return None
        return sum(Cost.of(program, chip_router(self.chip).packet_flits, self.place.offchip))

    def at(self, program: Program) -> int:
        """Cycles of a program at level `at`, off-chip memory by its formula."""
        ran, _ = run_on_routers(
            self._timed(program),
            chip_router(self.chip),
            tile=self.tile,
            queues=self._queues,
            offchip=formula_memory(self.place.offchip),
        )
        return ran.cycles


def compare_chips(
    *, force: bool = False, workers: int = 1, progress: Progress = unheard
) -> list[ChipPoint]:
    """Compare all kernels on all chips, and store the outcome.

    Args:
        force: Also if what is stored still holds.
        workers: Processes.
        progress: Told what is done.
    """
    parts = [(chip, grid) for chip in CHIPS for grid in GRIDS]
    return kept_or_made(
        ChipPoint, parts, _part, chip_sources(), lambda: load_chips().points, save_chips,
        lambda part: part[1][0] * part[1][1], force=force, workers=workers, progress=progress,
    )  # fmt: skip


def _part(part: tuple[str, Grid]) -> list[ChipPoint]:
    chip, grid = part
    return list(chip_points(_SEED, (chip,), (grid,)))


def chip_points(
    seed: int, chips: Sequence[str] = tuple(CHIPS), grids: Sequence[Grid] = GRIDS
) -> Iterator[ChipPoint]:
    """Compare all kernels on some chips, on cases of a seed."""
    for name in chips:
        for grid in grids:
            for memory in (False, True):
                if not _has(name, grid, memory=memory):
                    continue
                ground = Ground.of(name, grid, memory=memory)
                for kernel, choices in _runs(grid):
                    yield from _points(name, ground, kernel, grid, seed, choices)


def _has(name: str, grid: Grid, *, memory: bool) -> bool:
    """Whether a chip has so many tiles, and off-chip memory if that is asked for."""
    chip = _chip(name, grid)
    enough = grid[0] <= chip.grid.rows and grid[1] <= chip.grid.cols
    # The project's own have channels below their columns, which no profile names.
    return enough and (not memory or chip.memory is not None or chip.calibration is not None)


def _chip(name: str, grid: Grid) -> Chip:
    """A shipped chip; of the project's own the one of these rows and columns."""
    return load_chip(f"rtl-{grid[0]}x{grid[1]}" if name == "rtl" else name)


def _runs(grid: Grid) -> Iterator[tuple[str, Choices]]:
    """Kernels by themselves and in variants: skewed, by messages, by streams, in partitions.

    Causal attention, weights that lie in the tiles, and those that tiles widen are more.
    FlatAttention runs also with all tiles in a group, each way.
    """
    for name, kernel in KERNELS.items():
        yield from ((name, each) for each in _placed(kernel, grid))
        if grid == _GROUP:
            continue
        yield name, Choices()
        if "skewed" in kernel.choices:
            yield name, Choices(skewed=True)
        if grid[0] * grid[1] > _VARIANT_TILES:
            continue
        collectives = BY_MESSAGES if name in _SERVING else ()
        others = (*collectives, *STREAMED.get(name, ()))
        yield from ((name, Choices(collective=each)) for each in others)
        if "causal" in kernel.choices:
            for collective in (None, *collectives):
                yield name, Choices(collective=collective, causal=True)
        if "resident" in kernel.choices:
            yield name, Choices(resident=True)
        if "weight_bits" in kernel.choices:
            yield name, Choices(weight_bits=_WEIGHT_BITS)
    if grid == _GROUP:
        return
    if grid[0] * grid[1] <= _AT_TILES:
        yield "flat-attention", Choices(group=grid)
        for collective in (None, *BY_MESSAGES):
            choices = Choices(collective=collective, schedule="naive", group=grid)
            yield "flat-attention", choices
        yield "flat-attention", Choices(causal=True, schedule="naive", group=grid)


def _placed(kernel: Kernel, grid: Grid) -> Iterator[Choices]:
    """Partitions of a group, and the placements of small ones."""
    tiles = grid[0] * grid[1]
    if tiles > _VARIANT_TILES or "placement" not in kernel.choices:
        return
    partitions = PARTITIONS[:-1] if "partition" in kernel.choices else (None,)
    for placement in PLACEMENTS if tiles <= _PLACED_TILES else PLACEMENTS[:1]:
        for partition in partitions:
            choices = Choices(partition=partition, placement=placement)
            if grid == _GROUP or choices != Choices(placement=PLACEMENTS[0]):
                yield choices


def _points(
    chip: str, ground: Ground, name: str, grid: Grid, seed: int, choices: Choices
) -> Iterator[ChipPoint]:
    kernel, memory = KERNELS[name], ground.place.offchip is not None
    if choices.collective is not None and not kernel.variant(choices, ground.place):
        return  # as it is by itself
    stream = np.random.default_rng([seed, *chip.encode(), *name.encode(), *grid])
    lots = [_problems(name, kernel, grid, CHIPS[chip][1], stream)]
    if name == _RUNS and not memory and grid[0] * grid[1] <= _AT_TILES:
        lots.append(_shared_by_runs(grid, CHIPS[chip][1], stream))
    for problems in lots:
        yield from _compared(chip, ground, name, grid, choices, problems)


def _compared(
    chip: str, ground: Ground, name: str, grid: Grid, choices: Choices, problems: Iterator[Sizes]
) -> Iterator[ChipPoint]:
    kernel, memory = KERNELS[name], ground.place.offchip is not None
    points: list[ChipPoint] = []
    programs: list[Program] = []
    for sizes in problems:
        try:
            plan = kernel.planned(sizes, ground.place, choices)
        except InputError:
            continue  # not on this chip, or larger than its tiles
        if memory and kernel.without_memory(plan) is plan:
            return  # what it works on is in the tiles
        cycles = ground.both(kernel, plan)
        if cycles is not None:
            programs.append(kernel.program(plan))
            point = ChipPoint(
                chip=chip,
                kernel=name,
                variant=kernel.variant(choices, ground.place),
                memory=memory,
                case=_case(grid, sizes, choices),
                balance=plan.balance,
                at=None,
                lt=cycles[0],
                perf=cycles[1],
            )
            points.append(point)
    cheapest = _CHEAPEST_GROUPS if choices.group else _CHEAPEST
    if memory and not choices.group and not choices.placement:
        cheapest = _CHEAPEST_LOADED
    yield from _at_too(ground, points, programs, cheapest)


def _case(grid: Grid, sizes: Sizes, choices: Choices) -> str:
    group = f", group {choices.group[0]}x{choices.group[1]}" if choices.group else ""
    return f"{grid[0]}x{grid[1]}: {','.join(map(str, sizes))}{group}"


def _at_too(
    ground: Ground,
    points: Sequence[ChipPoint],
    programs: Sequence[Program],
    cheapest: tuple[int, int],
) -> Iterator[ChipPoint]:
    """Points with the cycles of their programs at level `at`, of those that cost little.

    Args:
        ground: Where they run.
        points: The points.
        programs: Theirs.
        cheapest: How many run whatever they cost, and up to which cost.
    """
    costs = [ground.at_cost(program) for program in programs]
    cases, dear = cheapest
    known = sorted(cost for cost in costs if cost is not None and cost <= dear)
    most = max([_CHEAP, *known[:cases]])
    for point, program, cost in zip(points, programs, costs, strict=True):
        cheap = cost is not None and cost <= most
        yield point.model_copy(update={"at": ground.at(program)}) if cheap else point


def _problems(
    name: str, kernel: Kernel, grid: Grid, unit: int, stream: np.random.Generator
) -> Iterator[Sizes]:
    """Sizes of problems, as drawn about those of the tables above."""
    rows, cols = grid
    drawn = partial(_drawn, stream)
    if kernel.form in (ATTENTION, LATENT):
        for sequences, heads, kv_heads, queries, keys, depth in _ATTENTION:
            wide = int(np.clip(depth * unit, *_DEPTHS))
            high = drawn(rows * queries * unit // 2) if queries else 1
            own = 1 if kernel.form == LATENT else kv_heads
            yield sequences, heads, own, high, drawn(cols * keys * unit), wide, wide
    elif kernel.form in (GEMM, GROUPS) and name.endswith("gemv"):
        for k, n in _VECTORS:
            yield 1, drawn(cols * n * unit), drawn(rows * k * unit)
    elif kernel.form in (GEMM, GROUPS):
        for m, n, k in _BLOCKS:
            deep = drawn(max(rows, cols) * k * unit)
            product = drawn(rows * m * unit), drawn(cols * n * unit), deep
            yield product if kernel.form == GEMM else (_PRODUCTS, *product)
        for groups, m, n, k in _EXPERTS if kernel.form == GROUPS else ():
            deep = drawn(max(rows, cols) * k * unit)
            yield groups, drawn(m), drawn(cols * n * unit), deep
    else:
        for high, columns in _ROWS:
            m, n = drawn(rows * high), drawn(cols * columns * unit)
            if kernel.form == HEADS:
                yield m, ceil_div(n, _HEAD) * _HEAD, _HEAD
            else:
                yield (m, n, _OPERANDS) if kernel.form == SUMS else (m, n)


def _shared_by_runs(grid: Grid, unit: int, stream: np.random.Generator) -> Iterator[Sizes]:
    """Sizes of attention with a few streams more than tiles alone would have evenly."""
    tiles = grid[0] * grid[1]
    for each, kv_heads, sharers, keys, depth in _IN_RUNS:
        streams = each * tiles + _drawn(stream, tiles // _TILES_A_STREAM)
        wide = int(np.clip(depth * unit, *_DEPTHS))
        length = _drawn(stream, grid[1] * keys * unit)
        yield ceil_div(streams, kv_heads), kv_heads * sharers, kv_heads, 1, length, wide, wide


def _drawn(stream: np.random.Generator, size: int) -> int:
    """A size as drawn about another."""
    return max(1, int(size * stream.uniform(0.6, 1.4)))
