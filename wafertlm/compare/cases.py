"""Small cases of a kernel of a run: on what errors of two variants are held against each other.

A case is a problem of the run on a grid that level `at` can run. Every tile has about as much to
compute, to send and to load as in the run; where a case would take long, it has less of that.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tlm.chips import Chip
from tlm.chips.parts import PacketRouter, chip_router, offchip_channels
from tlm.compute.base import ceil_div
from tlm.engines.at.cost import Cost
from tlm.errors import InputError
from workloads.kernels.catalogue import (
    ATTENTION,
    GEMM,
    GROUPS,
    HEADS,
    KERNELS,
    LATENT,
    Choices,
    Sizes,
)
from workloads.machine.kv_levels import KvLevels
from workloads.machine.place import Place
from workloads.serving.price.mapping import Mapped

#: Cases of a kernel. A case that is drawn alike is off by no more than the worst of nine in nine of
#: ten draws: it is as likely as each of these to be the worst (split conformal prediction, Vovk et
#: al., Algorithmic Learning in a Random World, 2005).
CASES = 9
#: In turn.
_GRIDS = ((4, 4), (8, 8))
#: Steps and packets of a case at level `at`: about a CPU-second.
MOST_COST = 5_000
#: Amounts of work are drawn about those of the run, evenly by logarithm.
_ABOUT = 1.5


class Work(NamedTuple):
    """A kernel on a problem, as a run has it.

    Attributes:
        kernel: Its name.
        choices: Its variant.
        place: Where it runs.
        sizes: Of the problem.
        balance: Cycles of a step's work over the flits of its transfers.
        cycles: As the run has them; of serving by its closed form.
    """

    kernel: str
    choices: Choices
    place: Place
    sizes: Sizes
    balance: float
    cycles: float

    @classmethod
    def of(cls, place: Place, choices: Choices, mapped: Mapped) -> "Work":
        """An operator's on a place, of a mapping with some choices."""
        plan, known = mapped.plan, mapped.choices
        own = replace(
            choices,
            latent=known.latent,
            causal=known.causal,
            skewed=known.skewed,
            resident=known.resident,
            weight_bits=getattr(plan, "weight_bits", None),
        )
        choices = KERNELS[mapped.kernel].known(own)
        return cls(mapped.kernel, choices, place, mapped.sizes, plan.balance, mapped.cycles)


class Ground(NamedTuple):
    """Tiles of a chip.

    Attributes:
        chip: The chip.
        router: What packets go through at level `at`; None: the chip's own.
        error_pct: Of its calibration, if it is not the chip's own.
    """

    chip: Chip
    router: PacketRouter | None = None
    error_pct: float = 0.0

    @property
    def routers(self) -> PacketRouter:
        """What packets go through at level `at`.

        Raises:
            InputError: if the profile has no router that streams.
        """
        return chip_router(self.chip) if self.router is None else self.router

    def small(self, place: Place, grid: tuple[int, int], share: Fraction) -> Place:
        """A place cut down to a grid at the edge of the chip.

        Args:
            place: The place.
            grid: Rows and columns.
            share: What channels of off-chip memory have of their bandwidth.
        """
        rows, cols = grid
        edge = place.offchip
        if edge is not None:
            there = offchip_channels(self.chip, rows, cols)
            rate = edge.timing.bytes_per_cycle * (1 if edge.at_tiles else share)
            edge = replace(there, timing=replace(there.timing, bytes_per_cycle=rate))
        origin = self.chip.grid.rows - rows, 0
        return replace(place, rows=rows, cols=cols, offchip=edge, origin=origin, kv=KvLevels())


class Case(NamedTuple):
    """A problem on a small grid.

    Attributes:
        grid: Rows and columns of tiles.
        share: What channels of off-chip memory have of their bandwidth.
        sizes: Of the problem.
    """

    grid: tuple[int, int]
    share: Fraction
    sizes: Sizes

    @property
    def label(self) -> str:
        """Tiles and sizes in words."""
        return f"{self.grid[0]}x{self.grid[1]}: {','.join(map(str, self.sizes))}"


def planned(work: Work, ground: Ground, case: Case) -> tuple[Place, Mapped]:
    """A case of a kernel's as a variant plans it.

    Raises:
        InputError: if it has no plan, or none that fits the tiles.
    """
    kernel = KERNELS[work.kernel]
    place = ground.small(work.place, case.grid, case.share)
    plan = kernel.planned(case.sizes, place, work.choices)
    if (needed := kernel.program(plan).tile_bytes) > place.tile_bytes:
        raise InputError(f"{case.label}: found {needed} bytes; allowed: {place.tile_bytes}")
    cycles = kernel.closed_form(plan, place.timing)
    return place, Mapped(work.kernel, case.sizes, plan, cycles)


def drawn_cases(works: Sequence[tuple[Work, float]], ground: Ground, seed: int) -> list[Case]:
    """Cases of a kernel, of each problem as often as it has a share of the time.

    There are fewer than `CASES` where problems have no plan on a small grid.

    Args:
        works: The kernel's problems on one place, and what time each takes in all.
        ground: Where the first variant runs them.
        seed: Of the draw.
    """
    works = sorted(works, key=lambda each: each[0].sizes)
    first = works[0][0]
    stream = np.random.default_rng([seed, *first.kernel.encode()])
    times = np.array([time for _, time in works])
    found = []
    for number in range(CASES):
        work, _ = works[int(stream.choice(len(works), p=times / times.sum()))]
        about = float(np.exp(stream.uniform(-1, 1) * math.log(_ABOUT)))
        # What is too long on the larger grid may be short on the smaller one.
        for rows, cols in (_GRIDS[number % len(_GRIDS)], _GRIDS[0]):
            grid = min(rows, work.place.rows), min(cols, work.place.cols)
            if (case := _nearest(work, ground, grid, about)) is not None:
                found.append(case)
                break
    return found


def _nearest(work: Work, ground: Ground, grid: tuple[int, int], about: float) -> Case | None:
    """Of a problem cut down to a grid in several ways the one most like it, made short."""
    tried: list[tuple[float, Case]] = []
    for sizes, share in _cut_down(work, grid):
        case = Case(grid, share, _about(work, sizes, about))
        try:
            _, mapped = planned(work, ground, case)
        except InputError:
            continue
        apart = mapped.plan.balance / work.balance, mapped.cycles / work.cycles
        tried.append((math.hypot(*map(math.log, apart)), case))
    if not tried:
        return None
    found: Case | None = min(tried)[1]
    while found is not None and not _is_short(work, ground, found):
        found = _shorter(work, found)
    return found


def _is_short(work: Work, ground: Ground, case: Case) -> bool:
    try:
        place, mapped = planned(work, ground, case)
    except InputError:
        return False
    program = KERNELS[work.kernel].program(mapped.plan)
    return sum(Cost.of(program, ground.routers.packet_flits, place.offchip)) <= MOST_COST


def _cut_down(work: Work, grid: tuple[int, int]) -> Iterator[tuple[Sizes, Fraction]]:
    """Sizes of a problem on a smaller grid, and the channels' share of their bandwidth.

    Work of a tile stays as it is. Fewer rows of tiles load less from a channel, which is slower
    alike; where rows of a product are fewer with those of tiles, a channel has as much to load.
    """
    form, sizes = KERNELS[work.kernel].form, work.sizes
    high, wide = Fraction(grid[0], work.place.rows), Fraction(grid[1], work.place.cols)

    def part(size: int, share: Fraction) -> int:
        return max(1, math.ceil(size * share))

    if form in (GEMM, GROUPS):
        *groups, m, n, k = sizes
        yield (*groups, part(m, high), part(n, wide), k), Fraction(1)
        yield (*groups, m, part(n, wide), part(k, high)), high
    elif form in (ATTENTION, LATENT):
        sequences, heads, of_keys, queries, keys, *depths = sizes
        shared = heads // of_keys
        for by in ((high, wide, 1), (high * wide, 1, 1), (1, wide, high), (1, 1, high * wide)):
            b, h, q = (Fraction(each) for each in by)
            of = part(of_keys, h) if form == ATTENTION else of_keys
            all_heads = of * shared if form == ATTENTION else part(heads, h)
            yield (part(sequences, b), all_heads, of, part(queries, q), keys, *depths), high
    else:
        m, n, *third = sizes
        unit = third[0] if form == HEADS else 1
        yield (part(m, high), ceil_div(part(n, wide), unit) * unit, *third), high
        yield (part(m, high * wide), n, *third), high


def _about(work: Work, sizes: Sizes, about: float) -> Sizes:
    """The same with more or less to do: rows, or of attention keys."""
    form, changed = KERNELS[work.kernel].form, [*sizes]
    if form in (ATTENTION, LATENT):
        changed[4] = max(sizes[3], round(sizes[4] * about))
    else:
        rows = 1 if form == GROUPS else 0
        changed[rows] = max(1, round(sizes[rows] * about))
    return tuple(changed)


def _shorter(work: Work, case: Case) -> Case | None:
    """The same with half of what there is most of; None if nothing is left to halve."""
    form, sizes = KERNELS[work.kernel].form, [*case.sizes]
    if form in (ATTENTION, LATENT):
        places = [0, 2, 3, 4] if form == ATTENTION else [0, 1, 3, 4]
    else:
        places = [*range(form.count if form in (GEMM, GROUPS) else 2)]
    most = max(places, key=lambda place: sizes[place])
    unit = sizes[2] if form == HEADS and most == 1 else 1
    if sizes[most] <= unit:
        return None
    shared = sizes[1] // sizes[2] if form == ATTENTION else 1
    sizes[most] = ceil_div(ceil_div(sizes[most], 2), unit) * unit
    if form == ATTENTION and most == 2:
        sizes[1] = shared * sizes[2]
    if form in (ATTENTION, LATENT):
        sizes[3] = min(sizes[3], sizes[4])
    return case._replace(sizes=tuple(sizes))
