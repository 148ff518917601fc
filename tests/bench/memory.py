"""Speed of the DRAM's model: a saturated pseudo-channel of HBM3, each controller."""

from functools import partial

from tests.bench.measure import Row, cpu_seconds
from tests.bench.network import Note
from tlm.memory.dram.channel import DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import HBM3
from tlm.memory.dram.traffic import DramTraffic

_RATES = {"sequential": 3e6, "random": 1e6}  # requests a CPU second
_QUEUE_DEPTH = 64  # the command's; it keeps every controller's buffers full


def memory_rows(requests: int, runs: int, done: Note) -> list[Row]:
    """Requests a CPU second, reads, always as many outstanding as may be."""
    rows = []
    for name, controller in CONTROLLERS.items():
        channel = DramChannel.of(HBM3, controller)
        channel.simulate(
            DramTraffic(pattern="random", requests=100).stream(HBM3), _QUEUE_DEPTH
        )  # compile
        for pattern, target in _RATES.items():
            stream = DramTraffic(pattern=pattern, requests=requests).stream(HBM3)
            seconds = []
            for _ in range(runs):
                seconds.append(cpu_seconds(partial(channel.simulate, stream, _QUEUE_DEPTH)))
                done()
            rates = tuple(requests / s for s in seconds)
            rows.append(Row(f"HBM3, {name}, {pattern}", "requests/CPU-s", rates, target))
    return rows
