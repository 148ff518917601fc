"""``wafertlm dies``: collectives between the dies of a wafer, alone or behind kernels."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.table import Table

from tlm.chips import chip_names, load_chip
from tlm.dies.closed_form import collective_ticks, link_loads
from tlm.dies.collectives import COLLECTIVES, collective
from tlm.dies.links import TICKS_PER_S, DieMesh, die_mesh
from tlm.dies.schedule import DiePhase, in_turns, overlapped
from tlm.dies.simulate import simulate
from tlm.errors import InputError, choose
from tlm.interconnect.packets import TileSet
from tlm.interconnect.traffic import parse_rectangle
from wafertlm.commands.common import output_options, required
from wafertlm.output import Result, complete, emit
from wafertlm.stopwatch import stopwatch

LEVELS = ("lt", "perf")
_LONGEST_KERNEL_S = 1000
_MOST_REPEATS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DiesOptions:
    """Options of the command."""

    chip: str
    collective: str
    bytes: int
    group: str = "all"
    level: str = "lt"
    kernel_s: float | None = None
    repeat: int = 1
    micro_batches: int = 2


def dies_result(options: DiesOptions) -> dict[str, Any]:
    """Figures of a collective between dies.

    Raises:
        InputError: for options that do not fit together or to the chip.
    """
    choose("level", options.level, LEVELS)
    _check_run(options)
    mesh = die_mesh(load_chip(options.chip))
    group = _group(options.group, mesh)
    messages = collective(options.collective, mesh, group, options.bytes)
    closed = collective_ticks(options.collective, mesh, group, options.bytes)
    ticks = simulate(messages, mesh).ticks if options.level == "lt" else closed
    busiest = int(link_loads(messages, mesh).max())
    figures: dict[str, Any] = {
        "seconds": ticks / TICKS_PER_S,
        "messages": len(messages),
        "bytes": int(messages.units.sum()),
        "busiest_link_bytes": busiest,
        "busiest_link_utilization": busiest * mesh.ticks_per_unit / ticks,
        # At level perf nothing says how far the closed form is off.
        "perf_error_pct": 100 * (closed - ticks) / ticks if options.level == "lt" else None,
    }
    if options.kernel_s is not None:
        figures["run"] = _run(options, mesh, group, ticks)
    return figures


def _run(options: DiesOptions, mesh: DieMesh, group: TileSet, ticks: int) -> dict[str, Any]:
    """Kernels with a collective behind each, in turns and overlapped."""
    assert options.kernel_s is not None
    kernel, parts = round(options.kernel_s * TICKS_PER_S), options.micro_batches
    turns = in_turns([DiePhase((kernel,), ticks)] * options.repeat)
    part = -(-options.bytes // parts)
    if options.level == "lt":
        part_ticks = simulate(collective(options.collective, mesh, group, part), mesh).ticks
    else:
        part_ticks = collective_ticks(options.collective, mesh, group, part)
    both = overlapped([DiePhase((kernel // parts,), part_ticks)] * options.repeat, parts)
    return {
        "in_turns_s": turns.ticks / TICKS_PER_S,
        "overlapped_s": both.ticks / TICKS_PER_S,
        "kernel_s": turns.kernel_ticks / TICKS_PER_S,
        "collective_s": turns.collective_ticks / TICKS_PER_S,
        "overlapped_collective_s": both.collective_ticks / TICKS_PER_S,
    }


def _check_run(options: DiesOptions) -> None:
    if options.kernel_s is not None and not 0 <= options.kernel_s <= _LONGEST_KERNEL_S:
        raise InputError(
            f"--kernel-s: found {options.kernel_s:g}; allowed: 0 to {_LONGEST_KERNEL_S}"
        )
    for name, value in (("--repeat", options.repeat), ("--micro-batches", options.micro_batches)):
        if not 1 <= value <= _MOST_REPEATS:
            raise InputError(f"{name}: found {value}; allowed: 1 to {_MOST_REPEATS}")


def _group(text: str, mesh: DieMesh) -> TileSet:
    if text == "all":
        return TileSet(range(mesh.rows), range(mesh.cols))
    return parse_rectangle(text, mesh.rows, mesh.cols)


def _render(result: Result) -> RenderableType:
    options = result["options"]
    title = f"{options['collective']} of {options['bytes']:,} bytes on {options['chip']}"
    table = Table("figure", "value", title=f"{title}, level {options['level']}")
    table.add_row("microseconds", f"{result['seconds'] * 1e6:,.3f}")
    table.add_row("messages", f"{result['messages']:,}")
    table.add_row("bytes moved", f"{result['bytes']:,}")
    table.add_row("bytes over the busiest link", f"{result['busiest_link_bytes']:,}")
    table.add_row("utilization of that link", f"{result['busiest_link_utilization']:.1%}")
    error = result["perf_error_pct"]
    table.add_row("error of level perf", "not checked" if error is None else f"{error:+.1f} %")
    for name, value in result.get("run", {}).items():
        label = name.removesuffix("_s").replace("_", " ")
        table.add_row(f"run, microseconds: {label}", f"{value * 1e6:,.3f}")
    table.add_row("cpu_s", f"{result['cpu_s']:.3g}")
    return table


def _known_names() -> dict[str, list[str]]:
    wafers = [name for name in chip_names() if "RxC" not in name and load_chip(name).dies]
    return {"chips": wafers, "collectives": list(COLLECTIVES), "levels": list(LEVELS)}


@click.command("dies")
@click.option("--chip", help="Chip profile with dies.")
@click.option("--collective", help="What the dies do together.")
@click.option("--bytes", type=int, help="Of each message, block or die; of all-reduce the whole.")
@click.option("--group", default="all", show_default=True, help="all, or r0:r1,c0:c1 of the dies.")
@click.option("--level", default="lt", show_default=True, help="lt or perf.")
@click.option("--kernel-s", type=float, help="Seconds of a kernel before the collective.")
@click.option("--repeat", type=int, default=1, show_default=True, help="Kernels and collectives.")
@click.option(
    "--micro-batches", type=int, default=2, show_default=True, help="Parts when overlapped."
)
@click.option("--out", type=click.Path(path_type=Path), help="Store the result (JSON).")
@output_options(_known_names)
def command(out: Path | None, as_json: bool, **given: Any) -> None:
    """Run a collective between the dies of a wafer.

    With --kernel-s, kernels and collectives in turns and overlapped in micro-batches too.
    """
    required("dies", given, ("chip", "collective", "bytes"))
    options = DiesOptions(**given)
    with stopwatch() as watch:
        figures = dies_result(options)
    result = complete("dies", asdict(options), figures, watch.times)
    emit(result, as_json, _render, out)
