"""``wafertlm kernel``: a kernel on a chip, at the level of detail that the question needs."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import RenderableType
from rich.table import Table

from tlm.calibrated import stale_allowed
from tlm.chips import load_chip
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.interconnect.packets import TileSet
from tlm.interconnect.traffic import parse_rectangle
from tlm.trace import Timeline
from wafertlm.kernel_networks import provenance_hash
from wafertlm.kernel_options import KernelOptions, known_names
from wafertlm.kernel_runs import kernel_result, own_network
from wafertlm.kernel_unequal import unequal_tiles
from wafertlm.options import parse_grid, render_names
from wafertlm.output import Result, complete, emit, log, progress, store
from wafertlm.stopwatch import stopwatch

_SHOWN_SIDE = 8


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
    for part in ("network", "memory", "tiles"):
        for name, value in result.get(part, {}).items():
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            if name != "table":
                table.add_row(f"{part} {name}", shown)
    table.add_row("cpu_s", f"{result['cpu_s']:.3g}")
    return table


@click.command("kernel")
@click.argument("kernel", required=False)
@click.option("--chip", help="Chip profile.")
@click.option("--grid", help="ROWSxCOLS of its tiles.")
@click.option(
    "--shape",
    help="M,N,K of C[M,N] = A[M,K] B[K,N]; M,N of a softmax; B,Hq,Hkv,Sq,Skv,Dqk,Dv of attention.",
)
@click.option("--dtype", help="Type of the elements.")
@click.option(
    "--level",
    default="lt",
    show_default=True,
    help="rtl, at, lt or perf; perf has the matrix engine's roofline, the others its cycles.",
)
@click.option("--noc", help="Level of the network, if another: rtl, at, lt or perf.")
@click.option(
    "--memory", help="Count the time of off-chip memory, at a level: rtl, at or perf (formula)."
)
@click.option("--compute", help="Level of the matrix engine, if another: rtl, at or perf.")
@click.option("--rtl", metavar="SPEC", help="A network of your own, calibrated by its SPEC.toml.")
@click.option("--collective", help="How reductions are made, if another way; see --list.")
@click.option("--groups", help="Of mesh-gemv: groups of each level of its tree but the last.")
@click.option("--schedule", help="Of flat-attention: naive or async (default).")
@click.option(
    "--tiles",
    metavar="FILE",
    help="CSV table of the chip's tiles: per cent of the cycles of work, 0 for a disabled tile.",
)
@click.option("--threads", type=int, help="Threads of level lt, which change no figure.")
@click.option(
    "--waves", type=click.Path(path_type=Path), help="Record what is Verilog at level rtl (VCD)."
)
@click.option("--out", type=click.Path(path_type=Path), help="Store the result (JSON).")
@click.option("--map", "map_path", type=click.Path(path_type=Path), help="Store maps (npz).")
@click.option(
    "--timeline", type=click.Path(path_type=Path), help="Store a timeline for Perfetto (json.gz)."
)
@click.option("--region", help="Tiles of the timeline: r0:r1,c0:c1; else the first 8x8.")
@click.option("--every", type=int, default=1, show_default=True, help="Every n-th operation of it.")
@click.option("--allow-stale", is_flag=True, help="Use measurements that are out of date.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print what the options may name.")
def command(
    waves: Path | None,
    out: Path | None,
    map_path: Path | None,
    timeline: Path | None,
    region: str | None,
    every: int,
    threads: int | None,
    as_json: bool,
    as_list: bool,
    **given: Any,
) -> None:
    """Run a kernel on a chip.

    Matrices lie in the tiles' memories before and after; those of attention come from off-chip
    memory, whose time is counted with --memory.
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
    shown = None if timeline is None else _timeline(options, region, every)
    with stopwatch() as watch, progress(f"{options.kernel}: operations") as told:
        figures, maps = kernel_result(
            options,
            waves=waves,
            building=watch.compiling,
            recorder=shown,
            links=map_path is not None,
            progress=told,
            threads=threads,
        )
    result = complete_kernel(options, figures, watch.times)
    if map_path is not None:
        store_maps(maps, map_path)
    if timeline is not None and shown is not None:
        shown.write(timeline)
        if shown.dropped or shown.dropped_transfers:
            log(
                f"timeline: no room for {shown.dropped:,} spans and {shown.dropped_transfers:,} "
                "transfers; show fewer by --region or --every"
            )
    if out is not None:
        store(result, out)
    emit(result, as_json, _render)


def _timeline(options: KernelOptions, region: str | None, every: int) -> Timeline:
    tiles = unequal_tiles(options)
    rows, cols = parse_grid("--grid", options.grid) if tiles is None else tiles.grid
    if region is None:
        shown = TileSet(range(min(rows, _SHOWN_SIDE)), range(min(cols, _SHOWN_SIDE)))
    else:
        shown = parse_rectangle(region, rows, cols)
    own = own_network(options)
    y_first = own is not None and own.timing.y_first
    return Timeline(shown, cols, every=every, y_first=y_first)


def complete_kernel(
    options: KernelOptions, figures: dict[str, Any], times: dict[str, float]
) -> dict[str, Any]:
    """The command's result object; RTL stands behind the chips and networks that are made of it."""
    calibration = load_chip(options.chip).calibration
    rtl_hash, recorded = None, asdict(options)
    if options.tiles is not None:
        recorded["tiles"] = figures["tiles"]["table"]
    with stale_allowed(options.allow_stale):
        own = own_network(options)
        if own is not None:
            calibration, recorded["rtl"] = own.spec.name, own.spec.file.name
        if calibration is not None:
            rtl_hash = provenance_hash(own)
    return complete("kernel", recorded, figures, times, rtl_hash=rtl_hash, calibration=calibration)
