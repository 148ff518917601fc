"""cocotb bench of the FIFO (rtl/noc/fifo.sv), in rtl/bench/blocks_bench.sv of depth three."""

import random
from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from tests.rtl.benches.block_check import Seen, check

_DEPTH = 3


@check
async def random_pushes_and_pops_are_those_of_a_queue(dut: Any) -> Seen:
    """Every output in every cycle; a full FIFO takes nothing, though an entry leaves it."""
    draw, queue = random.Random(cocotb.RANDOM_SEED), deque[int]()
    seen = {"full": 0, "empty": 0, "pop_of_full": 0, "pushed_and_popped": 0, "passed": 0}
    pace, source = 1.0, 1.0
    for cycle in range(4000):
        if cycle % 50 == 0:
            source, pace = draw.choice((0.2, 0.6, 1.0)), draw.choice((0.2, 0.6, 1.0))
        offer, take, data = draw.random() < source, draw.random() < pace, draw.getrandbits(8)
        dut.queue_valid_i.value = offer
        dut.queue_data_i.value = data
        dut.queue_ready_i.value = take
        await FallingEdge(dut.clk_i)
        full = len(queue) == _DEPTH
        shown = (bool(dut.queue_ready_o.value), dut.queue_free_o.value.to_unsigned())
        assert shown == (not full, _DEPTH - len(queue)), f"{shown} with {len(queue)} entries"
        assert bool(dut.queue_valid_o.value) == bool(queue), f"valid with {len(queue)} entries"
        if queue:
            front = dut.queue_data_o.value.to_unsigned()
            assert front == queue[0], f"{front}, expected {queue[0]}"
        await RisingEdge(dut.clk_i)
        push, pop = offer and not full, take and bool(queue)
        seen["full"] += full
        seen["empty"] += not queue
        seen["pop_of_full"] += full and pop and offer
        seen["pushed_and_popped"] += push and pop
        if pop:
            queue.popleft()
        if push:
            queue.append(data)
            seen["passed"] += 1
    return seen
