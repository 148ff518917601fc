"""cocotb bench of a mesh: hands the plan to the replayers, waits, and judges every handshake.

The scoreboard raises on a flit that is lost, doubled, changed, out of order or delivered to a node
that is no destination. A mesh that stands still is a result, not a failure: hangs are studied too.
"""

import json
import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, First, RisingEdge
from numpy.typing import NDArray

from tlm.interconnect.packets import Deliveries, Packets

_PATIENCE_CYCLES = 1000
_LONGEST_MS = 20  # of 2 ns cycles: ten million
Log = NDArray[np.uint64]


@cocotb.test(timeout_time=_LONGEST_MS, timeout_unit="ms")
async def replay(dut: Any) -> None:
    """Drive the plan of ``$WAFERTLM_PLAN`` and write what was seen to ``$WAFERTLM_RESULT``."""
    plan = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
    packets = Packets(*np.array(plan["packets"], dtype=np.int64).reshape(-1, 10).T)
    _write_stimulus(packets, plan["rows"], plan["cols"])
    expected = int((packets.flits * packets.destination_counts()).sum())

    dut.rst_ni.value = 0
    dut.expected_flits_i.value = expected
    dut.hold_cycles_i.value = plan["hold_cycles"]
    dut.stall_i.value = plan["stall"]
    dut.stall_seed_i.value = plan["stall_seed"]
    dut.patience_cycles_i.value = _PATIENCE_CYCLES
    Clock(dut.clk_i, 2, unit="ns").start(start_high=False)
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1
    await First(RisingEdge(dut.done_o), RisingEdge(dut.hung_o))
    hung = bool(dut.hung_o.value)
    cycle = dut.cycle_o.value.to_unsigned()
    await ClockCycles(dut.clk_i, 2)

    log = np.loadtxt("handshakes.txt", dtype=np.uint64, ndmin=2)
    outcome: dict[str, Any] = {"hung_at_cycle": cycle - _PATIENCE_CYCLES if hung else None}
    if not hung:
        deliveries = judge(packets, log, plan["cols"])
        outcome |= {name: getattr(deliveries, name).tolist() for name in Deliveries.__slots__}
    Path(os.environ["WAFERTLM_RESULT"]).write_text(json.dumps(outcome))


def _write_stimulus(packets: Packets, rows: int, cols: int) -> None:
    """A file a node; the form stands in rtl/bench/replayer.sv."""
    lines: dict[int, list[str]] = {node: [] for node in range(rows * cols)}
    for number in range(len(packets)):
        where = packets.destinations(number)
        row_mask = sum(1 << row for row in where.rows)
        col_mask = sum(1 << col for col in where.cols)
        fields = (packets.cycle[number], number, packets.flits[number], packets.multicast[number])
        text = " ".join(str(int(field)) for field in (*fields, row_mask, col_mask))
        lines[int(packets.source[number])].append(text)
    for node, content in lines.items():
        Path(f"stimulus_{node}.txt").write_text("\n".join(content))


def payload(packet: NDArray[np.uint64], flit: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Payload that the replayer gives to flit ``flit`` of packet ``packet``; shapes broadcast."""
    low = flit & np.uint64(0xFFFF)
    swapped = (low & np.uint64(0xFF)) << np.uint64(8) | low >> np.uint64(8)
    check = (packet & np.uint64(0xFFFF)) ^ swapped ^ np.uint64(0xA5C3)
    whole: NDArray[np.uint64] = packet << np.uint64(32) | low << np.uint64(16) | check
    return whole


def judge(packets: Packets, log: Log, cols: int) -> Deliveries:
    """Check every handshake against the packets and condense them.

    Args:
        packets: What was to be sent.
        log: Shape (handshakes, 5): 0 injection or 1 ejection, node, cycle, last bit, payload.
        cols: Columns of the mesh.

    Raises:
        AssertionError: naming the first packet and node at fault.
    """
    expected_in: list[tuple[int, int]] = []
    expected_out: list[tuple[int, int]] = []
    for number in range(len(packets)):
        expected_in.append((number, int(packets.source[number])))
        expected_out.extend((number, node) for node in packets.destinations(number).nodes(cols))
    injected = _streams(packets, log[log[:, 0] == 0], expected_in, "injected")
    ejected = _streams(packets, log[log[:, 0] == 1], expected_out, "ejected")
    return Deliveries(
        injected[:, 2], injected[:, 3], ejected[:, 0], ejected[:, 1], ejected[:, 2], ejected[:, 3]
    )


def _streams(
    packets: Packets, log: Log, expected: list[tuple[int, int]], what: str
) -> NDArray[np.int64]:
    """Rows (packet, node, head cycle, tail cycle) of the streams, checked flit by flit."""
    numbers = log[:, 4] >> np.uint64(32)
    # Stable: flits of one packet at one node stay in the order in which they passed.
    order = np.lexsort((log[:, 1], numbers))
    log, numbers = log[order], numbers[order].astype(np.int64)
    want = np.array(sorted(expected), dtype=np.int64).reshape(-1, 2)
    lengths = packets.flits[want[:, 0]]
    keys = np.stack([numbers, log[:, 1].astype(np.int64)], axis=1)
    wanted_keys = np.repeat(want, lengths, axis=0)
    if len(keys) != len(wanted_keys) or (keys != wanted_keys).any():
        seen = {(int(a), int(b)) for a, b in keys}
        missing = sorted(set(map(tuple, want.tolist())) - seen)[:3]
        foreign = sorted(seen - set(map(tuple, want.tolist())))[:3]
        raise AssertionError(
            f"flits {what}: {len(keys)}, expected {len(wanted_keys)}; (packet, node) missing "
            f"{missing}, never sent there {foreign}"
        )
    starts = np.cumsum(lengths) - lengths
    flit = np.arange(len(keys)) - np.repeat(starts, lengths)
    data = payload(numbers.astype(np.uint64), flit.astype(np.uint64))
    last = flit == np.repeat(lengths, lengths) - 1
    wrong = np.nonzero((data != log[:, 4]) | (last != (log[:, 3] == 1)))[0]
    if len(wrong):
        raise AssertionError(
            f"packet {numbers[wrong[0]]} {what} at node {log[wrong[0], 1]}: flit {flit[wrong[0]]} "
            f"has payload {int(log[wrong[0], 4]):#x}, expected {int(data[wrong[0]]):#x}"
        )
    cycles = log[:, 2].astype(np.int64)
    return np.column_stack([want, cycles[starts], cycles[starts + lengths - 1]])
