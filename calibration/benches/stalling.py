"""Ends a simulator that does not come back: in Verilog that loops within a cycle nothing else runs.

The signal ends the process whatever it is doing; calibration/simulator.py says so.
"""

import os
import signal
from typing import Any

from cocotb.triggers import ClockCycles

_CYCLES = 1000


def begin_watch() -> None:
    """Have the process ended when ``$WAFERTLM_STALL_SECONDS`` have passed."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(os.environ["WAFERTLM_STALL_SECONDS"]))


async def keep_watch(clock: Any) -> None:
    """Begin anew as long as cycles pass."""
    while True:
        begin_watch()
        await ClockCycles(clock, _CYCLES)
