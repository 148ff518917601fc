"""What goes into reductions and what has to come out, against plain numbers."""

from functools import reduce
from operator import and_, or_

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.benches.mesh_bench import expected_deliveries, judge
from cosim.spec.data import OWN_LAW, DataLaw
from cosim.spec.flits import flits_of
from tlm.interconnect.packets import REDUCTIONS, PacketKind, Packets, ReductionGoal, TileSet

ROWS, COLS = 4, 8
WORD = (1 << 64) - 1
LAWS = [DataLaw(*bits) for bits in ((8, 64), (16, 48), (32, 64), (64, 64), (32, 32), (8, 40))]


def result_of(kind: PacketKind, operands: list[int], element_bits: int, chosen: int) -> int:
    """In plain numbers; of a selection the chosen operand."""
    if kind == PacketKind.AND:
        return reduce(and_, operands)
    if kind == PacketKind.COLLECT:
        assert sum(operands) == reduce(or_, operands), "operands have bits in common"
        return sum(operands)
    if kind == PacketKind.SELECT:
        return operands[chosen % len(operands)]
    result, top = 0, 1 << element_bits - 1
    for lsb in range(0, 64, element_bits):
        elements = [value >> lsb & 2 * top - 1 for value in operands]
        signed = [value - 2 * top * (value >= top) for value in elements]
        combined = sum(elements) if kind == PacketKind.SUM else max(signed)
        result |= (combined & 2 * top - 1) << lsb
    return result


@st.composite
def some_packets(draw: st.DrawFn, law: DataLaw) -> Packets:
    """Unicasts, multicasts and whole reductions of all kinds that a law can have."""
    items: list[tuple[int, int, TileSet | ReductionGoal, int]] = []
    kinds = [kind for kind in REDUCTIONS if kind != PacketKind.MAXIMUM or law.element_bits >= 32]
    for _ in range(draw(st.integers(1, 5))):
        where = TileSet(*(range(draw(st.integers(0, n - 1)), n) for n in (ROWS, COLS)))
        flits = draw(st.integers(1, 4))
        if draw(st.booleans()):
            items.append((0, draw(st.integers(0, ROWS * COLS - 1)), where, flits))
            continue
        goal = ReductionGoal(where, draw(st.integers(0, 3)), draw(st.sampled_from(kinds)))
        items += [(0, node, goal, flits) for node in where.nodes(COLS)]
    return Packets.of(items)


def log_of(packets: Packets, law: DataLaw, garbage: int, chosen: int) -> np.ndarray:
    """Handshakes of a network that does as it should; bits that do not count are ``garbage``."""
    packet, flit, _ = flits_of(packets, np.arange(len(packets)))
    data = {
        (int(p), int(f)): int(value)
        for p, f, value in zip(packet, flit, law.sent(packets, packet, flit), strict=True)
    }
    rows = [
        (0, int(packets.source[p]), cycle, int(f == packets.flits[p] - 1), data[int(p), int(f)])
        for cycle, (p, f) in enumerate(zip(packet.tolist(), flit.tolist(), strict=True))
    ]
    counts, cycle = (1 << law.reduced_bits) - 1, len(rows)
    for number, node in expected_deliveries(packets, COLS).tolist():
        for place in range(int(packets.flits[number])):
            value, kind = data[number, place], PacketKind(int(packets.kind[number]))
            if kind in REDUCTIONS:
                members = np.nonzero(packets.joint == number)[0].tolist()
                operands = [data[member, place] for member in members]
                value = result_of(kind, operands, law.element_bits, chosen) & counts
                value |= garbage & WORD & ~counts
            rows.append((1, node, cycle, int(place == packets.flits[number] - 1), value))
            cycle += 1
    return np.array(rows, dtype=np.uint64)


@pytest.mark.parametrize("law", LAWS, ids=str)
@given(data=st.data(), garbage=st.integers(0, WORD), chosen=st.integers(0, 40))
def test_what_is_right_passes_and_a_changed_bit_does_not(
    law: DataLaw, data: st.DataObject, garbage: int, chosen: int
) -> None:
    packets = data.draw(some_packets(law))
    log, wanted = log_of(packets, law, garbage, chosen), expected_deliveries(packets, COLS)
    seen = judge(packets, log, wanted, law)
    assert np.stack([seen.packet, seen.node], axis=1).tolist() == wanted.tolist()
    out = np.nonzero(log[:, 0] == 1)[0]
    first = len(log) - len(out)
    ends = [first + end for end in np.cumsum(packets.flits[wanted[:, 0]]).tolist()]
    assert seen.tail_ejected.tolist() == [end - 1 for end in ends]
    bit = data.draw(st.integers(0, law.reduced_bits - 1))
    log[data.draw(st.sampled_from(out.tolist())), 4] ^= np.uint64(1 << bit)
    with pytest.raises(AssertionError, match="flit"):
        judge(packets, log, wanted, law)


def test_a_flit_that_comes_twice_for_one_that_is_lost_is_told() -> None:
    """As many flits as expected, and of all packets: a buffer that overflows does that."""
    packets = Packets.of([(0, 0, TileSet(range(1), range(1, 2)), 2)] * 2)
    wanted = expected_deliveries(packets, COLS)
    log = log_of(packets, OWN_LAW, 0, 0)
    log[-1, 4] = log[-4, 4]
    told = r"3 for 2 flits of \(0, 1\), 1 for 2 flits of \(1, 1\)"
    with pytest.raises(AssertionError, match=told):
        judge(packets, log, wanted)


def _row(kind: PacketKind, flits: int = 3) -> Packets:
    goal = ReductionGoal(TileSet(range(1), range(4)), 0, kind)
    return Packets.of([(0, node, goal, flits) for node in range(4)])


@pytest.mark.parametrize("law", [OWN_LAW, DataLaw(32, 32)], ids=str)
@pytest.mark.parametrize("declared", REDUCTIONS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("made", REDUCTIONS, ids=lambda kind: kind.name)
def test_another_operation_is_seen(law: DataLaw, declared: PacketKind, made: PacketKind) -> None:
    packets, wanted = _row(declared), np.array([[0, 0]])
    log = log_of(packets, law, 0, 0)
    packet, flit, _ = flits_of(packets, np.arange(4))
    values = law.sent(packets, packet, flit).reshape(4, 3)
    for place in range(3):
        operands = [int(value) for value in values[:, place]]
        # Where operands have no bit in common there are no carries: a sum is right, too.
        equal = declared == PacketKind.COLLECT and made == PacketKind.SUM
        if made == PacketKind.COLLECT:
            result = reduce(or_, operands)
        else:
            result = result_of(made, operands, law.element_bits, 1)
        log[len(log) - 3 + place, 4] = np.uint64(result & int(law.mask))
    if made == declared or equal:
        judge(packets, log, wanted, law)
    else:
        with pytest.raises(AssertionError):
            judge(packets, log, wanted, law)


@pytest.mark.parametrize("kind", [PacketKind.AND, PacketKind.COLLECT, PacketKind.SUM])
def test_an_operand_that_is_left_out_is_seen(kind: PacketKind) -> None:
    goal = ReductionGoal(TileSet(range(2), range(COLS)), 0, kind)
    packets = Packets.of([(0, node, goal, 8) for node in range(2 * COLS)])
    packet, flit, _ = flits_of(packets, np.arange(len(packets)))
    values = OWN_LAW.sent(packets, packet, flit).reshape(len(packets), 8)
    for left_out in range(1, len(packets)):
        whole, part = (
            [result_of(kind, [int(v) for v in rows[:, place]], 32, 0) for place in range(8)]
            for rows in (values, np.delete(values, left_out, axis=0))
        )
        assert whole != part


def test_a_selection_of_two_operands_is_none() -> None:
    packets, wanted = _row(PacketKind.SELECT), np.array([[0, 0]])
    log, other = (log_of(packets, OWN_LAW, 0, chosen) for chosen in (0, 2))
    judge(packets, other, wanted)
    log[-1] = other[-1]
    with pytest.raises(AssertionError, match="packet 0 ejected at node 0: flit 2 has payload"):
        judge(packets, log, wanted)


@pytest.mark.parametrize("law", [DataLaw(32, 32), DataLaw(16, 48)], ids=str)
def test_results_that_overtake_each_other_are_known_by_their_bits(law: DataLaw) -> None:
    row, column = TileSet(range(1), range(4)), TileSet(range(4), range(1))
    packets = Packets.of(
        (0, node, ReductionGoal(where, 0, kind), 2)
        for where, kind in ((row, PacketKind.SUM), (column, PacketKind.SELECT))
        for node in where.nodes(COLS)
    )
    wanted = np.array([[0, 0], [4, 0]])
    log = log_of(packets, law, WORD, 1)
    cycles = log[:, 2].copy()
    swapped = np.r_[np.arange(len(log) - 4), np.arange(len(log) - 2, len(log)), [-4, -3]]
    log = log[swapped]
    log[:, 2] = cycles
    seen = judge(packets, log, wanted, law)
    assert seen.head_ejected.tolist() == [18, 16]
