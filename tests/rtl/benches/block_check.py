"""What the benches of single blocks share: clock, reset, and a record of what each check has seen.

A cycle of these benches: inputs change after the rising edge, outputs are read at the falling edge,
when all logic between them has settled, and the next rising edge makes the handshakes happen.
"""

import functools
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

_CLOCK_NS = 2

#: How often a check met the situations that it is about, by their names.
Seen = dict[str, int]


def check(body: Callable[[Any], Awaitable[Seen]]) -> Any:
    """Make a cocotb test that resets the blocks and adds what was seen to ``$WAFERTLM_RESULT``."""

    @cocotb.test(timeout_time=1, timeout_unit="ms")
    @functools.wraps(body)
    async def run(dut: Any) -> None:
        Clock(dut.clk_i, _CLOCK_NS, unit="ns").start()
        await _reset(dut)
        record(body.__name__, await body(dut))

    return run


async def _reset(dut: Any) -> None:
    """Hold all inputs low through a reset."""
    dut.rst_ni.value = 0
    for port in dut:
        if port._name.endswith("_i") and port._name != "clk_i":
            port.value = 0
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1


def record(name: str, seen: Seen) -> None:
    """Add what a check has seen to ``$WAFERTLM_RESULT``."""
    path = Path(os.environ["WAFERTLM_RESULT"])
    known = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(known | {name: seen}))
