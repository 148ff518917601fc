"""``wafertlm kernel``: a kernel on a chip, at the level of detail that the question needs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import RenderableType
from rich.table import Table

from tlm.calibrated import level_error_pct, stale_allowed
from tlm.chips import Chip, chip_names, load_chip
from tlm.chips.parts import matrix_engine, noc_timing
from tlm.chips.profile import CalibratedNoc
from tlm.compute.base import Compute
from tlm.compute.roofline import Roofline
from tlm.engines.lt import run_lt
from tlm.engines.outcome import Outcome
from tlm.errors import InputError, choose
from tlm.files import whole_file
from tlm.interconnect.zero_load import NocTiming
from wafertlm.kernel_networks import (
    OwnRouters,
    own_routers,
    provenance_hash,
    run_at_model,
    run_at_rtl,
)
from wafertlm.options import parse_grid, render_names
from wafertlm.output import Result, complete, emit, store
from wafertlm.stopwatch import stopwatch
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm import GemmPlan, plan_gemm

LEVELS = ("at", "lt", "perf")
_RTL = "rtl"
_ELEMENT_BYTES = {"int8": 1, "int16": 2, "fp16": 2, "bf16": 2, "fp8": 1, "fp32": 4}
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
    compute: str | None = None
    rtl: str | None = None
    allow_stale: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    plan: GemmPlan
    engine: Compute
    cycles: int
    busy_cycles: int
    outcome: Outcome | None
    network: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Networks:
    """What packets run on: levels, somebody's own routers, and how Verilog is built and watched."""

    noc: str
    compute: str
    own: OwnRouters | None
    waves: Path | None
    building: _Building


def kernel_result(
    options: KernelOptions, *, waves: Path | None = None, building: _Building = nullcontext
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures of a run, and its maps: arrays of shape (rows, columns), empty at level `perf`.

    Args:
        options: What is run.
        waves: A VCD file of the network, where it is Verilog.
        building: The context in which Verilog is built.

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
        own = _own(options)
        return _figures(options, chip, _Networks(noc, compute, own, waves, building))


def _figures(
    options: KernelOptions, chip: Chip, networks: _Networks
) -> tuple[dict[str, Any], dict[str, Any]]:
    run = _run(options, chip, networks)
    m, n, k = _shape(options.shape)
    peak = run.plan.side**2 * matrix_engine(chip).macs_per_cycle
    figures = {
        "cycles": run.cycles,
        "seconds": run.cycles / chip.clock_hz,
        "utilization": m * n * k / (run.cycles * peak),
        "breakdown_cycles": _breakdown(run, matrix_engine(chip)),
        "error": {
            # Nothing of a foreign chip was ever held against our RTL.
            "level_pct": _level_pct(options.kernel, networks, run) if chip.calibration else None,
            "profile_pct": None,
        },
    }
    if run.network is not None:
        figures["network"] = run.network
    return figures, {} if run.outcome is None else _maps(run.outcome)


def _level_pct(kernel: str, networks: _Networks, run: _Run) -> float | None:
    """Error of the levels used; of somebody's own network modelled that of its calibration too."""
    error = level_error_pct(kernel, networks.noc, networks.compute, run.plan.balance)
    if error is None or networks.own is None or networks.noc == "rtl":
        return error
    return max(error, networks.own.worst_error_pct)


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    return {
        "kernels": list(KERNELS),
        "chips": list(chip_names()),
        "levels": list(LEVELS),
        "noc": [_RTL, *LEVELS],
        "dtypes": list(_ELEMENT_BYTES),
    }


def _levels(options: KernelOptions, chip: Chip) -> tuple[str, str]:
    """Levels of the network and of the matrix engine."""
    mixes = "level at, lt or perf; --noc rtl|at|lt|perf with --compute at|perf"
    for name, level, known in (
        ("--level", options.level, LEVELS),
        ("--noc", options.noc, (_RTL, *LEVELS)),
    ):
        if level is not None and level not in known:
            raise InputError(f"{name}: '{level}' does not run kernels; those that do: {mixes}")
    noc = options.noc or options.level
    compute = options.compute or ("perf" if options.level == "perf" else "at")
    if compute not in ("at", "perf"):
        raise InputError(f"--compute: found '{compute}'; those that run kernels: {mixes}")
    if options.rtl is not None:
        if noc not in (_RTL, "at"):
            raise InputError(f"--rtl: found network at level {noc}; allowed: --noc rtl|at")
    elif noc in (_RTL, "at") and not isinstance(chip.noc, CalibratedNoc):
        raise InputError(
            f"--chip: the profile of '{chip.name}' has no router to run packets on; "
            "levels that it has: lt, perf"
        )
    return noc, compute


def _own(options: KernelOptions) -> OwnRouters | None:
    if options.rtl is None:
        return None
    return own_routers(options.rtl, allow_stale=options.allow_stale)


def _run(options: KernelOptions, chip: Chip, networks: _Networks) -> _Run:
    rows, cols = _grid(options.grid, chip)
    choose("dtype", options.dtype, list(_ELEMENT_BYTES))
    if options.dtype not in chip.tile.dtypes:
        known = ", ".join(chip.tile.dtypes)
        raise InputError(f"--dtype: chip '{chip.name}' computes {known}, found {options.dtype}")
    own = networks.own
    timing = noc_timing(chip) if own is None else own.timing
    engine = matrix_engine(chip)
    element_bytes = _ELEMENT_BYTES[options.dtype]
    if networks.compute == "perf":
        engine = Roofline(engine.macs_per_cycle, element_bytes=element_bytes)
    kernel = KERNELS[options.kernel]
    shape = _shape(options.shape)
    plan = plan_gemm(shape, (rows, cols), element_bytes, timing.flit_bytes, engine)
    _check_memory(plan, kernel.buffers, element_bytes, chip)
    if networks.noc == "perf":
        cycles = kernel.closed_form(plan, timing)
        return _Run(plan, engine, cycles, plan.side * plan.step_cycles, None)
    outcome, network = _simulate(options.kernel, plan, timing, networks)
    busy = int(outcome.matrix_busy_cycles[outcome.last_tile])
    return _Run(plan, engine, outcome.cycles, busy, outcome, network)


def _simulate(
    name: str, plan: GemmPlan, timing: NocTiming, networks: _Networks
) -> tuple[Outcome, dict[str, Any] | None]:
    """What came of a program, and of a network in Verilog which one that was."""
    program = KERNELS[name].program(plan)
    if networks.noc == "lt":
        return run_lt(program, timing), None
    if networks.noc == _RTL:
        if plan.side > _LARGEST_RTL_SIDE:
            side = _LARGEST_RTL_SIDE
            raise InputError(
                f"--grid: --noc rtl goes up to {side}x{side} tiles, found {plan.side}x{plan.side}"
            )
        return run_at_rtl(program, timing, networks.own, networks.waves, networks.building)
    if plan.side**2 > _LARGEST_AT_TILES:
        raise InputError(
            f"--grid: level at goes up to {_LARGEST_AT_TILES} tiles, found {plan.side**2}"
        )
    return run_at_model(program, timing, networks.own), None


def _grid(text: str, chip: Chip) -> tuple[int, int]:
    rows, cols = parse_grid("--grid", text)
    if rows > chip.grid.rows or cols > chip.grid.cols:
        raise InputError(
            f"--grid: chip '{chip.name}' has {chip.grid.rows}x{chip.grid.cols} tiles, found {text}"
        )
    return rows, cols


def _shape(text: str) -> tuple[int, int, int]:
    try:
        m, n, k = (int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--shape: found '{text}'; write M,N,K, such as 64,64,64") from None
    return m, n, k


def _check_memory(plan: GemmPlan, buffers: int, element_bytes: int, chip: Chip) -> None:
    m, k, n = plan.block
    needed = ((m * k + k * n) * buffers + m * n) * element_bytes
    there = int(chip.tile.sram_kib * 1024)
    if needed > there:
        raise InputError(
            f"--shape: blocks of {m}x{k}x{n} take {needed} bytes of a tile's memory; "
            f"allowed on '{chip.name}': {there}"
        )


def _breakdown(run: _Run, engine: Compute) -> dict[str, int]:
    """On the tile that ends last: ideal cycles of its products, the engine's rest, and waiting."""
    ideal = min(run.busy_cycles, round(run.plan.side * run.plan.block_macs / engine.macs_per_cycle))
    return {
        "compute": ideal,
        "communication": run.cycles - run.busy_cycles,
        "memory": 0,
        "overhead": run.busy_cycles - ideal,
    }


def _maps(outcome: Outcome) -> dict[str, Any]:
    return {
        "finish_cycle": outcome.finish_cycle,
        "matrix_busy_cycles": outcome.matrix_busy_cycles,
        "wait_cycles": outcome.wait_cycles,
    }


def store_maps(maps: dict[str, Any], path: Path) -> None:
    """Write arrays over tiles as a compressed ``.npz``.

    Raises:
        InputError: naming the path, if it cannot be written.
    """
    with whole_file(path) as scratch, scratch.open("wb") as file:
        np.savez_compressed(file, **maps)


def _render(result: Result) -> RenderableType:
    options = result["options"]
    title = f"{options['kernel']} {options['shape']} on {options['grid']} of {options['chip']}"
    table = Table("figure", "value", title=f"{title}, level {options['level']}")
    table.add_row("cycles", f"{result['cycles']:,}")
    table.add_row("seconds", f"{result['seconds']:.4g}")
    table.add_row("utilization", f"{result['utilization']:.2%}")
    for part, cycles in result["breakdown_cycles"].items():
        table.add_row(f"cycles: {part}", f"{cycles:,}")
    for kind, error in result["error"].items():
        table.add_row(f"error {kind}", "not checked" if error is None else f"{error:.2f}")
    for name, value in result.get("network", {}).items():
        table.add_row(f"network {name}", f"{value:,}" if isinstance(value, int) else value)
    table.add_row("cpu_s", f"{result['cpu_s']:.3g}")
    return table


@click.command("kernel")
@click.argument("kernel", required=False)
@click.option("--chip", help="Chip profile.")
@click.option("--grid", help="ROWSxCOLS of its tiles.")
@click.option("--shape", help="M,N,K of C[M,N] = A[M,K] B[K,N].")
@click.option("--dtype", help="Type of the elements.")
@click.option("--level", default="lt", show_default=True, help="at, lt or perf.")
@click.option("--noc", help="Level of the network, if another: rtl, at, lt or perf.")
@click.option("--compute", help="Level of the matrix engine, if another: at or perf.")
@click.option("--rtl", metavar="SPEC", help="A network of your own, calibrated by its SPEC.toml.")
@click.option(
    "--waves", type=click.Path(path_type=Path), help="Record the network at --noc rtl (VCD)."
)
@click.option("--out", type=click.Path(path_type=Path), help="Store the result (JSON).")
@click.option("--map", "map_path", type=click.Path(path_type=Path), help="Store maps (npz).")
@click.option("--allow-stale", is_flag=True, help="Use measurements that are out of date.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print what the options may name.")
def command(
    waves: Path | None,
    out: Path | None,
    map_path: Path | None,
    as_json: bool,
    as_list: bool,
    **given: Any,
) -> None:
    """Run a kernel on a chip.

    Its matrices lie in the tiles' memories before and after.
    """
    if as_list:
        emit(known_names(), as_json, render_names)
        return
    for name in ("kernel", "chip", "grid", "shape", "dtype"):
        if given[name] is None:
            raise InputError(f"kernel: {name} not given; see --help and --list")
    options = KernelOptions(**given)
    if map_path is not None and (options.noc or options.level) == "perf":
        raise InputError("--map: level perf has no tiles to map; levels that do: at, lt")
    with stopwatch() as watch:
        figures, maps = kernel_result(options, waves=waves, building=watch.compiling)
    result = complete_kernel(options, figures, watch.times)
    if map_path is not None:
        store_maps(maps, map_path)
    if out is not None:
        store(result, out)
    emit(result, as_json, _render)


def complete_kernel(
    options: KernelOptions, figures: dict[str, Any], times: dict[str, float]
) -> dict[str, Any]:
    """The command's result object; RTL stands behind the chips and networks that are made of it."""
    calibration = load_chip(options.chip).calibration
    rtl_hash, recorded = None, asdict(options)
    with stale_allowed(options.allow_stale):
        own = _own(options)
        if own is not None:
            calibration, recorded["rtl"] = own.spec.name, own.spec.file.name
        if calibration is not None:
            rtl_hash = provenance_hash(own)
    return complete("kernel", recorded, figures, times, rtl_hash=rtl_hash, calibration=calibration)
