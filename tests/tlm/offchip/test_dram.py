"""A DRAM of a tile's own: histories of requests, and the node that asks by them."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tlm.programs import program_of, tile
from tlm.chips import find_tiles
from tlm.chips.parts import offchip_channels
from tlm.engines.at import run_at
from tlm.engines.at.cost import Cost
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.memory.dram.channel import BurstRequests
from tlm.memory.dram.interleaved import InterleavedChannels
from tlm.memory.dram.streams import INTERLEAVE_BYTES
from tlm.offchip import dram
from tlm.offchip.dram import Ask, DramOfTile, Histories, History
from tlm.offchip.edge import Edge
from tlm.offchip.system import OffChipMemory
from tlm.program import Load, Operation, Store, Work
from tlm.program.operations import Engine

TIMING = NocTiming(
    hop_cycles=1, ejection_cycles=1, fifo_depth=8, multicast_gap_cycles=1, flit_bytes=256
)
UNIT_BYTES = 256
LARGE = DramOfTile.of("hbm2", Fraction(240), 500e6, 100)
CHANNELS = {
    "large": LARGE,
    "one": DramOfTile("hbm3", 1, Fraction(5, 3), 7),
    "fast": DramOfTile("hbm4", 3, Fraction(7), 0),
}


def asks(delays: Sequence[tuple[int, bool, int, int]]) -> list[Ask]:
    """Requests some cycles after each other; none is asked for before those before it."""
    found: list[Ask] = []
    now = free = 0
    for delay, writes, address, units in delays:
        now += delay
        first = max(now, free)
        free = first + units
        found.append(Ask(now, first, writes, UNIT_BYTES * address, units))
    return found


def last_times(of: Histories, every: Sequence[Ask]) -> dict[int, list[int]]:
    """What is said of each block last."""
    history, found = of.first, {}
    for ask in every:
        history = history.after(ask)
        found |= {number: times.tolist() for number, times in history.times.items()}
    return found


def whole_run(of: DramOfTile, every: Sequence[Ask]) -> dict[int, list[int]]:
    """The same of all requests at once."""
    channels = InterleavedChannels(of.channel, of.pseudo_channels, INTERLEAVE_BYTES)
    size = of.channel.device.burst_bytes
    block = [number for number, ask in enumerate(every) for _ in range(ask.units)]
    unit = [number for ask in every for number in range(ask.units)]
    bursts = UNIT_BYTES // size
    address = np.array(
        [
            every[number].address // size + bursts * each
            for number, each in zip(block, unit, strict=True)
        ]
    )
    burst = (address[:, None] + np.arange(bursts)).ravel()
    ticks, per = of.ticks_per_cycle.as_integer_ratio()
    tick = np.array(
        [-(-(every[b].first + u) * ticks // per) for b, u in zip(block, unit, strict=True)]
    )
    write = np.array([int(every[number].writes) for number in block])
    asked = BurstRequests(np.repeat(tick, bursts), np.repeat(write, bursts), burst, [len(burst)])
    where = burst // (INTERLEAVE_BYTES // size) % of.pseudo_channels
    answered = np.zeros(len(burst), dtype=np.int64)
    ran = iter(channels.simulate(asked))
    for number in range(of.pseudo_channels):
        own = where == number
        if own.any():
            part, run = next(ran)
            answered[own] = np.where(part.write == 1, run.end_req, run.begin_resp)
    cycles = -(-answered.reshape(-1, bursts).max(axis=1) * per // ticks)
    found: dict[int, list[int]] = {number: [] for number in range(len(every))}
    for number, cycle in zip(block, cycles.tolist(), strict=True):
        cycle += 0 if every[number].writes else of.more_cycles
        found[number].append(max([cycle, *found[number][-1:]]))
    return found


DELAYS = st.lists(
    st.tuples(st.integers(0, 400), st.booleans(), st.integers(0, 5000), st.integers(1, 40)),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("name", CHANNELS)
@settings(max_examples=25, deadline=None)
@given(delays=DELAYS)
def test_a_history_is_the_run_of_its_requests(
    name: str, delays: list[tuple[int, bool, int, int]]
) -> None:
    """What is said request by request is what all of them at once take: no time is lost."""
    of, every = CHANNELS[name], asks(delays)
    assert last_times(Histories(of, UNIT_BYTES), every) == whole_run(of, every)


def test_a_long_stream_forgets_what_was_answered() -> None:
    of, every = Histories(LARGE, UNIT_BYTES), asks([(300, False, 0, 256)] * 40)
    history = of.first
    for ask in every:
        history = history.after(ask)
    assert max(len(part.requests) for part in history._parts) <= 4 * 256  # of 40 * 256
    assert last_times(Histories(LARGE, UNIT_BYTES), every) == whole_run(LARGE, every)


def test_the_peak_and_the_latency_are_those_of_the_channel() -> None:
    device = LARGE.channel.device
    of_one = Fraction(device.burst_bytes, device.bl) * LARGE.ticks_per_cycle
    assert LARGE.pseudo_channels == 8
    assert LARGE.pseudo_channels * of_one == 240
    [first, *_] = Histories(LARGE, UNIT_BYTES).first.after(Ask(50, 50, False, 0, 1)).times[0]
    alone = 50 + 100  # and seven bursts more of the flit
    assert alone <= first <= alone + 20


def edge_of(rows: int, cols: int, of: DramOfTile = LARGE) -> Edge:
    timing = ChannelTiming(100, Fraction(240), queue_depth=2**30)
    return Edge(rows, cols, rows * cols, UNIT_BYTES, 32, 1 << 28, timing, at_tiles=True, dram=of)


def cycles(edge: Edge, *operations: Operation, **tokens: Any) -> tuple[int, OffChipMemory]:
    memory = OffChipMemory(edge, None)
    program = program_of(edge.rows, edge.cols, [*operations], **tokens)
    mesh = HandshakeMesh(edge.rows, edge.cols, TIMING)
    return run_at(program, TIMING, mesh, offchip=memory).cycles, memory


def test_a_program_loads_and_stores() -> None:
    there = tile(0)
    alone, memory = cycles(edge_of(1, 1), Load(there, 400, arrivals=("come",)), come=(0, 4))
    assert (memory.read_bytes, memory.written_bytes) == (400 * UNIT_BYTES, 0)
    assert 400 * UNIT_BYTES / 240 < alone < 1.25 * 400 * UNIT_BYTES / 240 + 120
    # What is stored is asked for like loads, and takes time of those behind it.
    stored, memory = cycles(
        edge_of(1, 1),
        Store(there, 400, gives=("left",), arrivals=("kept",)),
        Load(there, 400, takes=("left",), arrivals=("come",)),
        left=(0, 4),
        kept=(0, 4),
        come=(0, 4),
    )
    assert (memory.read_bytes, memory.written_bytes) == (400 * UNIT_BYTES, 400 * UNIT_BYTES)
    assert stored > 1.7 * alone


def test_what_comes_later_delays_what_is_under_way() -> None:
    """Two loads of different rows together take longer than each alone; the first waits, too."""
    one, two = (
        Histories(CHANNELS["one"], UNIT_BYTES).first.after(Ask(0, 0, False, 0, 64))
        for _ in range(2)
    )
    both = two.after(Ask(20, 64, False, 1 << 20, 64))
    assert both.times[0][-1] >= one.times[0][-1]
    assert both.times[1][0] > one.times[0][-1] - 64


def test_tiles_that_ask_alike_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[History] = []

    def counted(self: History, ask: Ask, after: Callable[..., History] = History._after) -> History:
        made.append(found := after(self, ask))
        return found

    monkeypatch.setattr(dram.History, "_after", counted)
    every = TileSet(range(4), range(4))
    steps = [Load(every, 64, arrivals=("come",)) for _ in range(3)]
    work = Work(Engine.MATRIX, every, 10, takes=("come",))
    total, memory = cycles(edge_of(4, 4), *steps, work, come=(0, 4))
    assert memory.read_bytes == 16 * 3 * 64 * UNIT_BYTES
    assert total > 0
    assert len(made) == 3


def test_what_a_run_costs_is_told_by_its_bursts() -> None:
    edge, there = edge_of(2, 2), TileSet(range(2), range(2))
    program = program_of(2, 2, [Load(there, 1000, arrivals=("come",))], come=(0, 4))
    formula, modelled = (Cost.of(program, 16, edge, dram=each) for each in (False, True))
    assert formula == Cost(4, 2 * 4)
    assert modelled == Cost(4, (2 + 8 * 1000 // 100) * 4)


def test_chips_tell_their_dram() -> None:
    large, small = (
        offchip_channels(find_tiles(name), 2, 2).dram for name in ("npusim-large", "npusim-small")
    )
    assert large == LARGE
    assert small is not None
    assert small.pseudo_channels == 2
    assert offchip_channels(find_tiles("flat32"), 2, 2).dram is None
