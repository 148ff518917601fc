"""cocotb bench of one router under random traffic on all its ports."""

import random
from collections import Counter
from typing import Any

import cocotb

from calibration.benches.block_check import Seen, check
from calibration.benches.router_driver import (
    DEPTH,
    PORTS,
    SUBSETS,
    Packet,
    Router,
    Tile,
    can_come,
    outputs_of,
)


class _Neighbours:
    """Buffers behind the outputs, read at a random pace, and what was granted with which room."""

    def __init__(self, draw: random.Random) -> None:
        """All empty."""
        self._draw = draw
        self._held = [0] * PORTS
        self.pace = 1.0
        self.cut_through = 0

    def ready(self) -> int:
        """Outputs that can take a flit; the tile refuses at random."""
        links = sum((self._held[o] < DEPTH) << o for o in range(1, PORTS))
        return links | (self._draw.random() < self.pace)

    def free(self) -> tuple[int, ...]:
        """Free places."""
        return tuple(DEPTH - held for held in self._held[1:])

    def clock(self, router: Router, offered: dict[int, tuple[int, int]], taken: list[int]) -> None:
        """Check the rooms of new offers, then let flits in and out."""
        for output, (number, flit) in offered.items():
            packet = router.sent[number]
            if output and flit == 0 and packet.multicast and self._held[output]:
                room = DEPTH - self._held[output]
                assert room >= packet.flits, f"{packet} granted {output} with {room} free"
                self.cut_through += 1
        for output in range(1, PORTS):
            read = self._held[output] > 0 and self._draw.random() < self.pace
            self._held[output] += (output in taken) - read


@check
async def random_traffic_leaves_as_the_routes_say(dut: Any) -> Seen:
    """Unicasts and multicasts from all inputs, pauses and back-pressure: each flit where it must.

    Per output, an input's packets leave in their order; the driver's monitors see the rest.
    """
    draw = random.Random(cocotb.RANDOM_SEED)
    seen: Counter[str] = Counter()
    for _ in range(12):
        router, neighbours = Router(dut), _Neighbours(draw)
        neighbours.pace = draw.choice((0.2, 0.6, 1.0))
        expected = _random_queues(router, draw)
        hold_pace, still = draw.choice((0.0, 0.4)), 0
        while still < 60:
            hold = sum((draw.random() < hold_pace) << port for port in range(PORTS))
            outcome = await router.cycle(neighbours.ready(), neighbours.free(), hold)
            neighbours.clock(router, outcome.offered, list(outcome.taken))
            still = 0 if outcome.taken or outcome.accepted else still + 1
        for (port, output), numbers in expected.items():
            left = [e[2] for e in router.log if e[1] == output and e[3] == 0]
            own = [number for number in left if number % PORTS == port]
            assert own == numbers, f"from {port} by {output}: {own}, expected {numbers}"
        flits = sum(
            router.sent[number].flits for numbers in expected.values() for number in numbers
        )
        assert len(router.log) == flits, f"{len(router.log)} flits left, expected {flits}"
        seen["flits"] += flits
        seen["cut_through_grants"] += neighbours.cut_through
    return dict(seen)


def _random_queues(router: Router, draw: random.Random) -> dict[tuple[int, int], list[int]]:
    """Queue 40 packets at each input; their numbers by input and output, in order."""
    expected: dict[tuple[int, int], list[int]] = {}
    for port in range(PORTS):
        for turn in range(40):
            packet = _random_packet(turn * PORTS + port, router.at, port, draw)
            router.send(port, packet)
            for output in outputs_of(packet, router.at, port):
                expected.setdefault((port, output), []).append(packet.number)
    return expected


def _random_packet(number: int, at: Tile, came_by: int, draw: random.Random) -> Packet:
    """Half of the packets are unicasts."""
    sets = SUBSETS if draw.random() < 0.5 else [s for s in SUBSETS if len(s) == 1]
    while True:
        rows, cols = draw.choice(sets), draw.choice(sets)
        bound = DEPTH if len(rows) * len(cols) > 1 else 12
        packet = Packet(number, rows, cols, draw.randint(1, bound))
        if can_come(packet, at, came_by):
            return packet
