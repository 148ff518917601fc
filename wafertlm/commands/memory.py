"""``wafertlm memory``: streams of requests to DRAM pseudo-channels, at the level of commands."""

from dataclasses import asdict, dataclass
from typing import Any

import click
from rich.console import RenderableType
from rich.table import Table

from tlm.errors import check_range, choose
from tlm.memory.dram.address_map import ADDRESS_MAPS, AddressMap
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import DEVICES
from tlm.memory.dram.interleaved import InterleavedChannels
from tlm.memory.dram.traffic import PATTERNS, DramTraffic, figures
from wafertlm.commands.common import output_options
from wafertlm.output import Result, complete, emit
from wafertlm.stopwatch import stopwatch

_DEEPEST_QUEUE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """Options of the command."""

    device: str = "hbm3"
    policy: str = "ramulator"
    map: str = "bg-co-ba-ro"
    pattern: str = "sequential"
    queue_depth: int = 64
    requesters: int = 1
    block_bytes: int = 4096
    stride_bytes: int | None = None
    write_fraction: float | None = None
    grain: int = 1
    channels: int = 1
    interleave_bytes: int = 256
    requests: int = 100_000
    seed: int = 0


def memory_result(options: MemoryOptions) -> dict[str, Any]:
    """Figures of a stream.

    Raises:
        InputError: for options that are not allowed.
    """
    choose("device", options.device, list(DEVICES))
    choose("policy", options.policy, list(CONTROLLERS))
    choose("map", options.map, ADDRESS_MAPS)
    for name, value in (("--queue-depth", options.queue_depth), ("--grain", options.grain)):
        check_range(name, value, 1, _DEEPEST_QUEUE)
    traffic = DramTraffic(
        pattern=options.pattern,
        requests=options.requests,
        requesters=options.requesters,
        block_bytes=options.block_bytes,
        stride_bytes=options.stride_bytes,
        write_fraction=options.write_fraction,
        seed=options.seed,
    )
    device = DEVICES[options.device]
    channel = DramChannel(
        device, CONTROLLERS[options.policy], AddressMap(options.map, device), options.grain
    )
    channels = InterleavedChannels(channel, options.channels, options.interleave_bytes)
    requests = traffic.stream(device, options.channels)
    runs = channels.simulate(requests, options.queue_depth)
    return asdict(figures(device, runs, options.channels))


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    return {
        "devices": list(DEVICES),
        "policies": list(CONTROLLERS),
        "maps": list(ADDRESS_MAPS),
        "patterns": list(PATTERNS),
    }


def _render(result: Result) -> RenderableType:
    options = result["options"]
    title = f"{options['pattern']} on {options['device']}, policy {options['policy']}"
    table = Table("figure", "value", title=title)
    for name in ("bandwidth_fraction", "row_hit_fraction", "refresh_fraction"):
        table.add_row(name, f"{result[name]:.4f}")
    for part, latency_ns in (result["read_latency_ns"] or {}).items():
        table.add_row(f"read_latency_ns {part}", f"{latency_ns:,.1f}")
    return table


@click.command("memory")
@click.option("--device", default="hbm3", show_default=True, help="hbm2, hbm3 or hbm4.")
@click.option("--policy", default="ramulator", show_default=True, help="Whose controller.")
@click.option("--map", default="bg-co-ba-ro", show_default=True, help="Fields, low to high bits.")
@click.option("--pattern", default="sequential", show_default=True, help="Of addresses.")
@click.option(
    "--queue-depth", type=int, default=64, show_default=True, help="Outstanding per requester."
)
@click.option("--requesters", type=int, default=1, show_default=True, help="Streams.")
@click.option("--block-bytes", type=int, default=4096, show_default=True, help="Block of dma.")
@click.option(
    "--stride-bytes",
    type=int,
    help="Between requests of strided [a row of all banks] or blocks of dma [all requesters'].",
)
@click.option(
    "--write-fraction", type=float, help="Share of writes [0.5 for mixed, 0 for the others]."
)
@click.option(
    "--grain", type=int, default=1, show_default=True, help="Requests of a requester in a row."
)
@click.option("--channels", type=int, default=1, show_default=True, help="Pseudo-channels.")
@click.option(
    "--interleave-bytes", type=int, default=256, show_default=True, help="In a row in a channel."
)
@click.option("--requests", type=int, default=100_000, show_default=True, help="Of all requesters.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of places and directions.")
@output_options(known_names)
def command(as_json: bool, **given: Any) -> None:
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
    options = MemoryOptions(**given)
    with stopwatch() as watch:
        result = memory_result(options)
    emit(
        complete("memory", asdict(options), result, watch.times, seed=options.seed),
        as_json,
        _render,
    )
