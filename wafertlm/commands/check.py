"""``wafertlm check``: a kernel's program on a chip, checked without running it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from tlm.check import Report, check_program, chip_limits
from wafertlm.commands.common import OutputFile, options_of, output_options, required
from wafertlm.kernel import KernelOptions, resolve
from wafertlm.kernel.options import known_names
from wafertlm.options import chip_told
from wafertlm.output import CheckFailedError, Result, complete, emit, progress
from wafertlm.stopwatch import stopwatch

_REQUIRED = ("kernel", "chip", "grid", "shape", "dtype")
_OPTIONS = (*_REQUIRED, "collective", "groups", "schedule", "set")


def report_figures(report: Report) -> dict[str, Any]:
    """A report as the command's own fields."""
    return {
        "holds": report.holds,
        "operations": report.operations,
        "plmr": {
            "parallelism": asdict(report.parallelism),
            "latency": asdict(report.latency),
            "memory": asdict(report.memory),
            "routing": asdict(report.routing),
        },
        "findings": [asdict(finding) for finding in report.findings],
        "more_findings": report.more,
    }


def _render(result: Result) -> RenderableType:
    options, plmr = result["options"], result["plmr"]
    title = f"{options['kernel']} {options['shape']} on {options['grid']} of {chip_told(options)}"
    table = Table("property", "figure", "value", "limit", title=escape(title))
    p, latency, m, r = (plmr[name] for name in ("parallelism", "latency", "memory", "routing"))
    table.add_row("P", "tiles", f"{p['tiles']:,}", "")
    table.add_row("", "share of them that compute", f"{p['busy_share']:.1%}", "")
    table.add_row("", "mean over most busy", f"{p['balance']:.1%}", "")
    table.add_row("L", "hops of the longest transfer", f"{latency['longest_hops']:,}", "")
    table.add_row("", "hops on the longest chain", f"{latency['chain_hops']:,}", "")
    table.add_row("", "routing stages on it", f"{latency['chain_stages']:,}", "")
    table.add_row(
        "M", "bytes of the fullest tile", f"{m['peak_bytes']:,}", _limit(m["limit_bytes"])
    )
    most = f"{'at least ' if r['at_least'] else ''}{r['most_paths']:,}"
    table.add_row("R", "routing paths of the busiest router", most, _limit(r["limit_paths"]))
    lines = [
        escape(f"{found['rule']}: {_where(found)}{found['message']}")
        for found in result["findings"]
    ]
    if result["more_findings"]:
        lines.append(f"and {result['more_findings']:,} operations with faults of the same tokens")
    return Group(table, *lines, "holds" if result["holds"] else "does not hold")


def _limit(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _where(found: dict[str, Any]) -> str:
    if found["operation"] is None:
        return ""
    return f"operation {found['operation']} ('{found['label']}'), "


def _known_names() -> dict[str, list[str]]:
    kinds = ("kernels", "chips", "dtypes", "collectives", "schedules")
    return {kind: known for kind, known in known_names().items() if kind in kinds}


@click.command("check")
@click.argument("kernel", required=False)
@options_of(KernelOptions, _OPTIONS)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(_known_names)
def command(out: Path | None, as_json: bool, **given: Any) -> None:
    """Check a kernel's program without running it.

    Tokens, cyclic waits, the order of reductions, and P, L, M and R: parallelism, latency, memory
    and routing, against the limits of the chip's profile.
    """
    required("check", given, _REQUIRED)
    # As for level `lt`; what does not fit a tile's memory is a finding.
    setup = resolve(KernelOptions(**given))
    with stopwatch() as watch, progress("operations") as show:
        report = check_program(setup.program, chip_limits(setup.chip), show)
    kept = setup.recorded_options()
    result = complete(
        "check",
        {name: kept[name] for name in _OPTIONS if name in kept},
        report_figures(report),
        watch.times,
        calibration=setup.chip.calibration,
        contents=setup.contents(),
    )
    emit(result, as_json, _render, out)
    if not report.holds:
        raise CheckFailedError("; ".join(found.message for found in report.findings))
