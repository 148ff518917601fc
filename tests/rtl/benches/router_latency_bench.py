"""cocotb bench of one router, of whatever parameters: the cycles that flits take through it."""

from itertools import product
from typing import Any

from tests.rtl.benches.block_check import Seen, check
from tests.rtl.benches.router_driver import Kind, Packet, Router
from tests.rtl.benches.router_variant import RouterVariant
from tests.rtl.benches.routes import LOCAL, subsets

_VARIANT = RouterVariant.of_plan()
#: All rows and all columns.
_EVERYONE = subsets(_VARIANT.rows)[-1], subsets(_VARIANT.cols)[-1]


@check
async def a_packet_takes_the_cycles_of_the_parameters(dut: Any) -> Seen:
    """By every input and output of every place, and then a flit a cycle."""
    cases, routes = 0, _VARIANT.routes
    for at in routes.tiles():
        for port, tile in product(routes.ports_at(at), routes.tiles()):
            outputs = routes.unicast(tile, at, port)
            if outputs is None:
                continue
            router = Router(dut, _VARIANT, at)
            router.send(port, Packet.unicast(cases % 256, tile, 3 * _VARIANT.depth))
            await router.drain()
            (output,) = outputs
            begin = _VARIANT.latency_cycles
            due = [(begin + f, output, cases % 256, f) for f in range(3 * _VARIANT.depth)]
            assert router.log == due, router.log
            cases += 1
    return {"cases": cases}


@check
async def a_multicast_takes_the_cycles_of_a_unicast(dut: Any) -> Seen:
    """To all tiles, from every place: by all branches in the same cycle. Nothing to see without."""
    cases, routes = 0, _VARIANT.routes
    for at in routes.tiles() if _VARIANT.multicast else []:
        for port in routes.ports_at(at):
            packet = Packet.multicast(7, *_EVERYONE, _VARIANT.depth)
            router, outputs = Router(dut, _VARIANT, at), packet.outputs(_VARIANT, at, port)
            router.send(port, packet)
            await router.drain()
            begin = _VARIANT.latency_cycles
            due = [(begin + f, o, 7, f) for f in range(_VARIANT.depth) for o in outputs or ()]
            assert sorted(router.log) == sorted(due), router.log
            cases += 1
    return {"cases": cases}


@check
async def a_result_takes_the_stages_of_the_unit_more(dut: Any) -> Seen:
    """All tiles to every root, from every place; packets of equal headers leave without a gap."""
    cases, routes = 0, _VARIANT.routes
    for at, root in product(routes.tiles(), routes.tiles()) if _VARIANT.reduction else []:
        inputs, output = routes.meeting(frozenset(routes.tiles()), root, at)
        router = Router(dut, _VARIANT, at)
        for port, number in product(inputs, range(3)):
            data = tuple(cases * 1000 + port * 77 + f * 13 + number for f in range(2))
            router.send(port, Packet.operand(number, Kind.SUM, root, _EVERYONE, data))
        await router.drain()
        begin = _VARIANT.latency_cycles + _VARIANT.reduce_stages
        due = [(begin + f, output, f // 2, f % 2) for f in range(6)]
        assert router.log == due, router.log
        cases += 1
    return {"cases": cases}


@check
async def a_multicast_starts_with_room_here_and_behind(dut: Any) -> Seen:
    """Places in the output's own buffer count: granted with just enough, and not with one less."""
    cases, lengths = 0, range(1, _VARIANT.depth + 1)
    rooms = range(_VARIANT.depth + 1)
    for free, flits in product(rooms, lengths) if _VARIANT.multicast else []:
        router = Router(dut, _VARIANT, (1, 1))
        packet = Packet.multicast(1, *_EVERYONE, flits)
        router.send(LOCAL, packet)
        for _ in range(_VARIANT.latency_cycles + 2):
            outcome = await router.cycle(ready=1 << LOCAL, free=(free,) * 4)
        enough = not _VARIANT.cut_through or free + _VARIANT.output_depth >= flits
        links = (packet.outputs(_VARIANT, (1, 1), LOCAL) or frozenset()) - {LOCAL}
        found = outcome.offered.keys() - {LOCAL}
        assert found == (links if enough else set()), f"{flits} flits, {free} free: {found}"
        cases += 1
        await router.drain()
    return {"cases": cases}


@check
async def a_multicast_to_nobody_is_dropped(dut: Any) -> Seen:
    """Without loopback, to the sender alone: a flit a cycle, and the packet behind it passes."""
    cases, routes, flits = 0, _VARIANT.routes, _VARIANT.depth
    for at in routes.tiles() if _VARIANT.multicast and not _VARIANT.loopback else []:
        router, itself = Router(dut, _VARIANT, at), (frozenset({at[0]}), frozenset({at[1]}))
        router.send(LOCAL, Packet.multicast(1, *itself, flits), Packet.unicast(2, at))
        await router.drain()
        assert router.log == [(flits + _VARIANT.latency_cycles, LOCAL, 2, 0)], router.log
        cases += 1
    return {"cases": cases}
