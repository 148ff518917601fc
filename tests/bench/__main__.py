"""``python -m tests.bench``: how fast the models and the command are, and the scaling curve."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.bench import command, kernels, loosely, memory, network, serving, wafer
from tests.bench.measure import Row, short
from tests.bench.network import Note, Point
from tlm.errors import InputError


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work a run is.

    Attributes:
        runs: Runs of a row.
        first_runs: Runs with compilation.
        packets: Packets of the rate of the mesh.
        race_side: Side of the mesh that is raced against its Verilog.
        race_cycles: Cycles of such a race.
        sides: Meshes of the curve.
        hops: Packet-hops of a point of the curve, at least.
        grids: Sides of the loosely-timed engine's grids.
        check_sides: Sides of the grids whose kernel is checked.
        die_bytes: Of each message between dies.
        requests: Requests to a DRAM channel.
        conversations: Requests that are served.
        many: Requests that are generated and served.
        trace: Requests that are served instead.
        commands: Subcommands that are started.
        kernel_runs: Most runs of a kernel of an iteration; None: all.
    """

    runs: int = 5
    first_runs: int = 2
    packets: int = 500_000
    race_side: int = network.SIDE
    race_cycles: int = 20_000
    sides: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    hops: int = 1_000_000
    grids: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 720, 921)
    check_sides: tuple[int, ...] = (720,)
    die_bytes: int = 262_144
    requests: int = 1_000_000
    conversations: int = 19_366
    many: int = 1_000_000
    trace: Path | None = None
    commands: tuple[str, ...] = tuple(command.COMMANDS)
    kernel_runs: int | None = None


@dataclass(slots=True)
class Findings:
    """The rows, and the points of the curve."""

    rows: list[Row] = field(default_factory=list)
    curve: list[Point] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """All as JSON holds it."""
        return {
            "rows": [row.to_json() for row in self.rows],
            "curve": [point.to_json() for point in self.curve],
        }


def _mesh(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += network.rate_rows(sizes.packets, sizes.runs, done)


def _race(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += network.race_rows(sizes.race_side, sizes.race_cycles, sizes.runs, done)


def _curve(sizes: Sizes, findings: Findings, done: Note) -> None:
    points, rows = network.scaling(sizes.sides, sizes.hops, sizes.runs, done)
    findings.curve += points
    findings.rows += rows


def _loosely(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += loosely.loosely_rows(sizes.grids, sizes.runs, done)


def _kernels(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += kernels.kernels_rows(sizes.kernel_runs, sizes.runs, done)


def _check(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += wafer.check_rows(sizes.check_sides, sizes.runs, done)


def _dies(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += wafer.dies_rows(sizes.die_bytes, sizes.runs, done)


def _memory(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += memory.memory_rows(sizes.requests, sizes.runs, done)


def _serving(sizes: Sizes, findings: Findings, done: Note) -> None:
    rows = serving.serving_rows(sizes.conversations, sizes.runs, sizes.trace, done)
    findings.rows += rows


def _many(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += serving.many_rows(sizes.many, done)


def _command(sizes: Sizes, findings: Findings, done: Note) -> None:
    findings.rows += command.command_rows(sizes.commands, sizes.runs, sizes.first_runs, done)


PARTS: dict[str, Callable[[Sizes, Findings, Note], None]] = {
    "mesh": _mesh,
    "race": _race,
    "curve": _curve,
    "lt": _loosely,
    "kernels": _kernels,
    "check": _check,
    "dies": _dies,
    "memory": _memory,
    "serving": _serving,
    "many": _many,
    "command": _command,
}


def measure(parts: Sequence[str], sizes: Sizes, note: Callable[[str], object]) -> Findings:
    """Measure parts of the table, one after the other; ``note`` hears a part's name each run."""
    findings = Findings()
    for part in parts:
        note(part)
        PARTS[part](sizes, findings, partial(note, part))
    return findings


def rows_table(rows: Sequence[Row]) -> Table:
    """The speed table."""
    table = Table("work", "unit", "median", "least .. most", "target", "met", title="Speed")
    for row in rows:
        bound = "at least" if row.higher_is_better else "at most"
        table.add_row(
            f"{row.work}\n({row.equal_work} on both)" if row.equal_work else row.work,
            row.unit,
            short(row.median),
            f"{short(min(row.runs))} .. {short(max(row.runs))}",
            "" if row.target is None else f"{bound} {short(row.target)}",
            {True: "yes", False: "NO", None: ""}[row.met],
        )
    return table


def curve_table(curve: Sequence[Point]) -> Table:
    """The cost of a packet-hop over the size of the mesh."""
    table = Table("mesh", "packets", "packet-hops", "ns a packet-hop", "least .. most")
    table.title = "Neighbours and row multicasts"
    for point in curve:
        found = point.to_json()
        table.add_row(
            found["mesh"],
            f"{point.packets:,}",
            f"{point.packet_hops:,}",
            short(found["cost_ns_per_packet_hop"]),
            f"{short(min(point.cost_ns))} .. {short(max(point.cost_ns))}",
        )
    return table


@click.command()
@click.option("--part", "parts", type=click.Choice(list(PARTS)), multiple=True, help="Only these.")
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True, help="Of each row.")
@click.option("--trace", type=click.Path(path_type=Path), help="Serve this trace's requests.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(parts: tuple[str, ...], runs: int, trace: Path | None, as_json: bool) -> None:
    """Measure how fast the models and the command are, in CPU time.

    A row's median is held to its target; the spread stands beside it. The first race builds the
    Verilated mesh, which takes minutes. Exit status 1 if a target is missed, or if
    the two sides of a race do not do the same.
    """
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("bench", total=None)

        def note(part: str) -> None:
            progress.update(task, description=f"bench: {part}", advance=1)

        try:
            findings = measure(parts or tuple(PARTS), Sizes(runs=runs, trace=trace), note)
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(2) from error
        except RuntimeError as error:  # no build, unequal work, or a command that failed
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(1) from error
    if as_json:
        print(json.dumps(findings.to_json(), indent=2))
    else:
        console.print(rows_table(findings.rows))
        if findings.curve:
            console.print(curve_table(findings.curve))
    if any(row.met is False for row in findings.rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
