"""Driver and monitors of one router (rtl/noc/router.sv) that is the top of its simulation.

The monitors are always on: an offer that is not taken stands still, packets do not mix at an
output, every flit keeps its header, and a reduction's result is what its operands amount to.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from cocotb.triggers import FallingEdge, RisingEdge

from tests.rtl.benches.router_variant import RouterVariant
from tests.rtl.benches.routes import PORTS, Tile, Tiles, bits

ALL_PORTS = (1 << PORTS) - 1


class Kind(Enum):
    """Kinds of packets."""

    UNICAST = 0
    MULTICAST = 1
    SUM = 2
    MAXIMUM = 3


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet, or one operand of a reduction.

    Attributes:
        number: Below 256; all operands of a reduction have the same.
        kind: Its kind.
        tile: Destination of a unicast, root of a reduction.
        rows: Rows that a multicast goes to or that a reduction's operands come from.
        cols: Columns.
        flits: Its length.
        data: An operand's payloads.
    """

    number: int
    kind: Kind
    tile: Tile
    rows: frozenset[int]
    cols: frozenset[int]
    flits: int
    data: tuple[int, ...] = ()

    @classmethod
    def unicast(cls, number: int, tile: Tile, flits: int = 1) -> "Packet":
        """A packet to one tile; the masks, which are not its business, hold anything."""
        rows, cols = (frozenset(i for i in range(8) if number * 37 >> i & 1) for _ in range(2))
        return cls(number, Kind.UNICAST, tile, rows, cols, flits)

    @classmethod
    def multicast(
        cls, number: int, rows: frozenset[int], cols: frozenset[int], flits: int = 1
    ) -> "Packet":
        """A packet to all tiles of some rows and columns; its binary destination holds anything."""
        return cls(number, Kind.MULTICAST, (number, number // 3), rows, cols, flits)

    @classmethod
    def operand(
        cls, number: int, kind: Kind, root: Tile, where: tuple[frozenset[int], frozenset[int]],
        data: tuple[int, ...],
    ) -> "Packet":  # fmt: skip
        """An operand of the reduction of these rows and columns to a root."""
        return cls(number, kind, root, *where, len(data), data)

    @property
    def reduces(self) -> bool:
        """Whether it is an operand."""
        return self.kind in (Kind.SUM, Kind.MAXIMUM)

    @property
    def tiles(self) -> Tiles:
        """Destinations of a multicast, sources of a reduction."""
        return frozenset((row, col) for row in self.rows for col in self.cols)

    def words(self, variant: RouterVariant) -> list[int]:
        """Its flits as the router takes them."""
        header = {
            "col": self.tile[1],
            "row": self.tile[0],
            "cols": bits(self.cols),
            "rows": bits(self.rows),
            "length": self.flits,
            "maximum": self.kind == Kind.MAXIMUM,
            "reduce": self.reduces,
            "multicast": self.kind == Kind.MULTICAST,
        }
        payloads = self.data or [self.number << 8 | flit for flit in range(self.flits)]
        return [
            variant.pack(header | {"payload": payload, "last": flit == self.flits - 1})
            for flit, payload in enumerate(payloads)
        ]

    def outputs(self, variant: RouterVariant, at: Tile, came_by: int) -> frozenset[int] | None:
        """Outputs by which it leaves, None if it never comes by this input; not of operands."""
        if self.kind == Kind.UNICAST:
            return variant.routes.unicast(self.tile, at, came_by)
        return variant.routes.multicast(self.tiles, at, came_by)


@dataclass(slots=True)
class Cycle:
    """What happened in a cycle; flits by output, as (packet, flit)."""

    offered: dict[int, tuple[int, int]]
    taken: dict[int, tuple[int, int]]
    accepted: list[int]
    in_free: list[int]
    in_operand_free: list[int]


@dataclass(slots=True)
class _Stream:
    """Reductions of one header: what has come of their operands, and what has left."""

    packets: list[Packet] = field(default_factory=list)
    operands: dict[int, list[int]] = field(default_factory=dict)
    left: int = 0
    left_packets: int = 0
    left_flits: int = 0

    def shown(self) -> tuple[int, int]:
        """Number and flit of what leaves next."""
        assert self.left_packets < len(self.packets), "a result of nothing"
        return self.packets[self.left_packets].number, self.left_flits

    def leave(self) -> None:
        """A flit leaves."""
        self.left, self.left_flits = self.left + 1, self.left_flits + 1
        if self.left_flits == self.packets[self.left_packets].flits:
            self.left_packets, self.left_flits = self.left_packets + 1, 0


@dataclass(slots=True)
class Router:
    """Feeds five queues of flits to a router and watches what comes out.

    Attributes:
        dut: The router.
        variant: Its parameters.
        at: Row and column the router is told to stand in.
        queues: Flits to offer at each input, in order.
        log: (cycle, output, packet, flit) of every flit that left.
        sent: Packets by number; of a reduction, one of the operands.
    """

    dut: Any
    variant: RouterVariant
    at: Tile = (1, 1)
    queues: list[deque[int]] = field(default_factory=lambda: [deque() for _ in range(PORTS)])
    log: list[tuple[int, int, int, int]] = field(default_factory=list)
    sent: dict[int, Packet] = field(default_factory=dict)
    now: int = 0
    _waiting: dict[int, int] = field(default_factory=dict)
    _open: dict[int, tuple[int, int]] = field(default_factory=dict)
    _streams: dict[int, _Stream] = field(default_factory=dict)

    def send(self, port: int, *packets: Packet) -> None:
        """Queue packets at an input."""
        for packet in packets:
            words = packet.words(self.variant)
            if packet.reduces and packet.number not in self.sent:
                self._streams.setdefault(self._key(words[0]), _Stream()).packets.append(packet)
            self.sent[packet.number] = packet
            self.queues[port].extend(words)

    async def cycle(
        self,
        ready: int = ALL_PORTS,
        free: tuple[int, ...] | None = None,
        hold: int = 0,
        *,
        operand_ready: int | None = None,
        operand_free: tuple[int, ...] | None = None,
    ) -> Cycle:
        """Let a cycle pass.

        Args:
            ready: Outputs ready to take a flit.
            free: Free places behind outputs 1 to 4; all, unless told.
            hold: Inputs that offer nothing.
            operand_ready: Outputs ready to take a reduction's flit; as ``ready``, unless told.
            operand_free: Free places of the buffers for operands; all, unless told.
        """
        dut, plenty = self.dut, (self.variant.depth,) * 4
        offers = [bool(queue) and not hold >> i & 1 for i, queue in enumerate(self.queues)]
        words = [queue[0] if offers[i] else 0 for i, queue in enumerate(self.queues)]
        dut.row_i.value, dut.col_i.value = self.at
        dut.in_valid_i.value = _join(offers, 1)
        dut.in_flit_i.value = _join(words, self.variant.flit_bits)
        dut.out_free_i.value = _join(free or plenty, self.variant.count_bits)
        dut.out_operand_free_i.value = _join(operand_free or plenty, self.variant.count_bits)
        await FallingEdge(dut.clk_i)
        # An offer waits for no ready, so the ready may look at what is offered.
        shown = self._shown()
        reductions = sum((word & self.variant.reduce_bit > 0) << o for o, word in shown.items())
        if operand_ready is not None:
            ready = ready & ~reductions | operand_ready & reductions
        dut.out_ready_i.value = ready
        outcome = self._sample(offers, words, shown, ready)
        await RisingEdge(dut.clk_i)
        self.now += 1
        return outcome

    async def drain(self, ready: int = ALL_PORTS, quiet: int = 8) -> None:
        """Run until nothing has moved for some cycles; no operand may then be left."""
        still = 0
        while still < quiet:
            outcome = await self.cycle(ready)
            still = 0 if outcome.taken or outcome.accepted else still + 1
        if ready == ALL_PORTS:
            self.assert_empty()

    def assert_empty(self) -> None:
        """Every flit that was sent has been accepted, and every operand has become a result."""
        assert not any(self.queues), f"not accepted: {self.queues}"
        for stream in self._streams.values():
            counts = {port: len(flits) for port, flits in stream.operands.items()}
            assert set(counts.values()) == {stream.left}, f"{counts} operands, {stream.left} left"

    def _shown(self) -> dict[int, int]:
        words = _split(self.dut.out_flit_o.value, self.variant.flit_bits)
        valid = self.dut.out_valid_o.value.to_unsigned()
        return {o: words[o] for o in range(PORTS) if valid >> o & 1}

    def _sample(
        self, offers: list[bool], words: list[int], shown: dict[int, int], ready: int
    ) -> Cycle:
        in_free = _split(self.dut.in_free_o.value, self.variant.count_bits)
        in_operand_free = _split(self.dut.in_operand_free_o.value, self.variant.count_bits)
        in_ready = self.dut.in_ready_o.value.to_unsigned()
        accepted = []
        for i, word in enumerate(words):
            operand = word & self.variant.reduce_bit
            room = (in_operand_free if operand else in_free)[i]
            assert in_ready >> i & 1 == (room > 0), f"input {i}: ready with {room} places free"
            if offers[i] and room:
                accepted.append(i)
                self.queues[i].popleft()
                if operand:
                    stream = self._streams[self._key(word)]
                    stream.operands.setdefault(i, []).append(self._payload(word))
        for output, word in self._waiting.items():
            assert shown.get(output) == word, f"output {output}: offer changed before it was taken"
        self._waiting = {o: word for o, word in shown.items() if not ready >> o & 1}
        offered = {o: self._decode(word) for o, word in shown.items()}
        taken = {o: flit for o, flit in offered.items() if ready >> o & 1}
        for output, flit in taken.items():
            self._judge(output, flit, shown[output])
            self.log.append((self.now, output, *flit))
        return Cycle(offered, taken, accepted, in_free, in_operand_free)

    def _payload(self, word: int) -> int:
        return word & (1 << self.variant.payload_bits) - 1

    def _key(self, word: int) -> int:
        """The header: what flits of one reduction have in common."""
        return word % (1 << self.variant.flit_bits - 1) >> self.variant.payload_bits

    def _decode(self, word: int) -> tuple[int, int]:
        if word & self.variant.reduce_bit:
            stream = self._streams.get(self._key(word))
            assert stream is not None, f"a result with a header that no operand has: {word:#x}"
            return stream.shown()
        return word >> 8 & 0xFF, word & 0xFF

    def _judge(self, output: int, flit: tuple[int, int], word: int) -> None:
        """A packet's flits leave in order, unmixed and unchanged."""
        number, index = flit
        expected = self._open.pop(output, (number, 0))
        assert flit == expected, f"output {output}: flit {flit}, expected {expected}"
        assert number in self.sent, f"output {output}: packet {number} was never sent"
        packet = self.sent[number]
        if packet.reduces:
            self._judge_result(output, packet, word)
        whole = packet.words(self.variant)
        mask = ~((1 << self.variant.payload_bits) - 1) if packet.reduces else -1
        assert word & mask == whole[index] & mask, (
            f"output {output}: flit {flit} was changed: {word:#x}"
        )
        if index + 1 < len(whole):
            self._open[output] = (number, index + 1)

    def _judge_result(self, output: int, packet: Packet, word: int) -> None:
        stream = self._streams[self._key(word)]
        inputs, way = self.variant.routes.meeting(packet.tiles, packet.tile, self.at)
        assert output == way, f"output {output}: a result of {packet}, expected at {way}"
        short = [port for port in inputs if len(stream.operands.get(port, ())) <= stream.left]
        assert not short, f"output {output}: a result without the operands from {short}"
        payloads = [stream.operands[port][stream.left] for port in inputs]
        expected = self.variant.combine(payloads, packet.kind == Kind.MAXIMUM)
        found = self._payload(word)
        assert found == expected, f"result {found:#x} of {payloads}, expected {expected:#x}"
        stream.leave()


def _join(values: Any, width: int) -> int:
    return sum(int(value) << i * width for i, value in enumerate(values))


def _split(vector: Any, width: int) -> list[int]:
    value = vector.to_unsigned()
    return [value >> i * width & (1 << width) - 1 for i in range(PORTS)]
