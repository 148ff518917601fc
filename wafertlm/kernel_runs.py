"""A kernel on a chip at any level: what the command, and the demo, run."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlm.calibrated import level_error_pct, stale_allowed
from tlm.chips import Chip, load_chip
from tlm.chips.parts import matrix_engine, noc_timing, own_tile
from tlm.compute.base import Compute
from tlm.compute.roofline import Roofline
from tlm.engines.lt import Progress
from tlm.engines.outcome import Outcome
from tlm.errors import InputError, choose
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from tlm.tiles.programs import on_tiles
from tlm.trace import Recorder, link_flits
from wafertlm.kernel_levels import (
    RTL,
    Building,
    Networks,
    check_rtl_side,
    memory_cycles,
    simulate,
    timed,
    without_memory,
)
from wafertlm.kernel_memory import (
    NO_MEMORY,
    KernelMemory,
    chip_edge,
    memory_of,
)
from wafertlm.kernel_options import (
    ELEMENT_BITS,
    KernelOptions,
    chip_grid,
    part_levels,
    whole_numbers,
)
from wafertlm.kernel_tiles import run_on_tiles
from wafertlm.kernel_unequal import unequal_tiles
from workloads.kernels.catalogue import KERNELS, Choices, Plan
from workloads.kernels.target import Target, chip_target

if TYPE_CHECKING:
    from wafertlm.kernel_routers import OwnRouters


@dataclass(frozen=True, slots=True)
class _Run:
    """What came of a run, and on the tile that ends last how long its engines worked.

    `computed_cycles` are those in which the matrix or the vector engine did, `memory_cycles` those
    by which the run would be shorter if off-chip memory cost nothing; `alone` says whether jobs
    took as long as by themselves.
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
    alone: bool = False


def kernel_result(
    options: KernelOptions,
    *,
    waves: Path | None = None,
    building: Building = nullcontext,
    recorder: Recorder | None = None,
    links: bool = False,
    progress: Progress | None = None,
    threads: int | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures of a run, and its maps: arrays of shape (rows, columns), empty at level `perf`.

    With a table of tiles the maps are of all tiles from the first that is used to the last; those
    out of use have no times.

    Args:
        options: What is run.
        waves: A VCD file of the network, where it is Verilog.
        building: The context in which Verilog is built.
        recorder: Is told of operations and transfers.
        links: Maps of the flits over the links that leave each tile, too.
        progress: Hears of operations done, and of how many, where the network is at level `lt`.
        threads: Threads that share the grid at level `lt`; None: one. They change no figure.

    Raises:
        InputError: for options that do not fit together, a problem that does not fit the chip, or
            stale measurements, unless ``allow_stale``.
        CheckFailedError: if the network hangs, or its Verilog is at fault.
    """
    with stale_allowed(options.allow_stale):
        choose("kernel", options.kernel, list(KERNELS))
        chip = load_chip(options.chip)
        noc, compute = part_levels(options, chip)
        if waves is not None and noc != "rtl":
            raise InputError(f"--waves: found network at level {noc}; allowed: --noc rtl")
        if recorder is not None and noc == "perf":
            raise InputError("--timeline: level perf has no operations to show; others do: at, lt")
        if threads is not None and noc != "lt":
            raise InputError(f"--threads: found network at level {noc}; allowed: lt")
        own = own_network(options)
        networks = Networks(
            noc,
            options.memory,
            compute,
            own,
            waves,
            building,
            recorder,
            links,
            progress,
            threads=1 if threads is None else threads,
            unequal=unequal_tiles(options),
        )
        return _figures(options, _of_dtype(chip, options.dtype), networks)


def _figures(
    options: KernelOptions, chip: Chip, networks: Networks
) -> tuple[dict[str, Any], dict[str, Any]]:
    run = _run(options, chip, networks)
    rows, cols = chip_grid(options.grid, chip)
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
    if networks.unequal is not None:
        figures["tiles"] = networks.unequal.figures()
    return figures, {} if run.outcome is None else _maps(run.outcome) | run.links


def _level_pct(options: KernelOptions, networks: Networks, run: _Run) -> float | None:
    """Error of the levels used; of somebody's own network modelled that of its calibration too.

    Levels are compared on the kernels' default variants, on tiles that are all alike, and with the
    memory channels of the tiles in Verilog.
    """
    if options.level == RTL:
        return 0.0
    if options.choices != Choices() or options.memory == "perf" or options.tiles is not None:
        return None
    of = (options.kernel, options.dtype, networks.noc, networks.compute)
    memory = options.memory is not None
    error = level_error_pct(*of, run.plan.balance, alone=run.alone, memory=memory)
    if error is None or networks.own is None or networks.noc == "rtl":
        return error
    return max(error, networks.own.worst_error_pct)


def _run(options: KernelOptions, chip: Chip, networks: Networks) -> _Run:
    own = networks.own
    timing = noc_timing(chip) if own is None else own.timing
    kernel, sizes = KERNELS[options.kernel], whole_numbers("--shape", options.shape, "64,64,64")
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
    if networks.noc == RTL:
        check_rtl_side(program, "--level" if options.level == RTL else "--noc", networks)
    if options.level == RTL:
        watched = (networks.waves, networks.building, networks.recorder)
        outcome, network = run_on_tiles(program, chip, *watched, memory=edge is not None)
        if edge is not None and tile is not None:
            memory = KernelMemory(RTL, edge)
            waited = memory_cycles(on_tiles(program, tile), timing, networks, tile, edge)
    else:
        program, networks = timed(program, chip, tile, networks)
        if networks.unequal is not None:
            program = networks.unequal.program(program)
        with memory_of(edge, networks.memory, networks.noc, networks.building) as memory:
            outcome, network = simulate(program, timing, networks, tile, memory)
            if edge is not None:
                waited = outcome.cycles - without_memory(program, timing, networks, tile)
    if networks.unequal is not None:
        outcome = networks.unequal.used(outcome)
    links = _link_maps(program, timing) if networks.links else {}
    matrix = int(outcome.matrix_busy_cycles[outcome.last_tile])
    computed = int(outcome.compute_busy_cycles[outcome.last_tile])
    run = _Run(
        plan, macs, outcome.cycles, matrix, computed, outcome, waited, network, links=links,
        alone=networks.alone,
    )  # fmt: skip
    return run if edge is None else replace(run, memory=memory.figures(program))


def kernel_program(options: KernelOptions) -> Program:
    """The program that level `lt` runs without `--memory`, even if it does not fit a tile's memory.

    Raises:
        InputError: for options that do not fit together, or a problem that does not fit the chip.
    """
    choose("kernel", options.kernel, list(KERNELS))
    chip, kernel = _of_dtype(load_chip(options.chip), options.dtype), KERNELS[options.kernel]
    sizes = whole_numbers("--shape", options.shape, "64,64,64")
    networks = Networks("lt", None, "at", None, None, nullcontext)
    target = _target(options, chip, networks, noc_timing(chip))
    return kernel.program(kernel.planned(sizes, target, options.choices))


def _link_maps(program: Program, timing: NocTiming) -> dict[str, Any]:
    """Flits over the links that leave each tile, shape (rows, columns), by direction."""
    flits = link_flits(program, y_first=timing.y_first)
    return {f"link_flits_{direction}": each for direction, each in flits.items()}


def _of_dtype(chip: Chip, dtype: str) -> Chip:
    """The chip with the matrix engine of its elements."""
    choose("dtype", dtype, list(ELEMENT_BITS))
    if dtype not in chip.tile.dtypes:
        known = ", ".join(chip.tile.dtypes)
        raise InputError(f"--dtype: chip '{chip.name}' computes {known}, found {dtype}")
    return chip.for_dtype(dtype)


def _target(options: KernelOptions, chip: Chip, networks: Networks, timing: NocTiming) -> Target:
    rows, cols = chip_grid(options.grid, chip)
    target = chip_target(chip, (rows, cols), timing, *ELEMENT_BITS[options.dtype])
    if networks.compute == "perf":
        element_bytes = target.element_bits // 8
        roofline = Roofline(target.matrix.macs_per_cycle, element_bytes=element_bytes)
        target = replace(target, matrix=roofline, after_vector=None)
    if networks.memory is not None:
        edge = chip_edge(chip, networks.memory, (rows, cols))
        target = replace(target, offchip=edge)
    own = networks.own
    return target if own is None else replace(target, in_network=own.combines)


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


def own_network(options: KernelOptions) -> "OwnRouters | None":
    """Somebody's own routers, if the options name some.

    Raises:
        InputError: if the specification is wrong, or its calibration missing or stale.
    """
    if options.rtl is None:
        return None
    if options.memory is not None:
        raise InputError("--memory: found with --rtl; allowed: one of --rtl and --memory")
    from wafertlm.kernel_routers import own_routers  # slow to import: only for somebody's routers

    return own_routers(options.rtl, allow_stale=options.allow_stale)
