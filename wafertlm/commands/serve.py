"""``wafertlm serve``: a model served on a chip under a request trace or a generated load."""

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.chips import chip_names, load_chip
from tlm.errors import InputError
from tlm.files import whole_file
from wafertlm.options import render_names
from wafertlm.output import Progress, Result, complete, emit, progress, store
from wafertlm.stopwatch import stopwatch
from workloads.mapping.machine import is_modelled
from workloads.models import load_model, model_names
from workloads.serving.cost import ServingModel
from workloads.serving.engine import DEFAULT_MAX_SEQUENCES
from workloads.serving.generator import WORKLOADS, generate
from workloads.serving.metrics import RowSink, Slo
from workloads.serving.rows import RowWriter
from workloads.serving.run import Limits, run
from workloads.serving.schedulers import SCHEDULERS, SchedulerOptions, make_scheduler
from workloads.serving.seeds import mean_of
from workloads.serving.tile_cost import TileCost
from workloads.serving.traces import Trace, load_trace

_NOTES = (
    "energy: not modelled",
    "expert_load_bytes: 0, as the models are dense",
    "error: this level of the model has not been checked against RTL or against a machine",
)
_DISTRIBUTION = ("mean", "p50", "p90", "p95", "p99", "p99_9")
_TIMES = ("ttft_s", "tbt_ms", "e2e_s", "queue_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Options of the command; None where not given."""

    model: str
    chip: str
    scheduler: str
    trace: Path | None = None
    workload: str | None = None
    rate_rps: float | None = None
    arrival_cv: float = 1.0
    requests: int | None = None
    rate_scale: float = 1.0
    slo_ttft_s: float | None = None
    slo_tbt_ms: float | None = None
    seed: int = 0
    seeds: int = 1
    token_budget: int | None = None
    kv_tokens: int | None = None
    max_sequences: int = DEFAULT_MAX_SEQUENCES


def serve_result(
    options: ServeOptions,
    progress: Progress | None = None,
    requests_csv: Path | None = None,
) -> dict[str, Any]:
    """Run the load once for each seed and return the command's figures.

    With several seeds every figure is their mean and ``ci95`` holds the intervals.

    Args:
        options: what to run.
        progress: called with finished and all requests of the current run.
        requests_csv: where to write a row per request, of a single seed.

    Raises:
        InputError: for options that do not fit together and unusable input.
    """
    _check(options)
    if requests_csv is not None and options.seeds > 1:
        raise InputError("--requests-csv: holds the requests of one run; leave out --seeds")
    if not is_modelled(load_chip(options.chip)):
        known = ", ".join(known_names()["chips"])
        raise InputError(f"--chip: serving on '{options.chip}' is not modelled; known: {known}")
    model = TileCost(load_model(options.model), load_chip(options.chip))
    results = []
    for seed in range(options.seed, options.seed + options.seeds):
        with _rows(requests_csv) as row:
            results.append(_run(options, model, seed, progress, row))
    return {
        **mean_of(results),
        "error": {"level_pct": None, "profile_pct": None},
        "notes": list(_NOTES),
    }


def _run(
    options: ServeOptions,
    model: ServingModel,
    seed: int,
    progress: Progress | None,
    row: RowSink | None,
) -> dict[str, Any]:
    return run(
        _load(options, seed),
        make_scheduler(options.scheduler, SchedulerOptions(token_budget=options.token_budget)),
        model,
        slo=Slo(options.slo_ttft_s, options.slo_tbt_ms),
        limits=Limits(options.kv_tokens, options.max_sequences),
        progress=progress,
        row=row,
    )


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    single = [name for name in chip_names() if name != "rtl-RxC"]
    return {
        "models": list(model_names()),
        "chips": [name for name in single if is_modelled(load_chip(name))],
        "schedulers": list(SCHEDULERS),
        "workloads": sorted(WORKLOADS),
    }


def _check(options: ServeOptions) -> None:
    if (options.trace is None) == (options.workload is None):
        raise InputError("load: give either --trace or --workload")
    if options.trace is not None and options.rate_rps is not None:
        raise InputError("--rate: a trace has arrival times; --rate-scale stretches them")
    if options.trace is not None and options.seeds > 1:
        raise InputError("--seeds: a trace is the same for every seed; give --workload")
    limits = (("--requests", options.requests, 1), ("--kv-tokens", options.kv_tokens, 1))
    for name, value, least in (*limits, ("--seed", options.seed, 0), ("--seeds", options.seeds, 1)):
        if value is not None and value < least:
            raise InputError(f"{name}: found {value}; allowed: {least} or more")
    for name, slo in (("--slo-ttft", options.slo_ttft_s), ("--slo-tbt", options.slo_tbt_ms)):
        if slo is not None and not 0 < slo < math.inf:
            raise InputError(f"{name}: found {slo}; allowed: positive and finite")
    if not 0 < options.rate_scale < math.inf:
        raise InputError(f"--rate-scale: found {options.rate_scale}; allowed: positive and finite")


def _load(options: ServeOptions, seed: int) -> Trace:
    if options.trace is not None:
        trace = load_trace(options.trace)
        trace = trace if options.requests is None else trace.head(options.requests)
    elif options.workload is None or options.rate_rps is None or options.requests is None:
        raise InputError("--workload: needs --rate and --requests")
    else:
        trace = generate(
            options.workload, options.requests, options.rate_rps, options.arrival_cv, seed
        )
    return trace if options.rate_scale == 1.0 else trace.scaled(options.rate_scale)


@contextmanager
def _rows(path: Path | None) -> Iterator[RowSink | None]:
    """Where to put the rows of requests; the file appears at the end."""
    if path is None:
        yield None
        return
    with whole_file(path) as scratch, scratch.open("w", newline="", encoding="utf-8") as file:
        yield RowWriter(file).add


def _recorded(options: ServeOptions) -> dict[str, Any]:
    """The options as a result keeps them: a trace by its content, an infinite rate as text."""
    recorded = asdict(options)
    if options.trace is not None:
        digest = hashlib.sha256(options.trace.read_bytes()).hexdigest()[:16]
        recorded["trace"] = {"name": options.trace.name, "hash": digest}
    if options.rate_rps is not None and math.isinf(options.rate_rps):
        recorded["rate_rps"] = "inf"
    return recorded


def _render(result: Result) -> RenderableType:
    times = Table("", *_DISTRIBUTION, title=_title(result["options"]))
    for name in _TIMES:
        times.add_row(name, *(_number(result[name][part]) for part in _DISTRIBUTION))
    figures = Table("figure", "value")
    kv = {f"kv {name}": value for name, value in result["kv"].items()}
    shown = {name: value for name, value in result.items() if isinstance(value, int | float)}
    for name, value in (shown | kv).items():
        figures.add_row(name, _number(value))
    return Group(times, figures, *(f"note: {note}" for note in result["notes"]))


def _title(options: Mapping[str, Any]) -> str:
    return f"{options['model']} on {options['chip']}, {options['scheduler']}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"


_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("serve")
@click.option("--model", help="Model to serve.")
@click.option("--chip", help="Chip to serve it on.")
@click.option("--scheduler", help="Scheduling policy.")
@click.option("--trace", type=click.Path(path_type=Path), help="CSV file of requests.")
@click.option("--workload", help="Generated requests with the lengths of a data set.")
@click.option("--rate", "rate_rps", type=float, help="Generated requests a second; inf: offline.")
@click.option("--arrival-cv", type=float, default=1.0, show_default=True, help="1 is Poisson.")
@click.option("--requests", type=int, help="Requests to generate, or to take from the trace.")
@click.option("--rate-scale", type=float, default=1.0, show_default=True, help="Speed of arrivals.")
@click.option("--slo-ttft", "slo_ttft_s", type=float, help="Objective for the first token, s.")
@click.option("--slo-tbt", "slo_tbt_ms", type=float, help="Objective between tokens, ms.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of a generated load.")
@click.option("--seeds", type=int, default=1, show_default=True, help="Runs with other seeds.")
@click.option("--token-budget", type=int, help="Tokens of an iteration (chunked: 512).")
@click.option("--kv-tokens", type=int, help="Key-value memory, instead of what weights leave.")
@click.option("--max-sequences", type=int, default=DEFAULT_MAX_SEQUENCES, help="Running at once.")
@click.option("--out", type=_FILE, help="Store the result (JSON).")
@click.option("--requests-csv", type=_FILE, help="Store a row per request.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print what the options may name.")
def command(
    out: Path | None, requests_csv: Path | None, as_json: bool, as_list: bool, **given: Any
) -> None:
    """Serve a language model's requests on a chip.

    The load is a CSV --trace or a --workload with --rate and --requests.
    """
    if as_list:
        emit(known_names(), as_json, render_names)
        return
    for name in ("model", "chip", "scheduler"):
        if given[name] is None:
            known = ", ".join(known_names()[f"{name}s"])
            raise InputError(f"--{name}: not given; known: {known}")
    options = ServeOptions(**given)
    with stopwatch() as watch, progress("requests") as bar:
        figures = serve_result(options, bar, requests_csv)
    result = complete_serve(options, figures, watch.times)
    if out is not None:
        store(result, out)
    emit(result, as_json, _render)


def complete_serve(
    options: ServeOptions, figures: dict[str, Any], times: dict[str, float]
) -> dict[str, Any]:
    """The command's result object; no RTL stands behind a foreign chip."""
    seed = None if options.workload is None else options.seed
    return complete("serve", _recorded(options), figures, times, seed=seed)
