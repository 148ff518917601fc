"""Blocks of a tile and a channel of its own that is a latency and a bandwidth, each at once.

The node of such a channel (node.py) does all in the order in which it is asked: it asks for a burst
a cycle, the channel answers in order, and answers leave one by one. So when a request has come, the
time of its last flit follows from what came before. No burst is an event.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from math import gcd
from typing import NamedTuple

from simpy import Environment

from tlm.compiled import compiled, prepare
from tlm.interconnect.packets import TileSet
from tlm.lockstep import call_after
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from tlm.program import Program
from tlm.program.operations import OffChip


def are_streamed(program: Program, edge: Edge) -> bool:
    """Whether tiles' own channels refuse none of a program's transfers.

    An answer that comes in the cycle in which another has left waits for it, if the latency is no
    less than the answer's flits: then it was under way before.
    """
    if not edge.at_tiles or edge.timing.latency_cycles < edge.unit_flits:
        return False
    moved = (each for each in program.built() if isinstance(each, OffChip))
    return sum(edge.units(each.flits) for each in moved) <= edge.timing.queue_depth


class Ratio(NamedTuple):
    """A time: cycles and a part of one, compared by `latest` (`Fraction` is ten times as slow)."""

    numerator: int
    denominator: int = 1

    @classmethod
    def of(cls, numerator: int, denominator: int) -> "Ratio":
        """In lowest terms."""
        common = gcd(numerator, denominator)
        return cls(numerator // common, denominator // common)

    @property
    def ceil(self) -> int:
        """Rounded up."""
        return -(-self.numerator // self.denominator)

    def latest(self, other: "Ratio") -> "Ratio":
        """The later one."""
        later = other.numerator * self.denominator > self.numerator * other.denominator
        return other if later else self

    def plus(self, other: "Ratio") -> "Ratio":
        """The sum."""
        numerator = self.numerator * other.denominator + other.numerator * self.denominator
        return Ratio.of(numerator, self.denominator * other.denominator)


class StreamedNode:
    """A channel's node, as `tlm.offchip.node.MemoryNode`.

    Attributes:
        read_bytes: What the channel has been asked to read.
        written_bytes: The same of writes.

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
        self.read_bytes = self.written_bytes = 0
        self._env, self._timing = env, timing
        self._unit_bytes, self._unit_flits = unit_bytes, unit_flits
        self._asks_from = 0
        self._bus_free = Ratio(0)
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
        self.read_bytes += units * self._unit_bytes
        asked = max(now, self._asks_from)
        asks = [(0, asked), (units - 1, asked + units - 1)]
        begun, step = self._serve(units, asks, writes=False)
        cycle, part = divmod(begun.numerator, begun.denominator)
        first, whole = asked + self._timing.latency_cycles, step.denominator
        self._left = _last_leaves(
            self._left,
            cycle,
            -(-part * whole // begun.denominator),
            step.numerator,
            whole,
            first + step.ceil,
            units,
            self._unit_flits,
            flits - (units - 1) * self._unit_flits,
        )
        self._call(arrived)

    def store(self, flits: int, arrived: Callable[[], object]) -> None:
        """A block of so many flits has come a cycle ago, and now its end.

        ``arrived`` is called when the word that it is kept has come.
        """
        units, now = -(-flits // self._unit_flits), int(self._env.now)
        self.written_bytes += units * self._unit_bytes
        last = flits - (units - 1) * self._unit_flits
        # The first burst, the last but one, and the last, and when they have come.
        first = now - 1 - flits + min(flits, self._unit_flits)
        came = ((0, first), (units - 2, now - 1 - last), (units - 1, now - 1))
        asks = [(unit, max(cycle, self._asks_from + unit)) for unit, cycle in came if unit >= 0]
        self._serve(units, asks, writes=True)
        done = self._bus_free.ceil
        self._left = (self._left if self._left >= done else done + 1) + 1
        self._call(arrived)

    def _serve(
        self, units: int, asks: list[tuple[int, int]], *, writes: bool
    ) -> tuple[Ratio, Ratio]:
        """Have the data bus serve a block.

        Args:
            units: Bursts of it.
            asks: Of the first burst, and of those before which the bus may stand still last, the
                number and the cycle in which the channel is asked for it.
            writes: Or reads.

        Returns:
            When the bus begins with it, and cycles of a burst.
        """
        latency = self._timing.latency_cycles
        step = _burst_cycles(self._timing, self._unit_bytes, units, writes)
        begun = self._bus_free.latest(Ratio(asks[0][1] + latency))
        free = begun.plus(Ratio.of(units * step.numerator, step.denominator))
        for unit, cycle in asks[1:]:
            rest = (units - unit) * step.numerator
            come = (cycle + latency) * step.denominator
            free = free.latest(Ratio(come + rest, step.denominator))
        self._bus_free, self._asks_from = free, asks[-1][1] + 1
        return begun, step

    def _call(self, arrived: Callable[[], object]) -> None:
        call_after(self._env, self._left - int(self._env.now), arrived)


@lru_cache(2**12)  # blocks of few lengths come again and again
def _burst_cycles(timing: ChannelTiming, unit_bytes: int, units: int, writes: bool) -> Ratio:
    """Cycles of the data bus for each of so many bursts of a block."""
    busy = timing.busy_bytes(units * unit_bytes, writes=writes)
    step = Fraction(busy, units) / timing.bytes_per_cycle
    return Ratio(step.numerator, step.denominator)


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


@cache
def _ready() -> None:
    """Compile it, or load what was compiled."""
    prepare(_last_leaves)
