"""A stream of requests to DRAM pseudo-channels, at the level of commands."""

from tlm.errors import InputError, check_range, choose
from tlm.memory.dram.address_map import ADDRESS_MAPS, AddressMap
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import DEVICES
from tlm.memory.dram.interleaved import InterleavedChannels
from tlm.memory.dram.traffic import DramFigures, DramTraffic, figures
from wafertlm.asked.memory import MemoryOptions
from wafertlm.options import dashed

_DEEPEST_QUEUE = 4096
#: Options that some patterns alone have.
_OF_PATTERNS = {"stride_bytes": ("strided", "dma"), "block_bytes": ("dma",)}


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
    _check_pattern(options)
    device = DEVICES[options.device]
    channel = DramChannel(
        device, CONTROLLERS[options.policy], AddressMap(options.map, device), options.grain
    )
    channels = InterleavedChannels(channel, options.channels, options.interleave_bytes)
    requests = traffic.stream(device, options.channels)
    runs = channels.simulate(requests, options.queue_depth)
    return figures(device, runs, options.channels)


def _check_pattern(options: MemoryOptions) -> None:
    plain = MemoryOptions()
    for field, patterns in _OF_PATTERNS.items():
        given = getattr(options, field)
        if given != getattr(plain, field) and options.pattern not in patterns:
            raise InputError(
                f"{dashed(field)}: found {given} with pattern {options.pattern}; "
                f"allowed: of {', '.join(patterns)}"
            )
