"""``wafertlm serve``: a model served on a chip under a request trace or a generated load."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tlm.errors import InputError
from wafertlm import __version__
from wafertlm.commands.common import render_names
from wafertlm.output import Progress, Result, complete, config_hash, emit, progress, store
from wafertlm.serving import ALL_SCHEDULERS, ServeOptions, Service, rate_of
from wafertlm.stopwatch import stopwatch
from workloads.models import DTYPE_BYTES, model_names
from workloads.serving.capacity import Capacity, find_rate
from workloads.serving.checkpoint import CHECKPOINT_EVERY_S, Checkpoint
from workloads.serving.engine import DEFAULT_MAX_SEQUENCES
from workloads.serving.generator import WORKLOADS
from workloads.serving.models import serving_chips
from workloads.serving.rows import RowWriter, row_file
from workloads.serving.run import Watch
from workloads.serving.seeds import mean_of
from workloads.serving.traces import MAX_SPAN_S, PS_PER_S
from workloads.studies.campaign import sources_hash
from workloads.studies.profiles import ProfileError, profile_error

_DISTRIBUTION = ("mean", "p50", "p90", "p95", "p99", "p99_9")
_PLOT_FORMATS = (".png", ".svg", ".pdf")
_FRONTIER = ("ttft_s", "tbt_ms")
_TIMES = ("ttft_s", "tbt_ms", "e2e_s", "queue_s")

Times = dict[str, float | None]


def serve_result(
    options: ServeOptions,
    progress: Progress | None = None,
    requests_csv: Path | None = None,
    checkpoint: Path | None = None,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
) -> dict[str, Any]:
    """Run the load once for each seed and return the command's options and figures.

    With several seeds every figure is their mean and ``ci95`` holds the intervals. With
    ``find_rate`` the figures are those at the highest rate that attains the objectives, and
    ``capacity`` holds it and all that were tried.

    Args:
        options: What to run.
        progress: Called with finished and all requests of the current run.
        requests_csv: Where to write a row per request, of a single seed.
        checkpoint: Where to keep the state of a single run, which goes on from there if killed.
        checkpoint_every_s: How often.

    Raises:
        InputError: for options that do not fit together and unusable input.
    """
    if requests_csv is not None and options.seeds > 1:
        raise InputError("--requests-csv: holds the requests of one run; leave out --seeds")
    if checkpoint is None and checkpoint_every_s != CHECKPOINT_EVERY_S:
        raise InputError(f"--checkpoint-every: found {checkpoint_every_s}; needs --checkpoint")
    if checkpoint is not None and (options.seeds > 1 or options.find_rate):
        raise InputError("--checkpoint: holds one run; leave out --seeds and --find-rate")
    service = Service(options)
    kept = None
    if checkpoint is not None:
        run = _run_name(service, requests_csv is not None)
        kept = Checkpoint(checkpoint, run, checkpoint_every_s)
    times: dict[float, Times] = {}
    capacity = _capacity(service, progress, times) if options.find_rate else None
    if capacity is not None and capacity.rate is None:
        raise InputError(
            f"--find-rate: found no rate at which {options.attainment:.0%} of the requests attain "
            f"the objectives; the lowest tried: {capacity.trials[-1].rate:.3g} a second"
        )
    rate = None if capacity is None else capacity.rate
    results = []
    for seed in range(options.seed, options.seed + options.seeds):
        with _rows(requests_csv, kept is not None) as rows:
            watch = Watch(progress, rows, kept)
            results.append(service.run(seed, rate, watch))
    merged = mean_of(results)
    profile = _profile_error(options)
    return {
        "options": service.recorded(),
        **merged,
        "capacity": None if capacity is None else _plain(capacity, times),
        "error": {"level_pct": None, "profile_pct": profile.pct},
        "notes": [f"error: {profile.note}", *_notes(merged)],
    }


def _profile_error(options: ServeOptions) -> ProfileError:
    if options.is_as_published:
        return profile_error(options.chip, options.model)
    return ProfileError(
        None,
        "profile_pct is null: published rows are of the models' own weights, without "
        "--expert-parallel and --draft-tokens",
    )


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    return {
        "models": list(model_names()),
        "chips": sorted(serving_chips()),
        "schedulers": list(ALL_SCHEDULERS),
        "workloads": sorted(WORKLOADS),
        "weights": list(DTYPE_BYTES),
    }


def _capacity(service: Service, progress: Progress | None, times: dict[float, Times]) -> Capacity:
    """The highest rate; puts the mean times of each rate that was tried into ``times``."""
    options = service.options
    seeds = range(options.seed, options.seed + options.seeds)

    def attainment_at(rate: float) -> float:
        runs = [service.run(seed, rate, Watch(progress)) for seed in seeds]
        times[rate] = {name: _mean([run[name]["mean"] for run in runs]) for name in _FRONTIER}
        return float(sum(run["slo_attainment"] for run in runs)) / len(runs)

    given = options.rate_rps
    start = rate_of(service.load(options.seed)) if given is None else given
    start *= options.rate_scale
    longest_ps = max(int(service.load(seed, start).arrival_ps[-1]) for seed in seeds)
    lowest = start * longest_ps / (MAX_SPAN_S * PS_PER_S)
    return find_rate(attainment_at, start, options.attainment, lowest)


def _plain(capacity: Capacity, times: Mapping[float, Times]) -> dict[str, Any]:
    return {
        "rate_rps": capacity.rate,
        "trials": [trial._asdict() | times[trial.rate] for trial in capacity.trials],
    }


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]  # a single token has no interval
    return sum(known) / len(known) if known else None


def _notes(figures: Mapping[str, Any]) -> list[str]:
    notes = []
    if figures["energy_j"] is None:
        notes.append("energy: the chip's profile has no figures for it")
    if figures["overloaded"]:
        notes.append(
            "overloaded: requests came faster than they were served; more than one in twenty had "
            "yet to start when the last came, so times depend on how many there were"
        )
    return notes


def _run_name(service: Service, has_rows: bool) -> str:
    """All that the state of a run hangs on."""
    rows = "rows" if has_rows else "no rows"
    return f"{__version__} {sources_hash()} {config_hash(service.recorded())} {rows}"


def _rows(path: Path | None, resumable: bool) -> AbstractContextManager[RowWriter | None]:
    return nullcontext() if path is None else row_file(path, resumable=resumable)


def _render(result: Result) -> RenderableType:
    times = Table("", *_DISTRIBUTION, title=_title(result["options"]))
    for name in _TIMES:
        times.add_row(name, *(_number(result[name][part]) for part in _DISTRIBUTION))
    figures = Table("figure", "value")
    kv = {f"kv {name}": value for name, value in result["kv"].items()}
    shown = {
        name: value
        for name, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    for name, value in (shown | kv).items():
        figures.add_row(name, _number(value))
    if result["capacity"] is not None:
        figures.add_row("highest rate, requests/s", _number(result["capacity"]["rate_rps"]))
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
@click.option(
    "--weights", help=f"Width of all weights: {', '.join(DTYPE_BYTES)}; default: as shipped."
)
@click.option(
    "--expert-parallel",
    type=int,
    default=1,
    show_default=True,
    help="Groups of GPUs that whole experts are dealt out to.",
)
@click.option("--trace", type=click.Path(path_type=Path), help="CSV or .jsonl file of requests.")
@click.option("--workload", help="Generated requests with the lengths of a data set.")
@click.option("--rate", "rate_rps", type=float, help="Generated requests a second; inf: offline.")
@click.option("--arrival-cv", type=float, default=1.0, show_default=True, help="1 is Poisson.")
@click.option("--requests", type=int, help="Requests to generate, or to take from the trace.")
@click.option("--rate-scale", type=float, default=1.0, show_default=True, help="Speed of arrivals.")
@click.option("--slo-ttft", "slo_ttft_s", type=float, help="Objective for the first token, s.")
@click.option("--slo-tbt", "slo_tbt_ms", type=float, help="Objective between tokens, ms.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of what is drawn.")
@click.option("--seeds", type=int, default=1, show_default=True, help="Runs with other seeds.")
@click.option(
    "--token-budget",
    type=int,
    help="Tokens of an iteration (chunked: 512), a wavefront (layered: 8192), a chunk (pd-fusion).",
)
@click.option("--layer-groups", type=int, help="Groups of layers (layered); default: by length.")
@click.option("--budget-units", type=int, help="Budget of an iteration (pd-fusion).")
@click.option("--chunk-units", type=int, help="Price of a prompt chunk (pd-fusion).")
@click.option("--prefill-scheduler", help="Of the prefill pool (pd-disaggregation): chunked.")
@click.option("--prefill-units", type=int, help="GPUs or tiles of the prefill pool; default: half.")
@click.option("--decode-units", type=int, help="GPUs or tiles of the decode pool; default: rest.")
@click.option("--link-bytes-per-s", type=float, help="Bandwidth between the pools.")
@click.option("--link-latency-s", type=float, help="Latency between the pools.")
@click.option("--kv-tokens", type=int, help="Key-value memory, instead of what weights leave.")
@click.option("--kv-sram-tokens", type=int, help="Key-value memory in SRAM, which spills to that.")
@click.option("--max-sequences", type=int, default=DEFAULT_MAX_SEQUENCES, help="Running at once.")
@click.option("--draft-tokens", type=int, help="Speculative decoding with drafts so long.")
@click.option(
    "--acceptance", type=float, default=0.7, show_default=True, help="Of a drafted token."
)
@click.option("--find-rate", is_flag=True, help="Find the highest rate that attains the SLOs.")
@click.option("--attainment", type=float, default=0.9, show_default=True, help="Share that must.")
@click.option("--out", type=_FILE, help="Store the result (JSON).")
@click.option("--plot", type=_FILE, help="Draw tokens over time, and by rate (PNG, SVG or PDF).")
@click.option("--requests-csv", type=_FILE, help="Store a row per request.")
@click.option("--checkpoint", type=_FILE, help="Keep the run's state, to go on from if killed.")
@click.option(
    "--checkpoint-every",
    type=float,
    default=CHECKPOINT_EVERY_S,
    show_default=True,
    help="Seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print what the options may name.")
def command(
    out: Path | None,
    plot: Path | None,
    requests_csv: Path | None,
    checkpoint: Path | None,
    checkpoint_every: float,
    as_json: bool,
    as_list: bool,
    **given: Any,
) -> None:
    """Serve a language model's requests on a chip.

    The load is a --trace or a --workload with --rate and --requests.
    """
    if as_list:
        emit(known_names(), as_json, render_names)
        return
    for name in ("model", "chip", "scheduler"):
        if given[name] is None:
            known = ", ".join(known_names()[f"{name}s"])
            raise InputError(f"--{name}: not given; known: {known}")
    options = ServeOptions(**given)
    if plot is not None:
        _check_plot(plot, options)
    with stopwatch() as watch, progress("requests") as bar:
        figures = serve_result(options, bar, requests_csv, checkpoint, checkpoint_every)
    result = complete_serve(options, figures, watch.times)
    if out is not None:
        store(result, out)
    if plot is not None:
        from wafertlm.serve_plot import plot_serving  # matplotlib takes long to load

        plot_serving(result, plot)
    emit(result, as_json, _render)


def _check_plot(path: Path, options: ServeOptions) -> None:
    if path.suffix not in _PLOT_FORMATS:
        raise InputError(
            f"--plot: found '{path}'; allowed: an ending of {', '.join(_PLOT_FORMATS)}"
        )
    if options.seeds > 1:
        raise InputError("--plot: shows a single run; leave out --seeds")


def complete_serve(
    options: ServeOptions, figures: dict[str, Any], times: dict[str, float]
) -> dict[str, Any]:
    """The command's result object; no RTL stands behind a foreign chip."""
    seed = options.seed if options.is_drawn else None
    return complete("serve", figures["options"], figures, times, seed=seed)
