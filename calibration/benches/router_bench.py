"""cocotb bench of one router: routes, grants, locks, forks and cut-through, cycle by cycle.

A timeline is a list of (cycle, output, packet, flit). A flit accepted in one cycle is offered in
the next at the earliest.
"""

from itertools import product
from typing import Any

from calibration.benches.block_check import Seen, check
from calibration.benches.router_driver import (
    COLS,
    DEPTH,
    EAST,
    LOCAL,
    NORTH,
    PORTS,
    ROWS,
    SOUTH,
    SUBSETS,
    WEST,
    Packet,
    Router,
    Tile,
    can_come,
    outputs_of,
)

_CENTRE, _ALL = (1, 1), frozenset({0, 1, 2})


def _ports_at(at: Tile) -> list[int]:
    """The ports of a router in this place that lead anywhere."""
    inside = {NORTH: at[0] > 0, SOUTH: at[0] < ROWS - 1, WEST: at[1] > 0, EAST: at[1] < COLS - 1}
    return [LOCAL, *(port for port, exists in inside.items() if exists)]


@check
async def every_route_from_every_place(dut: Any) -> Seen:
    """All sets of destinations, all inputs, all nine places: the outputs of an X-first tree."""
    cases, router = 0, Router(dut)
    for node in range(ROWS * COLS):
        router.at = (node // COLS, node % COLS)
        for port in _ports_at(router.at):
            for rows, cols in product(SUBSETS, SUBSETS):
                packet = Packet(cases % 256, rows, cols)
                if not can_come(packet, router.at, port):
                    continue
                router.send(port, packet)
                await router.cycle()
                outcome = await router.cycle()
                expected = outputs_of(packet, router.at, port)
                assert set(outcome.taken) == expected, f"{packet} by {port} at {router.at}"
                cases += 1
    return {"cases": cases}


@check
async def five_inputs_to_five_outputs_pass_together(dut: Any) -> Seen:
    """Packets that share no output do not see each other."""
    router = Router(dut)
    ways = [(LOCAL, (0, 1)), (NORTH, (2, 1)), (SOUTH, (1, 1)), (EAST, (1, 0)), (WEST, (1, 2))]
    for port, tile in ways:
        router.send(port, Packet.to(port, tile, 3))
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
    router = Router(dut)
    router.send(EAST, Packet.to(99, _CENTRE))
    await router.drain()
    begin, router.log = router.now, []
    for port in range(PORTS):
        router.send(port, *(Packet.to(10 * port + turn, _CENTRE, 2) for turn in range(3)))
    await router.drain()
    line = (SOUTH, WEST, LOCAL, NORTH, EAST)
    order = [(10 * port + turn, flit) for turn in range(3) for port in line for flit in range(2)]
    expected = [(begin + 1 + i, LOCAL, *item) for i, item in enumerate(order)]
    assert router.log == expected, router.log
    return {"grants": 15}


@check
async def the_line_moves_when_a_packet_is_granted(dut: Any) -> Seen:
    """Three inputs come while the south sends: the west is next to it, whoever asked meanwhile."""
    router = Router(dut)
    router.send(SOUTH, Packet.to(SOUTH, _CENTRE, 3))
    await router.cycle()
    for port in (LOCAL, NORTH, WEST):
        router.send(port, Packet.to(port, _CENTRE))
    await router.drain()
    order = [entry[2] for entry in router.log if entry[3] == 0]
    assert order == [SOUTH, WEST, LOCAL, NORTH], order
    return {"grants": 4}


@check
async def an_output_stays_with_its_packet_to_the_last_flit(dut: Any) -> Seen:
    """The packet from the north pauses after its head; the one from the west waits for its tail."""
    router = Router(dut)
    router.send(NORTH, Packet.to(1, (2, 1), 3))
    router.send(WEST, Packet.to(2, (2, 1), 2))
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
    router = Router(dut)
    router.send(WEST, Packet.to(1, (1, 2)))
    await router.cycle(ready=0)
    await router.cycle(ready=0)
    router.send(LOCAL, Packet.to(2, (1, 2)))
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
    router = Router(dut)
    router.send(WEST, Packet(1, _ALL, frozenset({1, 2}), 3), Packet.to(2, _CENTRE))
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
    for output, tile in ((NORTH, (0, 1)), (EAST, (1, 2)), (SOUTH, (2, 1)), (WEST, (1, 0))):
        for flits in range(1, DEPTH + 1):
            router = Router(dut)
            rows, cols = frozenset({1, tile[0]}), frozenset({1, tile[1]})
            router.send(LOCAL, Packet(1, rows, cols, flits))
            short = tuple(flits - 1 if o == output else DEPTH for o in range(1, PORTS))
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
    for output, tile in ((NORTH, (0, 1)), (EAST, (1, 2)), (SOUTH, (2, 1)), (WEST, (1, 0))):
        router = Router(dut)
        router.send(LOCAL, Packet.to(1, tile, 9))
        await router.cycle(ready=0, free=(0,) * 4)
        assert (await router.cycle(ready=0, free=(0,) * 4)).offered == {output: (1, 0)}
        await router.drain()
        assert len(router.log) == 9
    return {"cases": 4}


@check
async def a_multicast_without_room_lets_others_pass(dut: Any) -> Seen:
    """What cannot be granted is not in line: a unicast behind another input goes east meanwhile."""
    router = Router(dut)
    router.send(LOCAL, Packet(1, frozenset({1}), frozenset({1, 2}), 4))
    router.send(WEST, Packet.to(2, (1, 2), 2))
    for _ in range(5):
        await router.cycle(free=(3,) * 4)
    await router.drain()
    east = [entry for entry in router.log if entry[1] == EAST]
    unicast = [(1, EAST, 2, 0), (2, EAST, 2, 1)]
    assert east == [*unicast, *((5 + f, EAST, 1, f) for f in range(4))], east
    return {"flits": len(east)}


@check
async def a_blocked_router_takes_a_buffer_an_input(dut: Any) -> Seen:
    """Back-pressure: each input takes as many flits as its buffer holds, and says how many more."""
    router = Router(dut)
    for port in range(PORTS):
        router.send(port, Packet.to(port, _CENTRE, 8))
    for cycle in range(DEPTH + 3):
        assert (await router.cycle(ready=0)).in_free == [max(DEPTH - cycle, 0)] * PORTS
    assert [len(queue) for queue in router.queues] == [8 - DEPTH] * PORTS
    await router.drain()
    assert len(router.log) == 8 * PORTS
    return {"cycles": DEPTH + 3}
