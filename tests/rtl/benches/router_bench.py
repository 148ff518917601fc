"""cocotb bench of one router in a 3x3 mesh: grants, locks, forks and cut-through, cycle by cycle.

The router has all features, one stage and no output buffers. A timeline is a list of (cycle,
output, packet, flit). A flit accepted in one cycle is offered in the next at the earliest.
"""

from itertools import product
from typing import Any

from tests.rtl.benches.block_check import Seen, check
from tests.rtl.benches.router_driver import Packet, Router
from tests.rtl.benches.router_neighbours import Neighbours
from tests.rtl.benches.router_variant import RouterVariant
from tests.rtl.benches.routes import EAST, LOCAL, NORTH, PORTS, SOUTH, WEST, subsets

_VARIANT = RouterVariant.of_plan()
_DEPTH = _VARIANT.depth
_CENTRE, _ALL = (1, 1), frozenset({0, 1, 2})
#: Outputs that are links, and the tile behind each.
_LINKS = ((NORTH, (0, 1)), (EAST, (1, 2)), (SOUTH, (2, 1)), (WEST, (1, 0)))


@check
async def every_route_from_every_place(dut: Any) -> Seen:
    """All destinations and all sets of them, all inputs, all nine places."""
    cases, router, routes = 0, Router(dut, _VARIANT), _VARIANT.routes
    for router.at in routes.tiles():
        for port in routes.ports_at(router.at):
            unicasts = [Packet.unicast(number, tile) for number, tile in enumerate(routes.tiles())]
            sets = enumerate(product(subsets(3), subsets(3)), len(unicasts))
            multicasts = [Packet.multicast(number, *chosen) for number, chosen in sets]
            for packet in unicasts + multicasts:
                expected = packet.outputs(_VARIANT, router.at, port)
                if expected is None:
                    continue
                router.send(port, packet)
                await router.cycle()
                outcome = await router.cycle()
                assert set(outcome.taken) == expected, f"{packet} by {port} at {router.at}"
                cases += 1
    return {"cases": cases}


@check
async def five_inputs_to_five_outputs_pass_together(dut: Any) -> Seen:
    """Packets that share no output do not see each other."""
    router = Router(dut, _VARIANT)
    ways = [(LOCAL, (0, 1)), (NORTH, (2, 1)), (SOUTH, (1, 1)), (EAST, (1, 0)), (WEST, (1, 2))]
    for port, tile in ways:
        router.send(port, Packet.unicast(port, tile, 3))
    await router.drain()
    assert sorted(router.log) == [
        (1 + flit, output, packet, flit)
        for flit in range(3)
        for output, packet in enumerate((SOUTH, LOCAL, WEST, NORTH, EAST))
    ], router.log
    return {"flits": len(router.log)}


@check
async def waiting_inputs_take_turns(dut: Any) -> Seen:
    """All five inputs to the tile, three packets each: 0 to 4 and again, and never an idle cycle.

    The packet from the east that goes first alone puts the south first in line.
    """
    router = Router(dut, _VARIANT)
    router.send(EAST, Packet.unicast(99, _CENTRE))
    await router.drain()
    begin, router.log = router.now, []
    for port in range(PORTS):
        router.send(port, *(Packet.unicast(10 * port + turn, _CENTRE, 2) for turn in range(3)))
    await router.drain()
    line = (SOUTH, WEST, LOCAL, NORTH, EAST)
    order = [(10 * port + turn, flit) for turn in range(3) for port in line for flit in range(2)]
    expected = [(begin + 1 + i, LOCAL, *item) for i, item in enumerate(order)]
    assert router.log == expected, router.log
    return {"grants": 15}


@check
async def the_line_moves_when_a_packet_is_granted(dut: Any) -> Seen:
    """Three inputs come while the south sends: the west is next to it, whoever asked meanwhile."""
    router = Router(dut, _VARIANT)
    router.send(SOUTH, Packet.unicast(SOUTH, _CENTRE, 3))
    await router.cycle()
    for port in (LOCAL, NORTH, WEST):
        router.send(port, Packet.unicast(port, _CENTRE))
    await router.drain()
    order = [entry[2] for entry in router.log if entry[3] == 0]
    assert order == [SOUTH, WEST, LOCAL, NORTH], order
    return {"grants": 4}


@check
async def an_output_stays_with_its_packet_to_the_last_flit(dut: Any) -> Seen:
    """The packet from the north pauses after its head; the one from the west waits for its tail."""
    router = Router(dut, _VARIANT)
    router.send(NORTH, Packet.unicast(1, (2, 1), 3))
    router.send(WEST, Packet.unicast(2, (2, 1), 2))
    await router.cycle(hold=1 << WEST)
    for _ in range(3):
        await router.cycle(hold=1 << NORTH)
    await router.drain()
    assert router.log == [
        (1, SOUTH, 1, 0), (5, SOUTH, 1, 1), (6, SOUTH, 1, 2), (7, SOUTH, 2, 0), (8, SOUTH, 2, 1),
    ], router.log  # fmt: skip
    return {"flits": len(router.log)}


@check
async def a_blocked_offer_does_not_change(dut: Any) -> Seen:
    """The local input is first in line, yet the offer of the west, made before, stands."""
    router = Router(dut, _VARIANT)
    router.send(WEST, Packet.unicast(1, (1, 2)))
    await router.cycle(ready=0)
    await router.cycle(ready=0)
    router.send(LOCAL, Packet.unicast(2, (1, 2)))
    for _ in range(4):
        assert (await router.cycle(ready=0)).offered == {EAST: (1, 0)}
    await router.drain()
    assert router.log == [(6, EAST, 1, 0), (7, EAST, 2, 0)], router.log
    return {"cycles": 4}


@check
async def branches_go_on_while_one_is_blocked(dut: Any) -> Seen:
    """A multicast of three flits from the west leaves by four outputs, the east being blocked.

    The others send each flit once, and what is behind in the buffer waits for the east to end.
    """
    router = Router(dut, _VARIANT)
    router.send(WEST, Packet.multicast(1, _ALL, frozenset({1, 2}), 3), Packet.unicast(2, _CENTRE))
    for _ in range(8):
        await router.cycle(ready=0b11111 & ~(1 << EAST))
    await router.drain()
    first = [(1 + f, output, 1, f) for f in range(3) for output in (LOCAL, NORTH, SOUTH)]
    east = [(8 + f, EAST, 1, f) for f in range(3)]
    assert router.log == [*first, *east, (11, LOCAL, 2, 0)], router.log
    return {"flits": len(router.log)}


@check
async def a_multicast_is_granted_when_the_whole_packet_has_room(dut: Any) -> Seen:
    """Blocked with one place too few, granted at once with enough, for all lengths and outputs."""
    cases = 0
    for output, tile in _LINKS:
        for flits in range(1, _DEPTH + 1):
            router = Router(dut, _VARIANT)
            rows, cols = frozenset({1, tile[0]}), frozenset({1, tile[1]})
            router.send(LOCAL, Packet.multicast(1, rows, cols, flits))
            short = tuple(flits - 1 if o == output else _DEPTH for o in range(1, PORTS))
            enough = tuple(flits if o == output else 0 for o in range(1, PORTS))
            for _ in range(flits + 2):
                assert output not in (await router.cycle(free=short)).offered
            assert [entry[1:] for entry in router.log] == [(LOCAL, 1, f) for f in range(flits)]
            begin, router.log = router.now, []
            await router.cycle(free=enough)
            for _ in range(flits):  # once granted, it needs no more room than each flit's own
                await router.cycle(free=(0,) * 4)
            assert router.log == [(begin + f, output, 1, f) for f in range(flits)], router.log
            cases += 1
    return {"cases": cases}


@check
async def a_unicast_needs_no_room_for_the_whole_packet(dut: Any) -> Seen:
    """Offered at once even with nothing free: valid waits for no ready."""
    for output, tile in _LINKS:
        router = Router(dut, _VARIANT)
        router.send(LOCAL, Packet.unicast(1, tile, 9))
        await router.cycle(ready=0, free=(0,) * 4)
        assert (await router.cycle(ready=0, free=(0,) * 4)).offered == {output: (1, 0)}
        await router.drain()
        assert len(router.log) == 9
    return {"cases": 4}


@check
async def a_multicast_without_room_holds_its_output(dut: Any) -> Seen:
    """It is in line like any other: a unicast that comes later waits for it, on this link alone."""
    router = Router(dut, _VARIANT)
    router.send(LOCAL, Packet.multicast(1, frozenset({1}), frozenset({1, 2}), 4))
    await router.cycle(free=(3,) * 4)
    router.send(WEST, Packet.unicast(2, (1, 2), 2))
    router.send(NORTH, Packet.unicast(3, (2, 1), 2))
    for _ in range(6):
        await router.cycle(free=(3,) * 4)
    await router.drain()
    east = [entry for entry in router.log if entry[1] == EAST]
    assert east == [*((7 + f, EAST, 1, f) for f in range(4)), (11, EAST, 2, 0), (12, EAST, 2, 1)]
    south = [entry for entry in router.log if entry[1] == SOUTH]
    assert south == [(2, SOUTH, 3, 0), (3, SOUTH, 3, 1)], south
    return {"flits": len(east)}


@check
async def unicasts_cannot_starve_a_multicast(dut: Any) -> Seen:
    """The west never ceases to send east, where a place is freed every second cycle only.

    There is never room for a whole multicast unless the link is kept for it; yet each goes after
    one unicast.
    """
    router = Router(dut, _VARIANT)
    neighbours = Neighbours(router, lambda: router.now % 2 == 0)
    for turn in range(8):
        router.send(LOCAL, Packet.multicast(turn, frozenset({0, 1}), frozenset({2}), _DEPTH))
    for turn in range(64):
        router.send(WEST, Packet.unicast(100 + turn, (turn % 3, 2)))
    while len(router.log) < 8 * (_DEPTH + 1):
        await neighbours.cycle()
    order = [number for _, _, number, flit in router.log if flit == 0]
    assert order == [number for turn in range(8) for number in (turn, 100 + turn)], order
    await router.drain()
    return {"multicasts": 8}


@check
async def a_blocked_router_takes_a_buffer_an_input(dut: Any) -> Seen:
    """Back-pressure: each input takes as many flits as its buffer holds, and says how many more."""
    router = Router(dut, _VARIANT)
    for port in range(PORTS):
        router.send(port, Packet.unicast(port, _CENTRE, 8))
    for cycle in range(_DEPTH + 3):
        assert (await router.cycle(ready=0)).in_free == [max(_DEPTH - cycle, 0)] * PORTS
    assert [len(queue) for queue in router.queues] == [8 - _DEPTH] * PORTS
    await router.drain()
    assert len(router.log) == 8 * PORTS
    return {"cycles": _DEPTH + 3}
