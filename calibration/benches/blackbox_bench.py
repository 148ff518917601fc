"""cocotb bench of any mesh: gives clock and reset, and waits until nothing moves.

What goes in stands in files that rtl/bench/flit_replayer.sv reads, what came out in
``handshakes.bin``; calibration/routers/mesh.py writes and judges them.
"""

import json
import os
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from calibration.benches.stalling import begin_watch, keep_watch

_PATIENCE_CYCLES = 1000
#: A mesh may need some cycles to leave its reset, as one does that synchronises it.
_SETTLE_CYCLES = 16
_NEVER = 2**32 - 1
_LONGEST_MS = 25  # of 2 ns cycles: more than the longest plan asks for

begin_watch()  # the first evaluation comes before the bench


@cocotb.test(timeout_time=_LONGEST_MS, timeout_unit="ms")
async def replay(dut: Any) -> None:
    """Run the plan of ``$WAFERTLM_PLAN`` and write how it ended to ``$WAFERTLM_RESULT``."""
    plan = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
    dut.mesh_rst_ni.value = 0
    dut.rst_ni.value = 0
    dut.hold_i.value = sum(1 << node for node in plan["held_nodes"])
    dut.hold_until_cycle_i.value = _NEVER
    dut.patience_cycles_i.value = _PATIENCE_CYCLES
    dut.most_cycles_i.value = plan["most_cycles"]
    dut.most_flits_i.value = plan["most_flits"]
    dut.wave_from_i.value = plan["wave_from"]
    Clock(dut.clk_i, 2, unit="ns").start(start_high=False)
    cocotb.start_soon(keep_watch(dut.clk_i))
    await ClockCycles(dut.clk_i, plan["reset_cycles"])
    dut.mesh_rst_ni.value = 1
    await ClockCycles(dut.clk_i, _SETTLE_CYCLES)
    dut.rst_ni.value = 1
    await RisingEdge(dut.done_o)
    outcome = {"quiet": bool(dut.quiet_o.value), "cycles": dut.cycle_o.value.to_unsigned()}
    await ClockCycles(dut.clk_i, 2)
    Path(os.environ["WAFERTLM_RESULT"]).write_text(json.dumps(outcome))
