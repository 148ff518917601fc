"""A stream of requests to DRAM pseudo-channels, at the level of commands."""

from dataclasses import dataclass
from typing import Annotated

from tlm.errors import check_range, choose
from tlm.memory.dram.address_map import ADDRESS_MAPS, AddressMap
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import DEVICES
from tlm.memory.dram.interleaved import InterleavedChannels
from tlm.memory.dram.traffic import PATTERNS, DramFigures, DramTraffic, figures

_DEEPEST_QUEUE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """A stream of requests, and the memory that serves it; None where not given."""

    device: Annotated[str, "hbm2, hbm3 or hbm4."] = "hbm3"
    policy: Annotated[str, "Whose controller."] = "ramulator"
    map: Annotated[str, "Fields, low to high bits."] = "bg-co-ba-ro"
    pattern: Annotated[str, "Of addresses."] = "sequential"
    queue_depth: Annotated[int, "Outstanding per requester."] = 64
    requesters: Annotated[int, "Streams."] = 1
    block_bytes: Annotated[int, "Block of dma."] = 4096
    stride_bytes: Annotated[
        int | None,
        "Between requests of strided [a row of all banks] or blocks of dma [all requesters'].",
    ] = None
    write_fraction: Annotated[
        float | None, "Share of writes [0.5 for mixed, 0 for the others]."
    ] = None
    grain: Annotated[int, "Requests of a requester in a row."] = 1
    channels: Annotated[int, "Pseudo-channels."] = 1
    interleave_bytes: Annotated[int, "In a row in a channel."] = 256
    requests: Annotated[int, "Of all requesters."] = 100_000
    seed: Annotated[int, "Of places and directions."] = 0


def run_memory(options: MemoryOptions) -> DramFigures:
    """Run a stream.

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
    return figures(device, runs, options.channels)


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    return {
        "devices": list(DEVICES),
        "policies": list(CONTROLLERS),
        "maps": list(ADDRESS_MAPS),
        "patterns": list(PATTERNS),
    }
