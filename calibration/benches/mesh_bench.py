"""cocotb bench of a mesh: hands the plan to the replayers, waits, and judges every handshake.

The scoreboard raises on a flit that is lost, doubled, changed, out of order or delivered to a node
that is no destination. A mesh that stands still is a result, not a failure: hangs are studied too.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, First, RisingEdge
from numpy.typing import NDArray

from cosim.spec.data import OWN_LAW, DataLaw
from cosim.spec.flits import flits_of, mask
from cosim.spec.narrow import numbers_of
from tlm.interconnect.packets import Deliveries, Int64s, PacketKind, Packets

_PATIENCE_CYCLES = 1000
_LONGEST_MS = 20  # of 2 ns cycles: ten million
Log = NDArray[np.uint64]


@cocotb.test(timeout_time=_LONGEST_MS, timeout_unit="ms")
async def replay(dut: Any) -> None:
    """Drive the plan of ``$WAFERTLM_PLAN`` and write what was seen to ``$WAFERTLM_RESULT``."""
    plan = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
    columns = np.array(plan["packets"], dtype=np.int64).reshape(-1, len(Packets.__slots__)).T
    packets, cols = Packets(*columns), plan["cols"]
    _write_stimulus(packets, plan["rows"], cols)
    wanted = expected_deliveries(packets, cols, loopback=plan["loopback"])
    expected = int(packets.flits[wanted[:, 0]].sum())

    dut.rst_ni.value = 0
    dut.expected_flits_i.value = expected
    dut.hold_cycles_i.value = plan["hold_cycles"]
    dut.stall_i.value = plan["stall"]
    dut.stall_seed_i.value = plan["stall_seed"]
    dut.patience_cycles_i.value = _PATIENCE_CYCLES
    dut.wave_from_i.value = plan["wave_from"]
    Clock(dut.clk_i, 2, unit="ns").start(start_high=False)
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1
    await First(RisingEdge(dut.done_o), RisingEdge(dut.hung_o))
    hung = bool(dut.hung_o.value)
    cycle = dut.cycle_o.value.to_unsigned()
    await ClockCycles(dut.clk_i, 2)

    log = read_log(Path("handshakes.bin"))
    outcome: dict[str, Any] = {"hung_at_cycle": cycle - _PATIENCE_CYCLES if hung else None}
    if not hung:
        deliveries = judge(packets, log, wanted)
        outcome |= {name: getattr(deliveries, name).tolist() for name in Deliveries.__slots__}
    Path(os.environ["WAFERTLM_RESULT"]).write_text(json.dumps(outcome))


def _write_stimulus(packets: Packets, rows: int, cols: int) -> None:
    """A file a node; the form stands in rtl/bench/replayer.sv."""
    number, reduces = np.arange(len(packets)), packets.reduces
    row = np.where(reduces, packets.root // cols, packets.row_first)
    col = np.where(reduces, packets.root % cols, packets.col_first)
    row_mask = mask(packets.row_first, packets.row_last, packets.row_step, rows)
    col_mask = mask(packets.col_first, packets.col_last, packets.col_step, cols)
    joint = np.where(packets.joint == number, number, 0)
    fields = (packets.cycle, number, packets.flits, packets.kind, row, col)
    table = np.column_stack([*(field.astype(np.uint64) for field in fields), row_mask, col_mask])
    table = np.column_stack([table, joint.astype(np.uint64)])
    for node in range(rows * cols):
        own = table[packets.source == node].tolist()
        text = "\n".join(" ".join(map(str, line)) for line in own)
        Path(f"stimulus_{node}.txt").write_text(text)


def read_log(path: Path) -> Log:
    """Rows (0 injection or 1 ejection, node, cycle, last bit, payload) of a recorded run."""
    words = np.fromfile(path, dtype="<u4").reshape(-1, 4).astype(np.uint64)
    one = np.uint64(1)
    tag, payload = words[:, 0], words[:, 2] << np.uint64(32) | words[:, 3]
    columns = (tag & one, tag >> np.uint64(2), words[:, 1], tag >> one & one, payload)
    return np.stack(columns, axis=1)


def expected_deliveries(packets: Packets, cols: int, *, loopback: bool = True) -> Int64s:
    """Rows (packet, node) of what the network owes, sorted; a reduction's by its joint number."""
    counts = packets.destination_counts()
    number = np.repeat(np.arange(len(packets)), counts)
    nth = np.arange(len(number)) - np.repeat(np.cumsum(counts) - counts, counts)
    wide = ((packets.col_last - packets.col_first) // packets.col_step + 1)[number]
    row = packets.row_first[number] + nth // wide * packets.row_step[number]
    col = packets.col_first[number] + nth % wide * packets.col_step[number]
    node = np.where(packets.reduces[number], packets.root[number], row * cols + col)
    own = (packets.kind[number] == PacketKind.MULTICAST) & (node == packets.source[number])
    rows: Int64s = np.column_stack([number, node])
    return rows if loopback else rows[~own]


def judge(packets: Packets, log: Log, wanted: Int64s, law: DataLaw = OWN_LAW) -> Deliveries:
    """Check every handshake against the packets and condense them.

    Args:
        packets: What was to be sent.
        log: Shape (handshakes, 5): 0 injection or 1 ejection, node, cycle, last bit, payload.
        wanted: Shape (deliveries, 2): packet and node, sorted.
        law: What reductions do with data.

    Raises:
        AssertionError: naming the first packet and node at fault.
    """
    injected = _injections(packets, log[log[:, 0] == 0], law)
    ejected = _ejections(packets, log[log[:, 0] == 1], wanted, law)
    return Deliveries(
        injected[:, 0], injected[:, 1], ejected[:, 0], ejected[:, 1], ejected[:, 2], ejected[:, 3]
    )


def _injections(packets: Packets, log: Log, law: DataLaw) -> Int64s:
    """Rows (head cycle, tail cycle) by packet: each node sends its own in order, flit by flit."""
    order = np.argsort(log[:, 1], kind="stable")
    numbers = np.argsort(packets.source, kind="stable")
    packet, flit, starts = flits_of(packets, numbers)
    node = packets.source[packet.astype(np.int64)].astype(np.uint64)
    log = log[order]
    if len(log) != len(packet) or (log[:, 1] != node).any():
        raise AssertionError(f"flits injected: {len(log)}, expected {len(packet)}")
    data = law.sent(packets, packet, flit)
    _compare(packets, log, packet, flit, data, "injected")
    cycles = np.empty((len(packets), 2), dtype=np.int64)
    cycles[numbers, 0] = log[starts, 2]
    cycles[numbers, 1] = log[starts + packets.flits[numbers] - 1, 2]
    return cycles


def _ejections(packets: Packets, log: Log, wanted: Int64s, law: DataLaw) -> Int64s:
    """Rows (packet, node, head cycle, tail cycle), checked flit by flit."""
    # Stable: flits of one packet at one node stay in the order in which they passed.
    numbers = numbers_of(packets, log[:, 1], log[:, 4], wanted, law)
    order = np.lexsort((log[:, 1], numbers))
    log, numbers = log[order], numbers[order]
    packet, flit, starts = flits_of(packets, wanted[:, 0])
    lengths = packets.flits[wanted[:, 0]]
    node = np.repeat(wanted[:, 1], lengths).astype(np.uint64)
    if len(log) != len(packet) or (numbers != packet).any() or (log[:, 1] != node).any():
        seen = Counter((int(a), int(b)) for a, b in zip(numbers, log[:, 1], strict=True))
        due = {(int(a), int(b)): int(c) for (a, b), c in zip(wanted, lengths, strict=True)}
        # All packets may have come, with a flit twice in the place of another's.
        uneven = [
            f"{seen[each]} for {due[each]} flits of {each}"
            for each in sorted(seen.keys() & due)
            if seen[each] != due[each]
        ]
        raise AssertionError(
            f"flits ejected: {len(log)}, expected {len(packet)}; (packet, node) missing "
            f"{sorted(due.keys() - seen)[:3]}, never sent there {sorted(seen.keys() - due)[:3]}"
            + "".join(f", {each}" for each in uneven[:3])
        )
    data = law.received(packets, packet, flit, log[:, 4])
    _compare(packets, log, packet, flit, data, "ejected")
    cycles = log[:, 2].astype(np.int64)
    return np.column_stack([wanted, cycles[starts], cycles[starts + lengths - 1]])


def _compare(packets: Packets, log: Log, packet: Log, flit: Log, data: Log, what: str) -> None:
    """Payloads and last bits of sorted handshakes against what they must be."""
    last = flit + np.uint64(1) == packets.flits[packet.astype(np.int64)].astype(np.uint64)
    wrong = np.nonzero((data != log[:, 4]) | (last != (log[:, 3] == 1)))[0]
    if len(wrong):
        at = wrong[0]
        raise AssertionError(
            f"packet {packet[at]} {what} at node {log[at, 1]}: flit {flit[at]} has payload "
            f"{int(log[at, 4]):#x}, expected {int(data[at]):#x}, last bit {log[at, 3]}, "
            f"cycle {log[at, 2]}"
        )
