"""cocotb bench of one router, of whatever parameters, under random traffic on all its ports."""

import random
from collections import Counter
from functools import partial
from typing import Any

import cocotb

from tests.rtl.benches.block_check import Seen, check
from tests.rtl.benches.router_driver import Kind, Packet, Router
from tests.rtl.benches.router_neighbours import Neighbours
from tests.rtl.benches.router_variant import RouterVariant
from tests.rtl.benches.routes import PORTS, subsets

_VARIANT = RouterVariant.of_plan()
_ROWS, _COLS = subsets(_VARIANT.rows), subsets(_VARIANT.cols)
_ROUNDS, _PACKETS = 12, 200
_LONGEST_UNICAST = 12
#: Numbers of the packets that must leave, in order, by input and output.
Expected = dict[tuple[int, int], list[int]]


@check
async def random_traffic_leaves_as_the_routes_say(dut: Any) -> Seen:
    """All kinds of packets from all inputs, pauses and back-pressure: each flit where it must.

    Per output, an input's packets leave in their order; the monitors see the rest.
    """
    draw = random.Random(cocotb.RANDOM_SEED)
    seen: Counter[str] = Counter()
    for _ in range(_ROUNDS):
        router = Router(dut, _VARIANT, draw.choice(_VARIANT.routes.tiles()))
        pace, hold_pace = draw.choice((0.2, 0.6, 1.0)), draw.choice((0.0, 0.4))
        neighbours = Neighbours(router, partial(_with_chance, draw, pace))
        sources, expected, results = _fill(router, draw)
        still = 0
        while still < 60:
            hold = sum((draw.random() < hold_pace) << port for port in range(PORTS))
            outcome = await neighbours.cycle(hold)
            still = 0 if outcome.taken or outcome.accepted else still + 1
        router.assert_empty()
        _assert_in_order(router, sources, expected)
        flits = sum(router.sent[n].flits for left in expected.values() for n in left)
        reduced = sum(router.sent[n].flits for n in results)
        assert len(router.log) == flits + reduced, f"{len(router.log)}, not {flits} + {reduced}"
        dropped = len(sources) - len({number for left in expected.values() for number in left})
        seen.update(neighbours.seen | {"flits": flits, "reduced": reduced, "to_nobody": dropped})
    return dict(seen)


def _with_chance(draw: random.Random, chance: float) -> bool:
    return draw.random() < chance


def _assert_in_order(router: Router, sources: dict[int, int], expected: Expected) -> None:
    """Packets that came by one input and leave by one output do so in their order."""
    left: Expected = {}
    for _, output, number, flit in router.log:
        if flit == 0 and number in sources:
            left.setdefault((sources[number], output), []).append(number)
    for way in left.keys() | expected.keys():
        found, due = left.get(way), expected.get(way)
        assert found == due, f"from {way[0]} by {way[1]}: {found}, expected {due}"


def _fill(router: Router, draw: random.Random) -> tuple[dict[int, int], Expected, list[int]]:
    """Queue packets at the inputs; where each came in, where it must leave, and the reductions.

    The operands come in one order on all inputs, as they do in a mesh.
    """
    kinds = [Kind.UNICAST, *[Kind.MULTICAST] * _VARIANT.multicast]
    kinds += [Kind.SUM, Kind.MAXIMUM] * _VARIANT.reduction
    sources: dict[int, int] = {}
    expected: Expected = {}
    results = []
    for number in range(_PACKETS):
        kind = draw.choice(kinds)
        if kind in (Kind.SUM, Kind.MAXIMUM):
            _reduce(router, number, kind, draw)
            results.append(number)
            continue
        port, packet, outputs = _one_that_comes(router, number, kind, draw)
        router.send(port, packet)
        sources[number] = port
        for output in outputs:
            expected.setdefault((port, output), []).append(number)
    return sources, expected, results


def _one_that_comes(
    router: Router, number: int, kind: Kind, draw: random.Random
) -> tuple[int, Packet, frozenset[int]]:
    """A random packet that can come by an input, the input, and its outputs."""
    routes = _VARIANT.routes
    while True:
        port = draw.choice(routes.ports_at(router.at))
        if kind == Kind.UNICAST:
            flits = draw.randint(1, _LONGEST_UNICAST)
            packet = Packet.unicast(number, draw.choice(routes.tiles()), flits)
        else:
            packet = Packet.multicast(number, *_some(draw), draw.randint(1, _VARIANT.depth))
        outputs = packet.outputs(_VARIANT, router.at, port)
        if outputs is not None:
            return port, packet, outputs


def _reduce(router: Router, number: int, kind: Kind, draw: random.Random) -> None:
    """Queue a random reduction's operands; few headers, so that equal ones follow each other."""
    while True:
        where = _some(draw) if draw.random() < 0.5 else (_ROWS[-1], _COLS[-1])
        root = draw.choice(_VARIANT.routes.tiles())
        tiles = frozenset((row, col) for row in where[0] for col in where[1])
        inputs, _ = _VARIANT.routes.meeting(tiles, root, router.at)
        if inputs:
            break
    flits = draw.randint(1, _VARIANT.depth)
    for port in inputs:
        data = tuple(draw.getrandbits(_VARIANT.payload_bits) for _ in range(flits))
        router.send(port, Packet.operand(number, kind, root, where, data))


def _some(draw: random.Random) -> tuple[frozenset[int], frozenset[int]]:
    """Random rows and columns."""
    return draw.choice(_ROWS), draw.choice(_COLS)
