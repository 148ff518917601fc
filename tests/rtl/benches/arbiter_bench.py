"""cocotb bench of the round-robin arbiter (rtl/noc/rr_arbiter.sv)."""

import random
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from tests.rtl.benches.block_check import Seen, check


async def _grant(dut: Any, request: int, advance: bool) -> int:
    """A cycle of requests; the grant."""
    dut.arbiter_request_i.value = request
    dut.arbiter_advance_i.value = advance
    await FallingEdge(dut.clk_i)
    grant = int(dut.arbiter_grant_o.value.to_unsigned())
    await RisingEdge(dut.clk_i)
    return grant


def _first_in_line(request: int, pointer: int, requesters: int) -> int:
    """The first request at or after the pointer, one-hot; zero without a request."""
    for step in range(requesters):
        candidate = (pointer + step) % requesters
        if request >> candidate & 1:
            return 1 << candidate
    return 0


@check
async def every_pointer_and_every_request(dut: Any) -> Seen:
    """The grant is the first request at or after the pointer, and stands until it is used."""
    requesters = len(dut.arbiter_request_i)
    cases = 0
    for last_winner in range(requesters):
        for request in range(2**requesters):
            assert await _grant(dut, 1 << last_winner, True) == 1 << last_winner
            expected = _first_in_line(request, (last_winner + 1) % requesters, requesters)
            for _ in range(3):
                found = await _grant(dut, request, False)
                assert found == expected, f"{request:b} after {last_winner}: granted {found:b}"
            cases += 1
    return {"cases": cases}


@check
async def a_waiting_request_sees_each_other_win_once_at_most(dut: Any) -> Seen:
    """Fairness, whatever the others do: a request stays until it is granted."""
    requesters = len(dut.arbiter_request_i)
    draw = random.Random(cocotb.RANDOM_SEED)
    request, lost = 0, [[0] * requesters for _ in range(requesters)]
    grants = 0
    for _ in range(3000):
        request |= draw.getrandbits(requesters) & draw.getrandbits(requesters)
        used = bool(request) and draw.random() < 0.8
        winner = await _grant(dut, request, used)
        assert winner.bit_count() == bool(request), f"{request:b}: granted {winner:b}"
        assert winner & request == winner, f"{request:b}: granted {winner:b}"
        if not used:
            continue
        number = winner.bit_length() - 1
        for other in range(requesters):
            if request >> other & 1 and other != number:
                lost[other][number] += 1
                assert lost[other][number] <= 1, f"{other} lost twice to {number}"
        lost[number] = [0] * requesters
        request &= ~winner
        grants += 1
    return {"grants": grants}
