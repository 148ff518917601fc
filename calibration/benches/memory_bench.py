"""cocotb bench of a memory channel: hands the plan to the replayer, waits, and judges the record.

It raises on a request that is lost or answered twice, on phases out of order, on data that a memory
without any timing would not give, on requests to one address that change places, and on a command
against the rules of calibration/memory/dram_rules.py. A channel that stands still is a result.
"""

import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, First, RisingEdge

from calibration.memory.dram_rules import Command, Kind, violations
from cosim.memory.channel import Timings

_LONGEST_MS = 4  # of 2 ns cycles: two million
_PHASES = ("request offered", "request taken", "response offered", "response taken")


@dataclass(frozen=True, slots=True)
class Handshake:
    """A line of the record: one phase of one request.

    Attributes:
        phase: 0 request offered, 1 taken, 2 response offered, 3 taken.
        cycle: When.
        request: Number of the request.
        write: Whether it is a write.
        data: What its data lines show, in hexadecimal.
    """

    phase: int
    cycle: int
    request: int
    write: bool
    data: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the plan.

    Attributes:
        cycle: Cycle before which it is not offered.
        write: Whether it is a write.
        address: In bursts.
        data: What a write writes, in hexadecimal.
    """

    cycle: int
    write: bool
    address: int
    data: str


@cocotb.test(timeout_time=_LONGEST_MS, timeout_unit="ms")
async def replay(dut: Any) -> None:
    """Drive the plan of ``$WAFERTLM_PLAN`` and write what was seen to ``$WAFERTLM_RESULT``."""
    plan = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
    timings = Timings(**plan["parameters"]["timings"])
    asked = requests_of(plan)
    lines = (f"{r.cycle} {int(r.write)} {r.address:x} {r.data}" for r in asked)
    Path("requests.txt").write_text("".join(f"{line}\n" for line in lines))
    patience = 2 * (timings.t_rfc + timings.refresh_delay_cycles()) + 1000

    dut.rst_ni.value = 0
    dut.requests_i.value = len(asked)
    dut.outstanding_i.value = plan["outstanding"]
    dut.hold_cycles_i.value = plan["hold_cycles"]
    dut.stall_i.value = plan["stall"]
    dut.stall_seed_i.value = plan["stall_seed"]
    dut.least_cycles_i.value = plan["least_cycles"]
    dut.patience_cycles_i.value = patience
    Clock(dut.clk_i, 2, unit="ns").start(start_high=False)
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1
    await First(RisingEdge(dut.done_o), RisingEdge(dut.hung_o))
    hung = bool(dut.hung_o.value)
    cycle = dut.cycle_o.value.to_unsigned()
    await ClockCycles(dut.clk_i, 2)

    commands = read_commands(Path("commands.txt"))
    problems = violations(commands, timings, cycle)
    assert not problems, f"{len(problems)} against the rules, first: {problems[:3]}"
    outcome: dict[str, Any] = {"hung_at_cycle": cycle - patience if hung else None}
    if not hung:
        phases = judge(asked, read_handshakes(Path("handshakes.txt")))
        judge_commands(asked, commands, plan["parameters"])
        outcome |= {"phases": phases, "commands": commands, "cycles": cycle}
    Path(os.environ["WAFERTLM_RESULT"]).write_text(json.dumps(outcome))


def requests_of(plan: dict[str, Any]) -> list[Asked]:
    """The requests of a plan, with data drawn for all; a read's are not to be seen again."""
    draw = random.Random(plan["data_seed"])
    bits = plan["parameters"]["data_width"]
    return [
        Asked(cycle, bool(write), address, _hexadecimal(draw.getrandbits(bits), bits))
        for cycle, write, address in plan["requests"]
    ]


def _hexadecimal(value: int, bits: int) -> str:
    """As Verilog writes a vector of so many bits."""
    return f"{value:0{(bits + 3) // 4}x}"


def read_handshakes(path: Path) -> list[Handshake]:
    """The record of handshakes; its form stands in rtl/bench/memory_bench.sv."""
    fields = (line.split() for line in path.read_text().splitlines())
    return [
        Handshake(int(phase), int(cycle), int(request), write == "1", data)
        for phase, cycle, request, write, data in fields
    ]


def read_commands(path: Path) -> list[Command]:
    """The record of commands; its form stands in rtl/bench/memory_bench.sv."""
    rows = ([int(field) for field in line.split()] for line in path.read_text().splitlines())
    return [Command(row[0], Kind(row[1]), *row[2:]) for row in rows]


def judge(asked: Sequence[Asked], handshakes: Sequence[Handshake]) -> list[list[int]]:
    """Check phases and data, and return the cycles of each phase over the requests.

    A read shows what the last write to its address before it wrote, in the order of taking; what no
    write has written may be anything. A write is answered with zeros.

    Raises:
        AssertionError: naming the request at fault.
    """
    seen: list[list[Handshake | None]] = [[None] * len(asked) for _ in _PHASES]
    for shake in handshakes:
        name = f"request {shake.request}: {_PHASES[shake.phase]} at {shake.cycle}"
        assert shake.request < len(asked), f"{name}, which nobody asked for"
        assert seen[shake.phase][shake.request] is None, f"{name} a second time"
        assert shake.write == asked[shake.request].write, f"{name} in the wrong direction"
        seen[shake.phase][shake.request] = shake
    cells: dict[int, str] = {}
    for number, request in enumerate(asked):
        shakes = [one for phase in seen if (one := phase[number]) is not None]
        missing = [_PHASES[n] for n, phase in enumerate(seen) if phase[number] is None]
        assert not missing, f"request {number}: no {missing[0]}"
        offered, taken, appeared, answered = (shake.cycle for shake in shakes)
        order = f"{offered}, {taken}, {appeared}, {answered}"
        assert offered <= taken < appeared <= answered, f"request {number}: phases at {order}"
        assert offered >= request.cycle, f"request {number}: offered at {offered}"
        _judge_data(number, request, shakes, cells)
    return [[one.cycle for one in phase if one is not None] for phase in seen]


def _judge_data(
    number: int, request: Asked, shakes: Sequence[Handshake], cells: dict[int, str]
) -> None:
    """Requests come here in the order of taking, which is that of their numbers."""
    appeared, answered = shakes[2].data, shakes[3].data
    assert appeared == answered, f"request {number}: response changed while it was refused"
    if request.write:
        assert int(answered, 16) == 0, f"request {number}: a write is answered with {answered}"
        cells[request.address] = request.data
    elif request.address in cells:
        expected = cells[request.address]
        assert answered == expected, f"request {number}: read {answered}, expected {expected}"


def judge_commands(
    asked: Sequence[Asked], commands: Sequence[Command], parameters: dict[str, Any]
) -> None:
    """Every request has one column command, to its place; those of an address come in order.

    Raises:
        AssertionError: naming the request at fault.
    """
    served: set[int] = set()
    youngest: dict[int, int] = {}
    for command in commands:
        if command.kind not in (Kind.READ, Kind.WRITE):
            continue
        number, name = command.request, f"request {command.request}"
        assert number not in served, f"{name}: served a second time at {command.cycle}"
        served.add(number)
        request = asked[number]
        assert request.write == (command.kind is Kind.WRITE), f"{name}: got a {command.kind.name}"
        address = command.row
        for part, count in (
            (command.bank, parameters["banks_per_group"]),
            (command.column, 1 << parameters["col_width"]),
            (command.group, parameters["bank_groups"]),
        ):
            address = address * count + part
        assert address == request.address, f"{name}: served at address {address}"
        before = youngest.get(address, -1)
        assert before < number, f"{name}: passed by request {before} of its address"
        youngest[address] = number
    assert len(served) == len(asked), f"{len(asked) - len(served)} requests without a command"
