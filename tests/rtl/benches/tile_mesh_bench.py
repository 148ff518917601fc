"""Drives a whole mesh of tiles in one piece: loads it, runs it, and notes what its engines do."""

import json
import os
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly

_CLOCK_NS = 2
_RESET_CYCLES = 4
_QUEUES = 4
#: Cycles without a movement after which a run has ended.
_PATIENCE_CYCLES = 100


class Bench:
    """A mesh of tiles and its load ports."""

    def __init__(self, dut: Any, tiles: int) -> None:
        self._dut, self._tiles = dut, tiles
        self._edge = FallingEdge(dut.clk_i)

    async def reset(self) -> None:
        """Bring all but the memories to their initial state."""
        for name in ("rst_ni", "run_i", "load_valid_i", "load_read_i"):
            getattr(self._dut, name).value = 0
        for _ in range(_RESET_CYCLES):
            await self._edge
        self._dut.rst_ni.value = 1

    async def load(self, space: int, lists: list[list[tuple[int, int]]]) -> None:
        """Write each tile's words, given as address and word, a cycle for each of the longest."""
        self._dut.load_space_i.value = space
        for n in range(max(map(len, lists))):
            valid = address = data = 0
            for tile, words in enumerate(lists):
                if n < len(words):
                    valid |= 1 << tile
                    address |= words[n][0] << 16 * tile
                    data |= words[n][1] << 64 * tile
            self._dut.load_valid_i.value = valid
            self._dut.load_address_i.value = address
            self._dut.load_data_i.value = data
            await self._edge
        self._dut.load_valid_i.value = 0
        await self._edge

    async def run(self) -> list[tuple[int, str, int]]:
        """Run to the end; returns the cycle, kind and place of every start, end and arrival."""
        dut, events = self._dut, []
        dut.run_i.value = 1
        cycle = quiet = 0
        while quiet < _PATIENCE_CYCLES:
            await ReadOnly()
            found = [
                (cycle, kind, place)
                for kind, port in (
                    ("start", dut.start_o),
                    ("end", dut.end_o),
                    ("arrival", dut.arrived_o),
                )
                for place in _places(port)
            ]
            events += found
            at_work = any(kind != "arrival" for _, kind, _ in found)
            assert not (at_work and bool(dut.idle_o.value)), "idle in a cycle of a start or an end"
            quiet = 0 if found or bool(dut.busy_o.value) else quiet + 1
            cycle += 1
            await self._edge
        assert bool(dut.idle_o.value), "descriptors are left and nothing moves"
        return events


def _places(port: Any) -> list[int]:
    """Numbers of the bits of a port that are high."""
    bits = port.value.to_unsigned()
    return [place for place in range(len(port)) if bits >> place & 1]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def run_plan(dut: Any) -> None:
    """Run what ``$WAFERTLM_PLAN`` loads, and write what happened to ``$WAFERTLM_RESULT``."""
    plan = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
    Clock(dut.clk_i, _CLOCK_NS, unit="ns").start()
    bench = Bench(dut, plan["tiles"])
    await bench.reset()
    for space, lists in enumerate(plan["loads"]):
        await bench.load(space, lists)
    events = await bench.run()
    Path(os.environ["WAFERTLM_RESULT"]).write_text(json.dumps(events))
