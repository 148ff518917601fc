"""Routers of other chips at level `at`: to the cycle what profiles say, of one transfer alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.chips import Chip, find_tiles
from tlm.chips.parts import chip_router, noc_timing
from tlm.engines.at import run_at
from tlm.engines.at.cost import BOUND, Cost
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from tlm.program import Engine, Load, Multicast, Program, Reduce, Relay, Roots, Send, Work
from tlm.program.operations import Along, Operation

_CHIPS = ("flat32", "flat32-wafer", "npusim-large", "npusim-small", "wse2")
#: Cycles of a router and to its tile, as somebody's profile may say.
_ROUTERS = [(chip, cycles) for chip in ("flat32", "wse2") for cycles in (2, 3, 8)]


def program_of(*operations: Operation, side: int = 8) -> Program:
    return Program(side, side, {}, lambda: operations)


def at_and_lt(chip: Chip, operation: Operation) -> tuple[int, int]:
    """Cycles of a program of one operation at both levels."""
    router, program = chip_router(chip), program_of(operation)
    mesh = HandshakeMesh(8, 8, router.timing)
    at = run_at(program, replace(router.timing, fifo_depth=router.packet_flits), mesh)
    return at.cycles, run_lt(program, noc_timing(chip)).cycles


@pytest.mark.parametrize(("name", "cycles"), [*((name, 1) for name in _CHIPS), *_ROUTERS], ids=str)
@settings(max_examples=10)
@given(
    along=st.sampled_from(["row", "column"]),
    tiles=st.integers(1, 8),
    place=st.integers(0, 7),
    flits=st.integers(1, 150),
)
def test_a_transfer_alone_takes_the_cycles_of_the_closed_form(
    name: str, cycles: int, along: Along, tiles: int, place: int, flits: int
) -> None:
    chip = find_tiles(name, (f"noc.hop_cycles={cycles}", f"noc.ejection_cycles={cycles}"))
    timing, line = noc_timing(chip), range(tiles)
    root = TileSet(range(3, 4), range(place, place + 1))
    if along == "column":
        root = TileSet(root.cols, root.rows)
    hops = max(place, abs(tiles - 1 - place))
    send = Send(TileSet.tile(3, place), [tiles - 1], [7 - place], flits)
    way = abs(3 - (tiles - 1)) + abs(place - (7 - place))
    for operation, expected in (
        (send, timing.unicast_cycles(way, flits)),
        (Multicast(root, along, line, flits), timing.multicast_cycles(hops, flits)),
        (Reduce(root, along, line, flits), timing.reduction_cycles(hops, flits)),
    ):
        # The tail flit is there a cycle after its handshake.
        assert at_and_lt(chip, operation) == (expected + 1, expected + 1), operation


@pytest.mark.parametrize("flits", [16, 25, 150])
def test_multicasts_that_meet_take_turns_by_packets(flits: int) -> None:
    # Of two messages each waits for packets of the other one at all tiles that both come to.
    chip, line = find_tiles("npusim-small"), range(8)
    rows = Multicast(Roots(line, np.full(8, 3)), "row", line, flits)
    columns = Multicast(Roots(line, np.full(8, 4)), "column", line, flits)
    router, program = chip_router(chip), program_of(rows, columns)
    mesh = HandshakeMesh(8, 8, router.timing)
    at = run_at(program, replace(router.timing, fifo_depth=router.packet_flits), mesh).cycles
    timing = noc_timing(chip)
    assert abs(run_lt(program, timing).cycles - at) <= 0.05 * at


def test_a_buffer_that_would_make_gaps_is_refused() -> None:
    assert chip_router(find_tiles("flat32", ("noc.buffer_flits=18",))).timing.fifo_depth == 18
    with pytest.raises(InputError) as caught:
        chip_router(find_tiles("flat32", ("noc.buffer_flits=17",)))
    assert str(caught.value) == (
        "chip 'flat32': noc.buffer_flits: found 17; allowed at level at: at least 18, for a packet "
        "and what moves on meanwhile"
    )


def test_the_project_s_own_routers_are_as_measured() -> None:
    chip = find_tiles("rtl-4x4")
    timing = noc_timing(chip)
    assert chip_router(chip) == (timing, timing.fifo_depth)


def test_a_cost_counts_steps_and_packets() -> None:
    row, root = TileSet(range(1), range(4)), TileSet.tile(0, 0)
    # A channel for each column, and bursts of four flits.
    edge = Edge(4, 4, 4, 8, 32, 2**20, ChannelTiming(10, 8, 4))
    for operation, steps, packets in (
        (Work(Engine.VECTOR, row, 5), 4, 0),
        (Send(row, [1], [0, 1, 2, 3], 40), 4, 4),  # whole, however long
        (Multicast(root, "row", range(4), 17), 1, 2),
        (Reduce(root, "row", range(4), 33), 4, 3 * 4),
        (Relay(root, "row", range(4), 5), 4, 3 * 5),  # word by word, of all but the root
        (Load(row, 9), 4, 4 * (1 + 3)),
    ):
        assert Cost.of(program_of(operation, side=4), 16, edge) == (steps, packets), operation
    assert Cost.of(program_of(Load(row, 9), side=4), 16, None) == (4, 0)


def test_a_cost_above_the_bound_is_refused() -> None:
    Cost(BOUND, 0).check("less")
    with pytest.raises(InputError) as caught:
        (Cost(BOUND, 0) + Cost(0, 1)).check("less")
    assert str(caught.value) == (
        "--level: at takes 20,000,001 steps and packets, about 1,000 CPU-s; allowed: 20,000,000; "
        "take less"
    )
