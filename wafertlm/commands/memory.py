"""``wafertlm memory``: streams of requests to DRAM pseudo-channels, at the level of commands."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.table import Table

from wafertlm.asked.memory import MemoryOptions, known_names
from wafertlm.commands.common import OutputFile, options_of, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import Result, complete, emit
from wafertlm.signals import ends_at_once
from wafertlm.stopwatch import stopwatch


def _render(result: Result) -> RenderableType:
    options = result["options"]
    title = f"{options['pattern']} on {options['device']}, policy {options['policy']}"
    table = Table("figure", "value", title=title)
    for name in ("bandwidth_fraction", "row_hit_fraction", "refresh_fraction"):
        table.add_row(name, f"{result[name]:.4f}")
    for part, latency_ns in (result["read_latency_ns"] or {}).items():
        table.add_row(f"read_latency_ns {part}", f"{latency_ns:,.1f}")
    return table


@click.command("memory", cls=GroupedCommand)
@options_of(MemoryOptions)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(known_names)
def command(out: Path | None, as_json: bool, **given: Any) -> None:
    """Run a stream of requests, a burst each, through DRAM pseudo-channels.

    Patterns: sequential (each requester its own region of the memory, in order), strided (the same,
    --stride-bytes apart), random (any burst), mixed (sequential, reads and writes at random), dma
    (requester r walks through blocks of --block-bytes that begin r blocks into the device and are
    --stride-bytes apart).

    Closed loop: a requester has at most --queue-depth requests taken and not answered in each
    channel, and the channels know nothing of each other; latency counts from acceptance to the last
    beat. bandwidth_fraction is of the pseudo-channels' peak, over the middle 80 % of completions;
    row_hit_fraction, of column commands, those to a row that had served one since its activate;
    refresh_fraction, of the time, that from a refresh falling due to the end of its tRFC.
    """
    from wafertlm.memory import run_memory

    options = MemoryOptions(**given)
    with stopwatch() as watch, ends_at_once():
        figures = asdict(run_memory(options))
    result = complete("memory", asdict(options), figures, watch.times, seed=options.seed)
    emit(result, as_json, _render, out)
