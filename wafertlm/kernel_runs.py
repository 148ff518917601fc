"""A kernel on a chip at any level: what the command, and the demo, run."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tlm.calibrated import level_error_pct, stale_allowed
from tlm.chips import Chip, chip_names, load_chip
from tlm.chips.parts import matrix_engine, noc_timing, own_tile
from tlm.chips.profile import CalibratedNoc
from tlm.compute.base import Compute
from tlm.compute.roofline import Roofline
from tlm.engines.lt import Progress, run_lt
from tlm.engines.outcome import Outcome
from tlm.errors import InputError, choose
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.program import Program
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import FREE, TileTiming
from tlm.trace import Recorder, link_flits
from wafertlm.kernel_memory import (
    MEMORY_LEVELS,
    NO_MEMORY,
    KernelMemory,
    check_memory_level,
    chip_edge,
    memory_of,
)
from wafertlm.kernel_networks import OwnRouters, own_routers, run_at_model, run_at_rtl
from wafertlm.kernel_tiles import lone_tiles, rtl_products, run_on_tiles
from wafertlm.options import parse_grid
from workloads.kernels.catalogue import KERNELS, Choices, Plan, Sizes
from workloads.kernels.collectives import METHODS
from workloads.kernels.flat_attention import SCHEDULES
from workloads.kernels.target import Target, chip_target

_RTL = "rtl"
LEVELS = (_RTL, "at", "lt", "perf")
#: Bits of an element, and of a sum of products.
_BITS = {
    "int8": (8, 32),
    "int16": (16, 32),
    "fp16": (16, 16),
    "bf16": (16, 16),
    "fp8": (8, 16),
    "fp32": (32, 32),
}
_LARGEST_AT_TILES = 64 * 64
_LARGEST_RTL_SIDE = 8
_Building = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """Options of the command."""

    kernel: str
    chip: str
    grid: str
    shape: str
    dtype: str
    level: str = "lt"
    noc: str | None = None
    memory: str | None = None
    compute: str | None = None
    rtl: str | None = None
    collective: str | None = None
    groups: str | None = None
    schedule: str | None = None
    allow_stale: bool = False

    @property
    def choices(self) -> Choices:
        """The kernel's variant.

        Raises:
            InputError: if the groups are not numbers.
        """
        groups = None if self.groups is None else _numbers("--groups", self.groups, "21 or 100,10")
        return Choices(self.collective, groups, self.schedule)


@dataclass(frozen=True, slots=True)
class _Run:
    """What came of a run, and on the tile that ends last how long its engines worked.

    `computed_cycles` are those in which the matrix or the vector engine did, `memory_cycles` those
    by which the run would be shorter if off-chip memory cost nothing.
    """

    plan: Plan
    macs: int
    cycles: int
    matrix_cycles: int
    computed_cycles: int
    outcome: Outcome | None
    memory_cycles: int = 0
    network: dict[str, Any] | None = None
    memory: dict[str, Any] | None = None
    links: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Networks:
    """What packets run on: levels, somebody's own routers, how Verilog is built and all watched."""

    noc: str
    memory: str | None
    compute: str
    own: OwnRouters | None
    waves: Path | None
    building: _Building
    recorder: Recorder | None = None
    links: bool = False
    progress: Progress | None = None

    @property
    def alone(self) -> bool:
        """Whether jobs take as long as by themselves: with Verilog, others' routers, or memory."""
        others = (self.own is not None and self.noc == "at") or self.memory is not None
        return others or _RTL in (self.noc, self.compute)


def kernel_result(
    options: KernelOptions,
    *,
    waves: Path | None = None,
    building: _Building = nullcontext,
    recorder: Recorder | None = None,
    links: bool = False,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures of a run, and its maps: arrays of shape (rows, columns), empty at level `perf`.

    Args:
        options: What is run.
        waves: A VCD file of the network, where it is Verilog.
        building: The context in which Verilog is built.
        recorder: Is told of operations and transfers.
        links: Maps of the flits over the links that leave each tile, too.
        progress: Hears of operations done, and of how many, where the network is at level `lt`.

    Raises:
        InputError: for options that do not fit together, a problem that does not fit the chip, or
            stale measurements, unless ``allow_stale``.
        CheckFailedError: if the network hangs, or its Verilog is at fault.
    """
    with stale_allowed(options.allow_stale):
        choose("kernel", options.kernel, list(KERNELS))
        chip = load_chip(options.chip)
        noc, compute = _levels(options, chip)
        if waves is not None and noc != "rtl":
            raise InputError(f"--waves: found network at level {noc}; allowed: --noc rtl")
        if recorder is not None and noc == "perf":
            raise InputError("--timeline: level perf has no operations to show; others do: at, lt")
        own = own_network(options)
        networks = _Networks(
            noc, options.memory, compute, own, waves, building, recorder, links, progress
        )
        return _figures(options, chip, networks)


def _figures(
    options: KernelOptions, chip: Chip, networks: _Networks
) -> tuple[dict[str, Any], dict[str, Any]]:
    run = _run(options, chip, networks)
    rows, cols = _grid(options.grid, chip)
    engine = matrix_engine(chip)
    figures = {
        "cycles": run.cycles,
        "seconds": run.cycles / chip.clock_hz,
        "utilization": run.macs / (run.cycles * rows * cols * engine.macs_per_cycle),
        "breakdown_cycles": _breakdown(run, engine),
        "error": {
            # Nothing of a foreign chip was ever held against our RTL.
            "level_pct": _level_pct(options, networks, run) if chip.calibration else None,
            "profile_pct": None,
        },
    }
    if run.network is not None:
        figures["network"] = run.network
    if run.memory is not None:
        figures["memory"] = run.memory
    return figures, {} if run.outcome is None else _maps(run.outcome) | run.links


def _level_pct(options: KernelOptions, networks: _Networks, run: _Run) -> float | None:
    """Error of the levels used; of somebody's own network modelled that of its calibration too.

    Levels are compared on the kernels' default variants.
    """
    if options.level == _RTL:
        return 0.0
    if options.choices != Choices() or options.memory is not None:
        return None
    levels = (networks.noc, networks.compute)
    error = level_error_pct(options.kernel, *levels, run.plan.balance, alone=networks.alone)
    if error is None or networks.own is None or networks.noc == "rtl":
        return error
    return max(error, networks.own.worst_error_pct)


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    return {
        "kernels": list(KERNELS),
        "chips": list(chip_names()),
        "levels": list(LEVELS),
        "noc": list(LEVELS),
        "memory": list(MEMORY_LEVELS),
        "compute": [_RTL, "at", "perf"],
        "dtypes": list(_BITS),
        "collectives": list(METHODS),
        "schedules": list(SCHEDULES),
    }


def _levels(options: KernelOptions, chip: Chip) -> tuple[str, str]:
    """Levels of the network and of the matrix engine."""
    mixes = (
        "level rtl alone or with --memory rtl; level at, lt or perf; --noc rtl|at|lt|perf with "
        "--compute at|perf; --noc rtl|at with --compute rtl"
    )
    for name, level in (("--level", options.level), ("--noc", options.noc)):
        if level is not None and level not in LEVELS:
            raise InputError(f"{name}: '{level}' does not run kernels; those that do: {mixes}")
    noc = options.noc or options.level
    compute = options.compute or {"perf": "perf", _RTL: _RTL}.get(options.level, "at")
    if compute not in (_RTL, "at", "perf"):
        raise InputError(f"--compute: found '{compute}'; those that run kernels: {mixes}")
    check_memory_level(options.memory, noc)
    others = options.rtl is not None or options.memory not in (None, _RTL)
    if options.level == _RTL and ((noc, compute) != (_RTL, _RTL) or others):
        raise InputError(
            f"--level: found rtl with another level of a part, or --rtl; allowed: {mixes}"
        )
    if compute == _RTL and noc not in (_RTL, "at"):
        raise InputError(f"--compute: found rtl with the network at level {noc}; allowed: {mixes}")
    if compute == _RTL and own_tile(chip) is None:
        raise InputError(
            f"--chip: the tiles of '{chip.name}' are not in Verilog; those that are: rtl-RxC"
        )
    if options.rtl is not None:
        if noc not in (_RTL, "at"):
            raise InputError(f"--rtl: found network at level {noc}; allowed: --noc rtl|at")
    elif noc in (_RTL, "at") and not isinstance(chip.noc, CalibratedNoc):
        raise InputError(
            f"--chip: the profile of '{chip.name}' has no router to run packets on; "
            "levels that it has: lt, perf"
        )
    return noc, compute


def _run(options: KernelOptions, chip: Chip, networks: _Networks) -> _Run:
    own = networks.own
    timing = noc_timing(chip) if own is None else own.timing
    kernel, sizes = KERNELS[options.kernel], _numbers("--shape", options.shape, "64,64,64")
    target = _target(options, chip, networks, timing)
    plan = kernel.planned(sizes, target, options.choices)
    program = kernel.program(plan)
    _check_memory(program, chip)
    macs = kernel.macs(sizes)
    edge = target.offchip
    if networks.noc == "perf":
        cycles, matrix = kernel.closed_form(plan, timing), plan.tile_matrix_cycles
        # A closed form does not say when engines work: as little at the same time as can be.
        computed = min(matrix + plan.tile_vector_cycles, cycles)
        run = _Run(plan, macs, cycles, matrix, computed, None)
        if edge is None:
            return run
        waited = cycles - kernel.closed_form(kernel.without_memory(plan), timing)
        figures = KernelMemory("perf", edge).figures(program)
        return replace(run, memory_cycles=waited, memory=figures)
    tile = own_tile(chip) if networks.compute != "perf" else None
    network: dict[str, Any] | None
    memory, waited = NO_MEMORY, 0
    if options.level == _RTL:
        _check_rtl_side(program, "--level")
        watched = (networks.waves, networks.building, networks.recorder)
        outcome, network = run_on_tiles(program, chip, *watched, memory=edge is not None)
        if edge is not None and tile is not None:
            memory = KernelMemory(_RTL, edge)
            waited = _memory_cycles(on_tiles(program, tile), timing, networks, tile, edge)
    else:
        with (
            _timed(program, chip, tile, networks) as program,
            memory_of(edge, networks.memory, networks.noc, networks.building) as memory,
        ):
            outcome, network = _simulate(program, timing, networks, tile, memory)
            if edge is not None:
                waited = outcome.cycles - _without_memory(program, timing, networks, tile)
    links = _link_maps(program, timing) if networks.links else {}
    matrix = int(outcome.matrix_busy_cycles[outcome.last_tile])
    computed = int(outcome.compute_busy_cycles[outcome.last_tile])
    run = _Run(plan, macs, outcome.cycles, matrix, computed, outcome, waited, network, links=links)
    return run if edge is None else replace(run, memory=memory.figures(program))


@contextmanager
def _timed(
    program: Program, chip: Chip, tile: TileTiming | None, networks: _Networks
) -> Iterator[Program]:
    """A program with what its work costs on the project's own tiles, if it runs on such."""
    if tile is None:
        yield program
    elif networks.compute == _RTL:
        with lone_tiles(chip, networks.building) as machine:
            yield on_tiles(program, tile, rtl_products(program, machine))
    else:
        yield on_tiles(program, tile)


def _check_rtl_side(program: Program, option: str) -> None:
    rows, cols = program.rows, program.cols
    if max(rows, cols) > _LARGEST_RTL_SIDE:
        side = _LARGEST_RTL_SIDE
        raise InputError(
            f"--grid: {option} rtl goes up to {side}x{side} tiles, found {rows}x{cols}"
        )


def kernel_program(options: KernelOptions) -> Program:
    """The program that level `lt` runs, whatever memory it takes.

    Raises:
        InputError: for options that do not fit together, or a problem that does not fit the chip.
    """
    choose("kernel", options.kernel, list(KERNELS))
    chip, kernel = load_chip(options.chip), KERNELS[options.kernel]
    sizes = _numbers("--shape", options.shape, "64,64,64")
    networks = _Networks("lt", None, "at", None, None, nullcontext)
    target = _target(options, chip, networks, noc_timing(chip))
    return kernel.program(kernel.planned(sizes, target, options.choices))


def _link_maps(program: Program, timing: NocTiming) -> dict[str, Any]:
    """Flits over the links that leave each tile, shape (rows, columns), by direction."""
    flits = link_flits(program, y_first=timing.y_first)
    return {f"link_flits_{direction}": each for direction, each in flits.items()}


def _target(options: KernelOptions, chip: Chip, networks: _Networks, timing: NocTiming) -> Target:
    rows, cols = _grid(options.grid, chip)
    choose("dtype", options.dtype, list(_BITS))
    if options.dtype not in chip.tile.dtypes:
        known = ", ".join(chip.tile.dtypes)
        raise InputError(f"--dtype: chip '{chip.name}' computes {known}, found {options.dtype}")
    target = chip_target(chip, (rows, cols), timing, *_BITS[options.dtype])
    if networks.compute == "perf":
        element_bytes = target.element_bits // 8
        roofline = Roofline(target.matrix.macs_per_cycle, element_bytes=element_bytes)
        target = replace(target, matrix=roofline)
    if networks.memory is not None:
        edge = chip_edge(chip, networks.memory, (rows, cols))
        target = replace(target, offchip=edge)
    own = networks.own
    return target if own is None else replace(target, in_network=own.combines)


def _simulate(
    program: Program,
    timing: NocTiming,
    networks: _Networks,
    tile: TileTiming | None,
    memory: KernelMemory,
) -> tuple[Outcome, dict[str, Any] | None]:
    """What came of a program, and of a network in Verilog which one that was."""
    rows, cols = program.rows, program.cols
    queues = FREE if tile is None else tile.queues
    if networks.noc == "lt":
        outcome = run_lt(
            program,
            timing,
            recorder=networks.recorder,
            progress=networks.progress,
            queues=queues,
            offchip=memory.edge,
        )
        return outcome, None
    if networks.noc == _RTL:
        _check_rtl_side(program, "--noc")
        watched = (networks.waves, networks.building, networks.recorder)
        return run_at_rtl(program, timing, networks.own, *watched, queues, memory.channels)
    if rows * cols > _LARGEST_AT_TILES:
        raise InputError(
            f"--grid: level at goes up to {_LARGEST_AT_TILES} tiles, found {rows * cols}"
        )
    shared = None if networks.alone else tile
    model = (program, timing, networks.own, networks.recorder, queues, memory.channels, shared)
    return run_at_model(*model), None


def _memory_cycles(
    program: Program, timing: NocTiming, networks: _Networks, tile: TileTiming, edge: Edge
) -> int:
    """Cycles by which memory makes a program longer, as models have it."""
    alone = replace(networks, noc="at", memory="at", waves=None, recorder=None)
    with memory_of(edge, "at", "at", networks.building) as memory:
        outcome, _ = _simulate(program, timing, alone, tile, memory)
    return outcome.cycles - _without_memory(program, timing, alone, tile)


def _without_memory(
    program: Program, timing: NocTiming, networks: _Networks, tile: TileTiming | None
) -> int:
    """Cycles of a program if off-chip memory cost nothing; a network in Verilog as its model."""
    noc = "at" if networks.noc == _RTL else networks.noc
    alone = replace(networks, noc=noc, waves=None, recorder=None, progress=None)
    return _simulate(program, timing, alone, tile, NO_MEMORY)[0].cycles


def _grid(text: str, chip: Chip) -> tuple[int, int]:
    rows, cols = parse_grid("--grid", text)
    if rows > chip.grid.rows or cols > chip.grid.cols:
        raise InputError(
            f"--grid: chip '{chip.name}' has {chip.grid.rows}x{chip.grid.cols} tiles, found {text}"
        )
    return rows, cols


def _numbers(option: str, text: str, example: str) -> Sizes:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{option}: found '{text}'; write whole numbers, such as {example}"
        ) from None


def _tile_bytes(chip: Chip) -> int:
    return int(chip.tile.sram_kib * 1024)


def _check_memory(program: Program, chip: Chip) -> None:
    needed, there = program.tile_bytes, _tile_bytes(chip)
    if needed > there:
        raise InputError(
            f"--shape: the kernel's buffers take {needed} bytes of a tile's memory; "
            f"allowed on '{chip.name}': {there}"
        )


def _breakdown(run: _Run, engine: Compute) -> dict[str, int]:
    """On the tile that ends last: ideal cycles of its products, the engine's rest, and waiting.

    Waiting is for memory as far as the run would be shorter if that cost nothing. Vector passes
    count as compute while the matrix engine stands still.
    """
    waiting = run.cycles - run.computed_cycles
    memory = min(max(run.memory_cycles, 0), waiting)
    ideal = min(run.matrix_cycles, round(run.plan.tile_macs / engine.macs_per_cycle))
    return {
        "compute": ideal + run.computed_cycles - run.matrix_cycles,
        "communication": waiting - memory,
        "memory": memory,
        "overhead": run.matrix_cycles - ideal,
    }


def _maps(outcome: Outcome) -> dict[str, Any]:
    return {
        "finish_cycle": outcome.finish_cycle,
        "matrix_busy_cycles": outcome.matrix_busy_cycles,
        "wait_cycles": outcome.wait_cycles,
    }


def own_network(options: KernelOptions) -> OwnRouters | None:
    """Somebody's own routers, if the options name some.

    Raises:
        InputError: if the specification is wrong, or its calibration missing or stale.
    """
    if options.rtl is None:
        return None
    if options.memory is not None:
        raise InputError("--memory: found with --rtl; allowed: one of --rtl and --memory")
    return own_routers(options.rtl, allow_stale=options.allow_stale)
