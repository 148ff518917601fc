"""The model of a Verilated memory channel: with its own times, or with those that were found."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from calibration.experiment import Parameters
from calibration.memory.channel import Requests, RtlMemory
from tlm.interconnect.packets import Int64s
from tlm.memory.dram.calibration import dram_channel
from tlm.memory.dram.channel import BurstRequests, DramChannel
from tlm.memory.dram.controllers import RTL
from tlm.memory.dram.controllers.controller import Controller
from tlm.memory.dram.devices import RTL_HBM2


def memory_model(memory: RtlMemory) -> DramChannel:
    """The model of a channel with its own times; there is nothing to fit."""
    times = memory.timings
    refresh: dict[str, Any] = {"t_rp_ref": times.t_rp, "t_rc_ref": times.t_rc}
    device = replace(RTL_HBM2, **_shape(memory), **asdict(times), **refresh)
    return DramChannel.of(device, _controller(memory))


def measured_model(memory: RtlMemory, parameters: Parameters) -> DramChannel:
    """The model of a channel of the same shape, with the times that were found."""
    return dram_channel(parameters, _controller(memory), **_shape(memory))


def bursts_of(requests: Requests) -> BurstRequests:
    """The same requests, as the model takes them."""
    return BurstRequests(requests.cycle, requests.write, requests.address, (len(requests),))


def requests_per_cycle(answered: Int64s) -> float:
    """Requests a cycle over the middle 80 % of the answers."""
    ends = np.sort(answered)
    first, last = len(ends) // 10, len(ends) * 9 // 10
    return float((last - first) / (ends[last] - ends[first]))


def _controller(memory: RtlMemory) -> Controller:
    return replace(
        RTL,
        queue_depth=memory.queue_depth,
        response_depth=memory.response_depth,
        pass_limit=memory.pass_limit,
    )


def _shape(memory: RtlMemory) -> dict[str, Any]:
    return {
        "bank_groups": memory.bank_groups,
        "banks_per_group": memory.banks_per_group,
        "row_bits": memory.row_width,
        "column_bits": memory.col_width,
    }
