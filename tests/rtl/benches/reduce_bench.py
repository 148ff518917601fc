"""cocotb bench of reductions in one router, the centre of a 3x3 mesh, cycle by cycle.

The router has all features, one stage, no output buffers and one register behind its reduction
unit. A timeline is a list of (cycle, output, packet, flit). What a result holds is the driver's
business (router_driver.py).
"""

import random
from itertools import product
from typing import Any

import cocotb

from tests.rtl.benches.block_check import Seen, check
from tests.rtl.benches.router_driver import Kind, Packet, Router
from tests.rtl.benches.router_neighbours import Neighbours
from tests.rtl.benches.router_variant import RouterVariant
from tests.rtl.benches.routes import EAST, LOCAL, NORTH, PORTS, SOUTH, WEST, Tile, subsets

_VARIANT = RouterVariant.of_plan()
_DEPTH = _VARIANT.depth
_CENTRE, _EAST_TILE, _SOUTH_TILE = (1, 1), (1, 2), (2, 1)
#: Outputs that are links, and the tile behind each.
_LINKS = ((NORTH, (0, 1)), (EAST, _EAST_TILE), (SOUTH, _SOUTH_TILE), (WEST, (1, 0)))


class _Reducer(Router):
    """A router with reductions of random data."""

    def __init__(self, dut: Any) -> None:
        """Bind to the router."""
        super().__init__(dut, _VARIANT)
        self._draw = random.Random(cocotb.RANDOM_SEED)

    def operand(
        self, number: int, root: Tile, where: tuple[set[int], set[int]], flits: int = 1,
        kind: Kind = Kind.SUM,
    ) -> Packet:  # fmt: skip
        """An operand of the reduction of these rows and columns."""
        data = tuple(self._draw.getrandbits(_VARIANT.payload_bits) for _ in range(flits))
        return Packet.operand(number, kind, root, (frozenset(where[0]), frozenset(where[1])), data)


@check
async def every_set_of_operands_and_every_root(dut: Any) -> Seen:
    """All marked rows and columns, sums and maxima, of one flit to a buffer's depth."""
    router = _Reducer(dut)
    seen = {"reductions": 0, **{f"of_{fan_in}": 0 for fan_in in range(1, PORTS + 1)}}
    sets, routes = product(subsets(3), subsets(3)), _VARIANT.routes
    for (rows, cols), root, kind in product(sets, routes.tiles(), (Kind.SUM, Kind.MAXIMUM)):
        inputs, output = routes.meeting(frozenset(product(rows, cols)), root, _CENTRE)
        if output is None:
            continue
        flits = 1 + seen["reductions"] % _DEPTH
        for port in inputs:
            where = set(rows), set(cols)
            router.send(port, router.operand(seen["reductions"], root, where, flits, kind))
        begin, router.log = router.now, []
        await router.drain(quiet=3)
        due = [(begin + 2 + flit, output, seen["reductions"], flit) for flit in range(flits)]
        assert router.log == due, f"{set(rows)} x {set(cols)} to {root}: {router.log}, not {due}"
        seen["reductions"] += 1
        seen[f"of_{len(inputs)}"] += 1
    return seen


@check
async def a_late_operand_holds_only_its_reduction(dut: Any) -> Seen:
    """The west's waits for the north's; both inputs, the output and the unit serve others."""
    router = _Reducer(dut)
    late, other = ({0, 1}, {0}), ({1}, {1, 2})
    router.send(WEST, router.operand(1, _CENTRE, late, 2), Packet.unicast(10, _CENTRE))
    router.send(NORTH, Packet.unicast(11, _CENTRE))
    for port in (LOCAL, EAST):
        router.send(port, router.operand(2, _CENTRE, other, 2))
    for _ in range(7):
        await router.cycle()
    router.send(NORTH, router.operand(1, _CENTRE, late, 2))
    await router.drain()
    assert router.log == [
        (1, LOCAL, 11, 0), (2, LOCAL, 2, 0), (3, LOCAL, 2, 1), (4, LOCAL, 10, 0),
        (9, LOCAL, 1, 0), (10, LOCAL, 1, 1),
    ], router.log  # fmt: skip
    return {"flits": len(router.log)}


@check
async def a_tile_that_is_not_marked_is_no_operand(dut: Any) -> Seen:
    """West and east meet here; the tile's operand of another reduction stays where it is."""
    router = _Reducer(dut)
    router.send(LOCAL, router.operand(2, _CENTRE, ({0, 1}, {1}), 2))
    for port in (EAST, WEST):
        router.send(port, router.operand(1, _CENTRE, ({1}, {0, 2}), 2))
    for _ in range(5):
        await router.cycle()
    router.send(NORTH, router.operand(2, _CENTRE, ({0, 1}, {1}), 2))
    await router.drain()
    order = [(2, LOCAL, 1, 0), (3, LOCAL, 1, 1), (7, LOCAL, 2, 0), (8, LOCAL, 2, 1)]
    assert router.log == order, router.log
    return {"flits": len(router.log)}


@check
async def an_operand_of_another_reduction_is_no_partner(dut: Any) -> Seen:
    """North waits for the west, which first shows what waits for the east."""
    router = _Reducer(dut)
    first, second = ({1}, {0, 2}), ({0, 1}, {0})
    router.send(NORTH, router.operand(2, _CENTRE, second, 2))
    router.send(WEST, router.operand(1, _CENTRE, first, 2), router.operand(2, _CENTRE, second, 2))
    for _ in range(6):
        await router.cycle()
    router.send(EAST, router.operand(1, _CENTRE, first, 2))
    await router.drain()
    order = [(8, LOCAL, 1, 0), (9, LOCAL, 1, 1), (10, LOCAL, 2, 0), (11, LOCAL, 2, 1)]
    assert router.log == order, router.log
    return {"flits": len(router.log)}


@check
async def reductions_that_could_both_start_take_turns(dut: Any) -> Seen:
    """From north to south and from west to east: packet by packet, a flit in every cycle."""
    router = _Reducer(dut)
    for turn in range(6):
        router.send(WEST, router.operand(turn, _EAST_TILE, ({1}, {0}), 2))
        router.send(NORTH, router.operand(10 + turn, _SOUTH_TILE, ({0}, {1}), 2))
    await router.drain()
    line = [item for turn in range(6) for item in ((SOUTH, 10 + turn), (EAST, turn))]
    order = [(*item, flit) for item in line for flit in range(2)]
    due = [(2 + i, *item) for i, item in enumerate(order)]
    assert router.log == due, router.log
    return {"packets": len(line)}


@check
async def a_result_waits_for_room_for_all_of_it(dut: Any) -> Seen:
    """Nothing with one place too few, at once with enough; a unicast behind it passes meanwhile."""
    cases = 0
    for (output, tile), flits in product(_LINKS, range(1, _DEPTH + 1)):
        router = _Reducer(dut)
        router.send(LOCAL, router.operand(1, tile, ({1}, {1}), flits), Packet.unicast(2, tile))
        short = tuple(flits - 1 if o == output else _DEPTH for o in range(1, PORTS))
        for _ in range(flits + 4):
            await router.cycle(operand_free=short)
        assert router.log == [(flits + 1, output, 2, 0)], router.log
        begin, router.log = router.now, []
        for _ in range(flits + 1):
            room = flits - len(router.log)
            rooms = tuple(room if o == output else 0 for o in range(1, PORTS))
            await router.cycle(operand_free=rooms)
        assert router.log == [(begin + 1 + f, output, 1, f) for f in range(flits)], router.log
        router.assert_empty()
        cases += 1
    return {"cases": cases}


@check
async def room_is_kept_for_what_has_yet_to_leave(dut: Any) -> Seen:
    """Two reductions to a link that is not read: the second leaves if there is room for both.

    When the second could start, the last flit of the first stands in the register.
    """
    seen = {"fit": 0, "wait": 0}
    for first, second in product(range(1, _DEPTH + 1), repeat=2):
        router = _Reducer(dut)
        neighbours = Neighbours(router, lambda: False)
        router.send(LOCAL, router.operand(1, _EAST_TILE, ({1}, {1}), first))
        router.send(LOCAL, router.operand(2, _EAST_TILE, ({1}, {1}), second))
        for _ in range(2 * _DEPTH + 4):
            await neighbours.cycle()
        fit = first + second <= _DEPTH
        at_once = first + second if fit else first
        assert [entry[0] for entry in router.log] == [2 + flit for flit in range(at_once)]
        neighbours.reads = lambda: True
        for _ in range(2 * _DEPTH + 4):
            await neighbours.cycle()
        router.assert_empty()
        seen["fit" if fit else "wait"] += 1
    return seen


@check
async def results_stand_in_line_like_a_sixth_input(dut: Any) -> Seen:
    """All inputs and the unit to the tile, three packets each: in turns, without an idle cycle."""
    router = _Reducer(dut)
    for turn in range(3):
        for port in (EAST, WEST):
            router.send(port, router.operand(50 + turn, _CENTRE, ({1}, {0, 2}), 2))
        for port in range(PORTS):
            router.send(port, Packet.unicast(10 * port + turn, _CENTRE, 2))
    for _ in range(10):
        await router.cycle(ready=0)
    begin = router.now
    await router.drain()
    order = [(10 * place + turn, flit) for turn, place, flit in product(range(3), range(6), (0, 1))]
    assert router.log == [(begin + i, LOCAL, *item) for i, item in enumerate(order)], router.log
    return {"grants": 18}


@check
async def an_output_stays_with_a_result_to_its_last_flit(dut: Any) -> Seen:
    """The operand pauses after its head; a unicast that came meanwhile waits for its tail."""
    router = _Reducer(dut)
    router.send(WEST, router.operand(1, _CENTRE, ({1}, {0}), 2))
    router.send(NORTH, Packet.unicast(2, _CENTRE))
    await router.cycle(hold=1 << NORTH)
    await router.cycle(hold=1 << NORTH | 1 << WEST)
    for _ in range(3):
        await router.cycle(hold=1 << WEST)
    await router.drain()
    due = [(2, LOCAL, 1, 0), (7, LOCAL, 1, 1), (8, LOCAL, 2, 0)]
    assert router.log == due, router.log
    return {"flits": len(router.log)}


@check
async def a_blocked_result_does_not_change(dut: Any) -> Seen:
    """The tile refuses; the result stands, and the buffers fill up behind it."""
    router = _Reducer(dut)
    for number in range(8):
        for port in (LOCAL, SOUTH):
            router.send(port, router.operand(number, _CENTRE, ({1, 2}, {1})))
    for cycle in range(12):
        outcome = await router.cycle(ready=0)
        assert outcome.offered == ({LOCAL: (0, 0)} if cycle >= 2 else {}), outcome.offered
    assert outcome.in_operand_free == [0, _DEPTH, _DEPTH, 0, _DEPTH], outcome.in_operand_free
    assert outcome.in_free == [_DEPTH] * PORTS
    await router.drain()
    assert router.log == [(12 + n, LOCAL, n, 0) for n in range(8)], router.log
    return {"results": 8}
