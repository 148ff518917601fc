"""A stream of requests to DRAM, as a user says it."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """A stream of requests, and the memory that serves it; None where not given."""

    device: Annotated[str, "Device: hbm2, hbm3 or hbm4."] = "hbm3"
    policy: Annotated[str, "Controller; --list names them."] = "ramulator"
    map: Annotated[str, "Address map: fields from low to high bits."] = "bg-co-ba-ro"
    pattern: Annotated[str, "Pattern of addresses; --list names them."] = "sequential"
    queue_depth: Annotated[int, "Requests that a requester has under way."] = 64
    requesters: Annotated[int, "Requesters, with a stream each."] = 1
    block_bytes: Annotated[int, "Bytes of a block of pattern dma."] = 4096
    stride_bytes: Annotated[
        int | None,
        "Bytes between requests of strided, or blocks of dma; default: a row of all banks, or the "
        "blocks of all requesters.",
    ] = None
    write_fraction: Annotated[float | None, "Share of writes; default: 0.5 of mixed, else 0."] = (
        None
    )
    grain: Annotated[int, "Requests of one requester before the next has its turn."] = 1
    channels: Annotated[int, "Pseudo-channels."] = 1
    interleave_bytes: Annotated[int, "Bytes in a row that lie in one channel."] = 256
    requests: Annotated[int, "Requests of all requesters together."] = 100_000
    seed: Annotated[int, "Seed of random addresses and directions."] = 0


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
