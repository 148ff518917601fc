"""A stream of requests to DRAM, as a user says it."""

from dataclasses import dataclass
from typing import Annotated


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


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    from tlm.memory.dram.address_map import ADDRESS_MAPS
    from tlm.memory.dram.controllers import CONTROLLERS
    from tlm.memory.dram.devices import DEVICES
    from tlm.memory.dram.traffic import PATTERNS

    return {
        "devices": list(DEVICES),
        "policies": list(CONTROLLERS),
        "maps": list(ADDRESS_MAPS),
        "patterns": list(PATTERNS),
    }
