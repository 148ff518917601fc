"""What options ask for, resolved once: all that a run needs stands in its `Setup`."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tlm.calibrated import measured_rtl_hash, stale_allowed
from tlm.chips import Chip, find_tiles
from tlm.chips.parts import PacketRouter, chip_router, noc_timing, own_tile
from tlm.chips.profile import CalibratedNoc
from tlm.compute.roofline import Roofline
from tlm.engines.at.cost import Cost
from tlm.engines.lt import Progress
from tlm.errors import InputError
from tlm.interconnect.zero_load import NocTiming
from tlm.level_errors import compared_as
from tlm.program import Program
from tlm.tiles.timing import FREE, QueueTiming, TileTiming
from tlm.trace import Recorder
from wafertlm.asked.kernel import RTL, KernelOptions
from wafertlm.kernel.custom import custom_name, find_kernel
from wafertlm.kernel.options import (
    Levels,
    chip_grid,
    chip_of_dtype,
    dtype_on,
    part_levels,
)
from wafertlm.kernel.table import UnequalTiles, unequal_tiles
from wafertlm.options import contents, recorded
from wafertlm.plmr import RunKernel
from wafertlm.stopwatch import Building
from workloads.kernels.catalogue import Kernel, Plan, moved_of
from workloads.machine.dtypes import DTYPE_BITS
from workloads.machine.moved import Moved
from workloads.machine.place import Place, chip_place

if TYPE_CHECKING:  # reading specifications takes a third of a second to import
    from wafertlm.custom import CustomRouters

_LARGEST_AT_TILES = 64 * 64
_LARGEST_RTL_SIDE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a run is carried out and who is told of it; changes no figure.

    Attributes:
        waves: A VCD file of what is Verilog.
        recorder: Is told of operations and transfers.
        links: Maps of the flits over the links that leave each tile, too.
        progress: Hears of operations done, and of how many, where the network is at level `lt`.
        threads: Threads that share the grid at level `lt`; None: one.
        building: The context in which Verilog is built.
        cost: Hears what the network at level `at` will cost, before anything runs.
    """

    waves: Path | None = None
    recorder: Recorder | None = None
    links: bool = False
    progress: Progress | None = None
    threads: int | None = None
    building: Building = nullcontext
    cost: Callable[[Cost], object] | None = None

    def check(self, noc: str) -> None:
        """Hold that the network's level has what is wanted.

        Raises:
            InputError: if not.
        """
        if self.links and noc == "perf":
            raise InputError("--map: level perf has no tiles to map; levels that do: at, lt")
        if self.waves is not None and noc != RTL:
            raise InputError(f"--waves: found network at level {noc}; allowed: --noc rtl")
        if self.recorder is not None and noc == "perf":
            raise InputError("--timeline: level perf has no operations to show; others do: at, lt")
        if self.threads is not None and noc != "lt":
            raise InputError(f"--threads: found network at level {noc}; allowed: lt")


#: Nobody is told, nothing but figures is kept.
PLAIN = Execution()


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Tiles of a chip at some levels, ready for any kernel.

    Attributes:
        options: What was asked for, with the type of the elements.
        chip: The chip, with the matrix engine of the elements.
        levels: Of the parts.
        custom: The custom routers, if the network is of such.
        unequal: The table of tiles, if there is one.
        timing: Of the network.
        tile: What the project's own tiles cost beside the laws of their engines; None of others,
            and where engines are rooflines.
        place: What kernels are planned for; its ``offchip`` are the channels, if their time counts.
        compared_as: The shipped chip at whose constants levels were compared, of a wafer that with
            the same dies; None of others, and of these with custom routers.
    """

    options: KernelOptions
    chip: Chip
    levels: Levels
    custom: "CustomRouters | None"
    unequal: UnequalTiles | None
    timing: NocTiming
    tile: TileTiming | None
    place: Place
    compared_as: str | None

    def on(self, place: Place) -> "Ground":
        """The same tiles as a plan has them: with a part of their memory, or without off-chip's."""
        if place.offchip is not None or self.levels.memory is None:
            return replace(self, place=place)
        options = replace(self.options, memory=None)
        return replace(self, place=place, options=options, levels=replace(self.levels, memory=None))

    @property
    def dtype(self) -> str:
        """Type of the elements."""
        assert self.options.dtype is not None  # filled in as the options were looked up
        return self.options.dtype

    @property
    def span(self) -> tuple[int, int]:
        """Rows and columns from the first tile that is used to the last."""
        return self._grid if self.unequal is None else self.unequal.grid

    @property
    def cut_timing(self) -> NocTiming:
        """The timing whose buffer is the longest multicast or operand: closed forms cut by it."""
        return self.place.timing

    @cached_property
    def router(self) -> PacketRouter:
        """What packets go through at levels `at` and `rtl`.

        Raises:
            InputError: if the profile has no router that streams.
        """
        if self.custom is not None:
            return PacketRouter(self.timing, self.cut_timing.fifo_depth)
        return chip_router(self.chip)

    @property
    def why_unknown(self) -> str:
        """Why stored errors of the network's level are not of its routers; empty where they are."""
        return "" if self.custom is None else self.custom.why_unknown(self.levels.noc)

    @property
    def queues(self) -> QueueTiming:
        """What engines take beside their work."""
        return FREE if self.tile is None else self.tile.queues

    @property
    def _grid(self) -> tuple[int, int]:
        return self.place.rows, self.place.cols

    def check_level(self) -> None:
        """Refuse what is too large for the level of the network.

        Raises:
            InputError: naming the option, what was found, and the largest.
        """
        rows, cols = self.span
        gaps = self.unequal is not None and self.unequal.has_gaps
        counted = " with lines out of use between them" if gaps else ""
        if self.levels.noc == "at" and rows * cols > _LARGEST_AT_TILES:
            raise InputError(
                f"--grid: level at goes up to {_LARGEST_AT_TILES} tiles, found {rows * cols}"
                f"{counted}"
            )
        if self.levels.noc == RTL:
            self._check_rtl_side(rows, cols, counted)

    def _check_rtl_side(self, rows: int, cols: int, counted: str) -> None:
        whole, side = self.levels.whole_tiles, _LARGEST_RTL_SIDE
        if max(rows, cols) > side:
            raise InputError(
                f"--grid: {'--level' if whole else '--noc'} rtl goes up to {side}x{side} tiles, "
                f"found {rows}x{cols}{counted}"
            )
        # Whole tiles in Verilog count without the channels' row, nodes of a network with it.
        if not whole and self.levels.memory is not None and (rows + 1) * cols > side**2:
            raise InputError(
                f"--grid: --noc rtl with --memory goes up to {side**2} nodes, a row of them below "
                f"the tiles; found {rows}x{cols} tiles, {(rows + 1) * cols} nodes"
            )

    def recorded_options(self) -> dict[str, Any]:
        """The options as a result keeps them: files by their names, a table by its content."""
        kept = recorded(self.options, chip=self.chip)
        if (named := custom_name(self.options.kernel)) is not None:
            kept["kernel"] = named.told
        if self.unequal is not None:
            kept["tiles"] = self.unequal.known_by
        if self.custom is not None:
            kept["rtl"] = self.custom.spec.file.name
        return kept

    def contents(self) -> dict[str, str]:
        """Hashes of what options that are files hold, but for those that the options keep."""
        held, named = contents(self.options, chip=self.chip), custom_name(self.options.kernel)
        return held if named is None else held | {"kernel": named.content_hash}

    def origin(self) -> tuple[str | None, str | None]:
        """The calibration that the figures rest on, and the hash of its Verilog.

        Both are None of chips and networks that are not made of RTL.
        """
        if self.custom is not None:
            return self.custom.found.told_name(self.custom.spec), self.custom.rtl_hash
        if not isinstance(self.chip.noc, CalibratedNoc):
            return None, None
        with stale_allowed(self.options.allow_stale):
            return self.chip.calibration or RTL, measured_rtl_hash()

    @property
    def tile_hash(self) -> str | None:
        """Hash of the Verilog of tiles and memory; None of chips from elsewhere."""
        if self.chip.calibration is None:
            return None
        with stale_allowed(self.options.allow_stale):
            return measured_rtl_hash()


@dataclass(frozen=True, kw_only=True)
class Setup(Ground):
    """A kernel on tiles of a chip, ready to run.

    Attributes:
        kernel: The kernel.
        macs: Multiply-accumulates of the problem, without padding.
        plan: The problem cut over tiles.
        program: The plan as a program, its work without the costs of ``tile`` and ``unequal``.
    """

    kernel: Kernel
    macs: int
    plan: Plan
    program: Program

    @classmethod
    def of(cls, ground: Ground, kernel: Kernel, macs: int, plan: Plan) -> Self:
        """A plan on the tiles that it is for."""
        known = {field.name: getattr(ground, field.name) for field in fields(Ground)}
        return cls(**known, kernel=kernel, macs=macs, plan=plan, program=kernel.program(plan))

    @cached_property
    def moved(self) -> Moved:
        """Bytes that the program moves; none of a kernel whose operands lie in the tiles."""
        return moved_of(self.plan)

    @property
    def told(self) -> RunKernel:
        """The same for warnings."""
        return RunKernel.of(self.options.kernel, self.place, self.plan, self.program)

    def check_size(self) -> None:
        """Refuse what is too large for a tile's memory or for the level of the network.

        Raises:
            InputError: naming the option, what was found, and the largest.
        """
        if self.custom is not None:
            self.custom.check_program(self.program, headers=self.levels.noc in (RTL, "at"))
        needed, there = self.program.tile_bytes, self.place.tile_bytes
        if needed > there:
            raise InputError(
                f"--shape: the kernel's buffers take {needed} bytes of a tile's memory; "
                f"allowed on '{self.chip.name}': {there}"
            )
        self.check_level()

    @cached_property
    def cost(self) -> Cost:
        """What the runs at level `at` cost that its figures are made of; nothing at others."""
        if self.levels.noc != "at":
            return Cost()
        bound, edge = self.router.packet_flits, self.place.offchip
        modelled = self.levels.memory == "at" and edge is not None and edge.dram is not None
        cost = Cost.of(self.program, bound, edge, dram=modelled)
        # Once more without memory, to tell what waits for it.
        return cost if edge is None else cost + Cost.of(self.program, bound, None)


def resolve(options: KernelOptions) -> Setup:
    """Look up all that options name, and plan the kernel.

    Raises:
        InputError: for options that do not fit together, a problem that does not fit the chip, or
            stale measurements, unless they are allowed.
    """
    kernel = find_kernel(options.kernel)
    ground = grounded(options)
    with stale_allowed(options.allow_stale):
        sizes = options.sizes
        plan = kernel.planned(sizes, ground.place, options.choices)
        return Setup.of(ground, kernel, kernel.macs(sizes, options.choices), plan)


def grounded(options: KernelOptions) -> Ground:
    """Look up all that options name but the kernel; else as `resolve`."""
    with stale_allowed(options.allow_stale):
        chip = find_tiles(options.chip, options.set)
        compared = compared_as(chip, rerouted=options.rtl is not None)
        levels = part_levels(options, chip)
        dtype = dtype_on(chip, options.dtype)
        options = replace(options, dtype=dtype)
        custom, chip = _custom_routers(options, levels), chip_of_dtype(chip, dtype)
        timing = noc_timing(chip) if custom is None else custom.timing_on(chip)
        cut = timing if custom is None else custom.cut(timing)
        grid = chip_grid(options.grid, chip)
        unequal = unequal_tiles(options, levels, chip, grid)
        bits, memory = DTYPE_BITS[dtype], levels.memory is not None
        place = chip_place(chip, grid, cut, *bits, memory=memory)
        if levels.compute == "perf":
            roofline = Roofline(place.matrix.macs_per_cycle, element_bytes=place.element_bits // 8)
            place = replace(place, matrix=roofline, after_vector=None)
        if custom is not None:
            place = replace(place, in_network=custom.combines)
        return Ground(
            options=options,
            chip=chip,
            levels=levels,
            custom=custom,
            unequal=unequal,
            timing=timing,
            tile=None if levels.compute == "perf" else own_tile(chip),
            place=place,
            compared_as=compared,
        )


def _custom_routers(options: KernelOptions, levels: Levels) -> "CustomRouters | None":
    if options.rtl is None:
        return None
    if options.memory is not None and levels.noc in (RTL, "at"):
        raise InputError(
            f"--memory: found with --rtl and the network at level {levels.noc}; allowed: with it "
            "at level lt or perf"
        )
    from wafertlm.custom import CustomRouters  # slow to import: only for custom routers

    routers = CustomRouters.load(options.rtl, allow_stale=options.allow_stale)
    if levels.noc not in (RTL, "at"):
        routers.check_closed_form(f"the network at level {levels.noc}")
    return routers
