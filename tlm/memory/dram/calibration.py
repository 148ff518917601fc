"""The measured timing of the project's own memory channel."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tlm.calibrated import Parameter, load_result
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import RTL
from tlm.memory.dram.controllers.controller import Controller
from tlm.memory.dram.devices import RTL_HBM2


def dram_channel(
    parameters: Mapping[str, Parameter], controller: Controller = RTL, **shape: int
) -> DramChannel:
    """The model of a channel of rtl/memory.

    Args:
        parameters: Its times, as found.
        controller: Its controller.
        shape: Fields of its `Device` that are no times.
    """
    found: dict[str, Any] = {name: round(parameter.value) for name, parameter in parameters.items()}
    # A request is a cycle in the queue before its command can go.
    latency = 1 + RTL_HBM2.bl
    rl, wl = found.pop("read_latency") - latency, found.pop("write_latency") - latency
    device = replace(RTL_HBM2, t_rp_ref=found["t_rp"], rl=rl, wl=wl, **(found | shape))
    return DramChannel.of(device, controller)


def rtl_channel() -> DramChannel:
    """The model of rtl/memory as the stored calibration has it.

    Raises:
        InputError: if the result is missing or stale.
    """
    return dram_channel(load_result("memory").parameters)
