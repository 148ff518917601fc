"""Driver and monitors of one router (rtl/noc/router.sv), the centre of a 3x3 mesh unless told.

The monitors are always on: an offer that is not taken stands still, packets do not mix at an
output, and every flit keeps its header.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from cocotb.triggers import FallingEdge, RisingEdge

PORTS = 5
LOCAL, NORTH, EAST, SOUTH, WEST = range(PORTS)
ROWS, COLS, DEPTH = 3, 3, 5
_COUNT_BITS, _PAYLOAD_BITS = 3, 16
_FLIT_BITS = 2 + _COUNT_BITS + ROWS + COLS + _PAYLOAD_BITS
Tile = tuple[int, int]
#: All sets of rows, and of columns, that are not empty.
SUBSETS = [frozenset(chosen) for size in (1, 2, 3) for chosen in combinations(range(3), size)]


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet: its number (below 256), the product of rows and columns it goes to, its flits."""

    number: int
    rows: frozenset[int]
    cols: frozenset[int]
    flits: int = 1

    @classmethod
    def to(cls, number: int, tile: Tile, flits: int = 1) -> "Packet":
        """A packet to one tile."""
        return cls(number, frozenset({tile[0]}), frozenset({tile[1]}), flits)

    @property
    def multicast(self) -> bool:
        """Whether it has several destinations."""
        return len(self.rows) * len(self.cols) > 1

    def words(self) -> list[int]:
        """Its flits as the router takes them."""
        header = int(self.multicast)
        header = header << _COUNT_BITS | self.flits & (1 << _COUNT_BITS) - 1
        header = header << ROWS | sum(1 << row for row in self.rows)
        header = header << COLS | sum(1 << col for col in self.cols)
        bodies = ((header << 8 | self.number) << 8 | flit for flit in range(self.flits))
        last = 1 << _FLIT_BITS - 1
        return [body | (last if flit == self.flits - 1 else 0) for flit, body in enumerate(bodies)]


def outputs_of(packet: Packet, at: Tile, came_by: int) -> set[int]:
    """Outputs of an X-first route, one destination at a time, from the place where it turns."""
    found = set()
    for row in packet.rows:
        for col in packet.cols:
            if col != at[1] and came_by in (LOCAL, EAST, WEST):
                found.add(EAST if col > at[1] else WEST)
            elif row != at[0]:
                found.add(SOUTH if row > at[0] else NORTH)
            else:
                found.add(LOCAL)
    return found - ({came_by} if came_by != LOCAL else set())


def can_come(packet: Packet, at: Tile, came_by: int) -> bool:
    """Whether a packet's tree leads through this input; it may have copies elsewhere too."""
    in_column = came_by not in (NORTH, SOUTH) or at[1] in packet.cols
    return in_column and bool(outputs_of(packet, at, came_by))


def _fields(vector: int, bits: int, count: int) -> list[int]:
    return [vector >> i * bits & (1 << bits) - 1 for i in range(count)]


@dataclass(slots=True)
class Cycle:
    """What happened in a cycle; flits by output, as (packet, flit)."""

    offered: dict[int, tuple[int, int]]
    taken: dict[int, tuple[int, int]]
    accepted: list[int]
    in_free: list[int]


@dataclass(slots=True)
class Router:
    """Feeds five queues of flits to a router and watches what comes out.

    Attributes:
        dut: The bench's top.
        at: Row and column the router is told to stand in.
        queues: Flits to offer at each input, in order.
        log: (cycle, output, packet, flit) of every flit that left.
        sent: Packets by number.
    """

    dut: Any
    at: Tile = (1, 1)
    queues: list[deque[int]] = field(default_factory=lambda: [deque() for _ in range(PORTS)])
    log: list[tuple[int, int, int, int]] = field(default_factory=list)
    sent: dict[int, Packet] = field(default_factory=dict)
    now: int = 0
    _waiting: dict[int, int] = field(default_factory=dict)
    _open: dict[int, tuple[int, int]] = field(default_factory=dict)

    def send(self, port: int, *packets: Packet) -> None:
        """Queue packets at an input."""
        for packet in packets:
            self.sent[packet.number] = packet
            self.queues[port].extend(packet.words())

    async def cycle(
        self, ready: int = 0b11111, free: tuple[int, ...] = (DEPTH,) * 4, hold: int = 0
    ) -> Cycle:
        """A cycle: outputs ready, free places behind outputs 1 to 4, inputs that offer nothing."""
        dut = self.dut
        offers = [bool(queue) and not hold >> i & 1 for i, queue in enumerate(self.queues)]
        words = [queue[0] if offers[i] else 0 for i, queue in enumerate(self.queues)]
        dut.router_row_i.value, dut.router_col_i.value = self.at
        dut.router_in_valid_i.value = sum(offer << i for i, offer in enumerate(offers))
        dut.router_in_flit_i.value = sum(word << i * _FLIT_BITS for i, word in enumerate(words))
        dut.router_out_ready_i.value = ready
        dut.router_out_free_i.value = sum(count << i * _COUNT_BITS for i, count in enumerate(free))
        await FallingEdge(dut.clk_i)
        outcome = self._sample(offers, ready)
        await RisingEdge(dut.clk_i)
        self.now += 1
        return outcome

    async def drain(self, ready: int = 0b11111, quiet: int = 3) -> None:
        """Run until nothing has moved for some cycles."""
        still = 0
        while still < quiet:
            outcome = await self.cycle(ready)
            still = 0 if outcome.taken or outcome.accepted else still + 1

    def _sample(self, offers: list[bool], ready: int) -> Cycle:
        dut = self.dut
        in_ready = dut.router_in_ready_o.value.to_unsigned()
        accepted = [i for i in range(PORTS) if offers[i] and in_ready >> i & 1]
        for i in accepted:
            self.queues[i].popleft()
        in_free = _fields(dut.router_in_free_o.value.to_unsigned(), _COUNT_BITS, PORTS)
        assert in_ready == sum((count > 0) << i for i, count in enumerate(in_free))
        words = _fields(dut.router_out_flit_o.value.to_unsigned(), _FLIT_BITS, PORTS)
        valid = dut.router_out_valid_o.value.to_unsigned()
        shown = {o: words[o] for o in range(PORTS) if valid >> o & 1}
        for output, word in self._waiting.items():
            assert shown.get(output) == word, f"output {output}: offer changed before it was taken"
        self._waiting = {o: word for o, word in shown.items() if not ready >> o & 1}
        offered = {o: (word >> 8 & 0xFF, word & 0xFF) for o, word in shown.items()}
        taken = {o: flit for o, flit in offered.items() if ready >> o & 1}
        for output, flit in taken.items():
            self._judge(output, flit, shown[output])
            self.log.append((self.now, output, *flit))
        return Cycle(offered, taken, accepted, in_free)

    def _judge(self, output: int, flit: tuple[int, int], word: int) -> None:
        """A packet's flits leave in order, unmixed and unchanged."""
        number, index = flit
        expected = self._open.pop(output, (number, 0))
        assert flit == expected, f"output {output}: flit {flit}, expected {expected}"
        assert number in self.sent, f"output {output}: packet {number} was never sent"
        words = self.sent[number].words()
        assert word == words[index], f"output {output}: flit {flit} was changed: {word:#x}"
        if index + 1 < len(words):
            self._open[output] = (number, index + 1)
