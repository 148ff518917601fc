"""Loads of a tile from a channel of its own that is a latency and a bandwidth, each at once.

Where nothing is stored, the node of such a channel (node.py) does all in the order in which it is
asked: it asks for a burst a cycle, the channel answers in order, and answers leave one by one. So
when a request comes, the time of its last flit follows from what came before. No burst is an event.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import ceil

from simpy import Environment

from tlm.compiled import compiled, prepare
from tlm.interconnect.packets import TileSet
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from tlm.program import Program
from tlm.program.operations import OffChip


def are_streamed(program: Program, edge: Edge) -> bool:
    """Whether all transfers of a program are loads from tiles' own channels that refuse none.

    An answer that comes in the cycle in which another has left waits for it, if the latency is no
    less than the answer's flits: then it was under way before.
    """
    if not edge.at_tiles or edge.timing.latency_cycles < edge.unit_flits:
        return False
    moved = [each for each in program.build() if isinstance(each, OffChip)]
    most = sum(edge.units(each.flits) for each in moved)
    return all(each.loads for each in moved) and most <= edge.timing.queue_depth


class StreamedLoads:
    """A channel's node, as `tlm.offchip.node.MemoryNode` for loads alone.

    Attributes:
        read_bytes: What the channel has been asked to read.

    Args:
        env: The clock.
        timing: Of the channel.
        unit_bytes: What the channel is asked for at a time.
        unit_flits: Flits of as much.
    """

    def __init__(
        self, env: Environment, timing: ChannelTiming, unit_bytes: int, unit_flits: int
    ) -> None:
        _ready()
        self.read_bytes = 0
        self._env, self._timing = env, timing
        self._unit_bytes, self._unit_flits = unit_bytes, unit_flits
        self._asks_from = 0
        self._bus_free: int | Fraction = 0  # cycle, and part of one
        self._left = 0  # when the last answer has

    def load(
        self,
        tile: TileSet,
        address: int,
        flits: int,
        arrived: Callable[[], object],
        target: int = 0,
    ) -> None:
        """A request has come for so many flits; ``arrived`` is called when the last has come."""
        del tile, address, target  # the wire leads to one tile
        units, now = -(-flits // self._unit_flits), int(self._env.now)
        block = units * self._unit_bytes
        self.read_bytes += block
        first = max(now, self._asks_from) + self._timing.latency_cycles
        self._asks_from = max(now, self._asks_from) + units
        # The data bus is busy from the first or the last answer on, whichever it gets later.
        busy = Fraction(self._timing.busy_bytes(block, writes=False), units)
        step = busy / self._timing.bytes_per_cycle
        begun, whole = max(first, self._bus_free), step.denominator
        cycle, part = divmod(begun, 1)
        self._bus_free = max(begun + units * step, first + units - 1 + step)
        self._left = _last_leaves(
            self._left,
            int(cycle),
            ceil(part * whole),
            step.numerator,
            whole,
            first + ceil(step),
            units,
            self._unit_flits,
            flits - (units - 1) * self._unit_flits,
        )
        event = self._env.timeout(self._left - now)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: _do(arrived))


@compiled
def _last_leaves(
    left: int,
    cycle: int,
    part: int,
    step: int,
    whole: int,
    ramp: int,
    units: int,
    flits: int,
    last: int,
) -> int:
    """When the last answer of a load has left, if the one before the first has at ``left``.

    Answer u comes from the channel at cycle + (part + (u + 1) step) / whole, rounded up, and not
    before ramp + u. It begins to leave a cycle later, or when the one before has left.
    """
    cycles, parts = divmod(step, whole)
    for unit in range(units):
        cycle, part = cycle + cycles, part + parts
        if part >= whole:
            cycle, part = cycle + 1, part - whole
        came = max(cycle + (part > 0), ramp + unit)
        begun = left if left >= came else came + 1
        left = begun + (flits if unit + 1 < units else last)
    return left


def _do(call: Callable[[], object]) -> None:
    call()


@cache
def _ready() -> None:
    """Compile it, or load what was compiled."""
    prepare(_last_leaves)
