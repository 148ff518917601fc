"""``wafertlm check``: programs on a chip, checked without running them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError, choose
from tlm.files import names_file
from wafertlm.asked.kernel import KernelOptions, known_names
from wafertlm.commands.common import (
    OutputFile,
    WholeNumber,
    options_of,
    output_options,
    required,
)
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.options import chip_told
from wafertlm.output import CheckFailedError, Result, complete, config_hash, emit, progress
from wafertlm.stopwatch import stopwatch

if TYPE_CHECKING:  # slow to import: only to run
    from tlm.check import Report
    from wafertlm.checked import CheckedKernel
    from wafertlm.kernel import Setup

_REQUIRED = ("kernel", "chip", "grid", "shape")
_OF_METHODS, _OF_LAYER = _REQUIRED[1:], ("chip", "model", "phase")
_OPTIONS = (*_REQUIRED, "dtype", "collective", "groups", "schedule", "set")


def report_figures(report: "Report", grid: tuple[int, int]) -> dict[str, Any]:
    """A report as the command's own fields."""
    from tlm.check import verdicts
    from wafertlm.checked import verdict_record

    return {
        "holds": report.holds,
        "operations": report.operations,
        "plmr": {
            "parallelism": asdict(report.parallelism),
            "latency": asdict(report.latency),
            "memory": asdict(report.memory),
            "routing": asdict(report.routing),
        },
        "verdicts": [verdict_record(each) for each in verdicts(report, grid)],
        "findings": [asdict(finding) for finding in report.findings],
        "more_findings": report.more,
    }


def _render(result: Result) -> RenderableType:
    options, plmr = result["options"], result["plmr"]
    title = f"{options['kernel']} {options['shape']} on {options['grid']} of {chip_told(options)}"
    table = Table("property", "figure", "value", "limit", title=title)
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
    lines = [f"{found['rule']}: {_where(found)}{found['message']}" for found in result["findings"]]
    if result["more_findings"]:
        lines.append(f"and {result['more_findings']:,} operations with faults of the same tokens")
    lines += map(_verdict_line, result["verdicts"])
    return Group(table, *lines, "holds" if result["holds"] else "does not hold")


def _render_many(result: Result) -> RenderableType:
    options = result["options"]
    what = f"{options['model']}, {options['phase']}," if "model" in options else "methods"
    table = Table(title=f"{what} on {chip_told(options)}")
    for name in ("operator", "kernel", "shape", "place"):
        table.add_column(name)
    for letter in "PLMR":
        table.add_column(letter, justify="right")
    for each in result["kernels"]:
        marks = (_mark(verdict) for verdict in each["verdicts"])
        table.add_row(each["operator"], each["kernel"], each["shape"], each["place"], *marks)
    table.caption = "what was found; ! where it is past the bound"
    return Group(table, *map(_verdict_line, result.get("verdicts", ())))


def _mark(verdict: Result) -> str:
    return _found(verdict) + ("" if verdict["holds"] else " !")


def _found(verdict: Result) -> str:
    found = verdict["found"]
    return f"{found:.0%}" if verdict["property"] == "P" else f"{found:,}"


def _verdict_line(verdict: Result) -> str:
    word, bound = "holds" if verdict["holds"] else "does not hold", verdict["bound"]
    of = "" if bound is None else f" of {bound:.0%}" if bound == 1.0 else f" of {bound:,}"
    who = f" ({verdict['operator']})" if "operator" in verdict else ""
    return f"{verdict['property']} {word}: {verdict['measure']}, {_found(verdict)}{of}{who}"


def _limit(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _where(found: dict[str, Any]) -> str:
    if found["operation"] is None:
        return ""
    return f"operation {found['operation']} ('{found['label']}'), "


def _known_names() -> dict[str, list[str]]:
    from wafertlm.checked_layer import PHASES
    from workloads.models import model_names

    kinds = ("kernels", "chips", "dtypes", "collectives", "schedules")
    known = {kind: known for kind, known in known_names().items() if kind in kinds}
    return known | {"models": list(model_names()), "phases": list(PHASES)}


@click.command("check", cls=GroupedCommand)
@click.argument("kernel", required=False, metavar="[NAME|FILE.py:NAME]")
@options_of(KernelOptions, _OPTIONS)
@click.option("--methods", is_flag=True, help="All methods of a product, side by side.")
@click.option("--model", help="A layer of a model, in place of a kernel.")
@click.option("--phase", help="Of --model: prefill or decode.")
@click.option(
    "--tokens", type=WholeNumber(), help="Of --model: new tokens, or those cached; 4096 if none."
)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(_known_names)
def command(
    out: Path | None,
    as_json: bool,
    methods: bool,
    model: str | None,
    phase: str | None,
    tokens: int | None,
    **given: Any,
) -> None:
    """Check programs without running them: a kernel, the methods of a product, or a layer.

    Tokens, cyclic waits, the order of reductions, and P, L, M and R: parallelism, latency, memory
    and routing, each with a verdict against its bound.
    """
    if model is None and not (phase is None and tokens is None):
        raise InputError("check: found --phase or --tokens without --model")
    if model is not None:
        _check_layer(given, methods)
        _layer(given | {"model": model, "phase": phase, "tokens": tokens}, as_json, out)
    elif methods:
        _methods(given, as_json, out)
    else:
        _kernel(given, as_json, out)


def _kernel(given: dict[str, Any], as_json: bool, out: Path | None) -> None:
    from tlm.check import check_program, chip_limits
    from wafertlm.kernel import resolve

    required("check", given, _REQUIRED)
    # As for level `lt`; what does not fit a tile's memory is a finding.
    setup = resolve(KernelOptions(**given))
    with stopwatch() as watch, progress("operations") as show:
        report = check_program(setup.program, chip_limits(setup.chip), show)
    figures = report_figures(report, (setup.place.rows, setup.place.cols))
    result = _complete(_kept(setup, _OPTIONS), figures, setup, watch.times)
    emit(result, as_json, _render, out)
    if not report.holds:
        raise CheckFailedError("; ".join(found.message for found in report.findings))


def _methods(given: dict[str, Any], as_json: bool, out: Path | None) -> None:
    """A comparison: it is no failure that some do not hold."""
    from wafertlm.checked import GEMM_METHODS, GEMV_METHODS, ToCheck, check_kernels
    from wafertlm.kernel import resolve

    if given["kernel"] is not None:
        raise InputError(f"check: found kernel '{given['kernel']}' with --methods; allowed: none")
    required("check", given, _OF_METHODS)
    names = GEMV_METHODS if given["shape"].startswith("1,") else GEMM_METHODS
    with stopwatch() as watch, progress("methods") as show:
        setups = [resolve(KernelOptions(**given | {"kernel": name})) for name in names]
        checked = check_kernels([ToCheck(s.options.kernel, 1, s, s.options) for s in setups], show)
    options = _kept(setups[0], _OPTIONS[1:]) | {"methods": True}
    result = _complete(options, _many(checked), setups[0], watch.times)
    emit(result, as_json, _render_many, out)


def _check_layer(given: dict[str, Any], methods: bool) -> None:
    others = [name for name in ("kernel", "shape", "dtype", "groups") if given[name] is not None]
    if methods or others:
        found = "--methods" if methods else others[0]
        raise InputError(f"check: found {found} with --model; allowed: a layer by itself")


def _layer(given: dict[str, Any], as_json: bool, out: Path | None) -> None:
    from wafertlm.checked import check_kernels, of_layer
    from wafertlm.checked_layer import PHASES, TOKENS, layer_kernels
    from workloads.models import find_model

    required("check", given, _OF_LAYER)
    model = find_model(given["model"])
    if given["tokens"] is None:
        given["tokens"] = TOKENS
    choose("phase", given["phase"], PHASES)
    with stopwatch() as watch, progress("kernels") as show:
        kernels, weights = layer_kernels(given)
        checked = check_kernels(kernels, show)
    setup = kernels[0].setup
    options = _kept(setup, ("chip", "collective", "schedule", "set"))
    options |= {name: given[name] for name in ("phase", "tokens", "grid")}
    options["model"] = model.name
    held = {"model": config_hash(model.model_dump())} if names_file(given["model"]) else {}
    figures = {"verdicts": of_layer(checked, weights)} | _many(checked)
    emit(_complete(options, figures, setup, watch.times, held), as_json, _render_many, out)
    faults = [
        f"{each.what.operator}: {found.message}" for each in checked for found in each.findings
    ]
    if faults:
        raise CheckFailedError("; ".join(faults))


def _kept(setup: "Setup", names: Sequence[str]) -> dict[str, Any]:
    options = setup.recorded_options()
    return {name: options[name] for name in names if name in options}


def _many(checked: Sequence["CheckedKernel"]) -> dict[str, Any]:
    return {
        "holds": not any(each.findings for each in checked),
        "kernels": [each.record() for each in checked],
    }


def _complete(
    options: dict[str, Any],
    figures: dict[str, Any],
    setup: "Setup",
    times: dict[str, float],
    held: Mapping[str, str] = {},
) -> dict[str, Any]:
    return complete(
        "check",
        options,
        figures,
        times,
        calibration=setup.chip.calibration,
        contents={**setup.contents(), **held},
    )
