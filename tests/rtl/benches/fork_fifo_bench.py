"""cocotb bench of the forking FIFO (rtl/noc/fork_fifo.sv).

In rtl/bench/blocks_bench.sv the low bits of a flit are its packet's branches; the bits above count
flits here.
"""

import random
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from tests.rtl.benches.block_check import Seen, check


@dataclass(slots=True)
class Outputs:
    """What the FIFO shows in a cycle; ``branches`` holds (flit, last), or None if not valid."""

    free: int
    front: int | None
    branches: list[tuple[int, bool] | None]


@dataclass(slots=True)
class Reference:
    """The FIFO by its definition: every flit ever taken, and who has read how many of them.

    A flit's place is free when each branch of its packet has read it; the front packet is that of
    the oldest flit that holds a place.
    """

    depth: int
    branches: int
    flits: list[tuple[int, bool]] = field(default_factory=list)
    gone: int = 0
    read: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.read = [0] * self.branches

    def needed(self) -> list[int]:
        """Branches of the front packet."""
        if self.gone == len(self.flits):
            return []
        return [b for b in range(self.branches) if self.flits[self.gone][0] >> b & 1]

    def outputs(self) -> Outputs:
        """What must be shown in this cycle."""
        offers: list[tuple[int, bool] | None] = [None] * self.branches
        for branch in self.needed():
            position = max(self.read[branch], self.gone)
            done = any(last for _, last in self.flits[self.gone : position])
            if position < len(self.flits) and not done:
                offers[branch] = self.flits[position]
        front = self.flits[self.gone][0] if self.needed() else None
        return Outputs(self.depth - (len(self.flits) - self.gone), front, offers)

    def clock(self, pushed: tuple[int, bool] | None, taken: int) -> None:
        """Let a cycle pass."""
        needed = self.needed()
        for branch in needed:
            if taken >> branch & 1:
                self.read[branch] = max(self.read[branch], self.gone) + 1
        if needed and all(self.read[branch] > self.gone for branch in needed):
            self.gone += 1
        if pushed is not None:
            self.flits.append(pushed)


class Fifo:
    """Drives the FIFO and holds every cycle of it against the reference."""

    def __init__(self, dut: Any) -> None:
        """Bind to the ports."""
        self._dut = dut
        self._width = len(dut.fifo_flit_i)
        self.branches = len(dut.fifo_branch_valid_o)
        self.reference = Reference(3, self.branches)
        self._serial = 0

    def packet(self, mask: int, flits: int) -> list[tuple[int, bool]]:
        """Flits that differ from their neighbours."""
        made = []
        for number in range(flits):
            self._serial += 1
            high = self._serial << self.branches & (1 << self._width) - 1
            made.append((high | mask, number == flits - 1))
        return made

    async def cycle(self, offered: tuple[int, bool] | None, take: int) -> tuple[bool, int]:
        """Offer a flit, take from branches where there is one; what was pushed and taken."""
        dut, expected = self._dut, self.reference.outputs()
        taken = take & sum(1 << b for b, offer in enumerate(expected.branches) if offer)
        dut.fifo_valid_i.value = offered is not None
        if offered is not None:
            dut.fifo_flit_i.value, dut.fifo_last_i.value = offered
        dut.fifo_branch_taken_i.value = taken
        await FallingEdge(dut.clk_i)
        found = self._sample()
        assert found == expected, f"shows {found}, expected {expected}"
        ready = bool(dut.fifo_ready_o.value)
        assert ready == (expected.free > 0), f"ready_o {ready} with {expected.free} places free"
        await RisingEdge(dut.clk_i)
        pushed = offered is not None and ready
        self.reference.clock(offered if pushed else None, taken)
        return pushed, taken

    def _sample(self) -> Outputs:
        dut = self._dut
        valid = dut.fifo_branch_valid_o.value.to_unsigned()
        flits = dut.fifo_branch_flit_o.value.to_unsigned()
        last = dut.fifo_branch_last_o.value.to_unsigned()
        mask = (1 << self._width) - 1
        offers = [
            (flits >> b * self._width & mask, bool(last >> b & 1)) if valid >> b & 1 else None
            for b in range(self.branches)
        ]
        front_valid = bool(dut.fifo_front_valid_o.value)
        front = dut.fifo_front_flit_o.value.to_unsigned() if front_valid else None
        return Outputs(dut.fifo_free_o.value.to_unsigned(), front, offers)


@check
async def random_packets_leave_by_their_branches(dut: Any) -> Seen:
    """Random packets and paces, every output in every cycle as the reference has it."""
    fifo, draw = Fifo(dut), random.Random(cocotb.RANDOM_SEED)
    seen = {"full": 0, "empty": 0, "one_ahead_by_the_depth": 0, "done_waits": 0, "packets": 0}
    queue: list[tuple[int, bool]] = []
    for cycle in range(6000):
        if cycle % 100 == 0:  # a new pace: some branches and the source fast, others slow
            source, *paces = (draw.choice((0.1, 0.5, 1.0)) for _ in range(1 + fifo.branches))
        if not queue:
            queue = fifo.packet(draw.randrange(1, 1 << fifo.branches), draw.randint(1, 7))
            seen["packets"] += 1
        take = sum(1 << b for b, pace in enumerate(paces) if draw.random() < pace)
        offered = queue[0] if draw.random() < source else None
        reference = fifo.reference
        ahead = [reference.read[b] - reference.gone for b in reference.needed()]
        shown = reference.outputs()
        seen["full"] += shown.free == 0
        seen["empty"] += shown.front is None
        seen["one_ahead_by_the_depth"] += bool(ahead) and max(ahead) == reference.depth
        front = reference.flits[reference.gone : reference.gone + max(ahead, default=0)]
        seen["done_waits"] += any(last for _, last in front)
        pushed, _ = await fifo.cycle(offered, take)
        if pushed:
            queue.pop(0)
    return seen


@check
async def a_branch_runs_ahead_by_the_depth_and_no_further(dut: Any) -> Seen:
    """Branch 0 is fast, branch 1 blocked: the places that 1 has not read stay taken."""
    fifo = Fifo(dut)
    queue = fifo.packet(0b011, 5)
    log = []
    for cycle in range(12):
        pushed, taken = await fifo.cycle(queue[0] if queue else None, 0b11 if cycle >= 7 else 0b01)
        if pushed:
            queue.pop(0)
        log.append((int(pushed), taken))
    assert log == [
        (1, 0b00), (1, 0b01), (1, 0b01), (0, 0b01),  # the depth is 3
        (0, 0b00), (0, 0b00), (0, 0b00),
        (0, 0b10), (1, 0b10), (1, 0b11), (0, 0b11), (0, 0b10),
    ], log  # fmt: skip
    return {"cycles": len(log)}


@check
async def an_unblocked_fifo_passes_a_flit_a_cycle(dut: Any) -> Seen:
    """Packet after packet, by changing branches, without an idle cycle."""
    fifo = Fifo(dut)
    queue = [flit for mask in range(1, 8) for flit in fifo.packet(mask, mask % 3 + 1)]
    for number, flit in enumerate(queue):
        pushed, taken = await fifo.cycle(flit, 0b111)
        assert pushed and (taken or number == 0), f"idle at flit {number}"
    return {"flits": len(queue)}
