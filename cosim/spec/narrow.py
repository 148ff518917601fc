"""Which packet each ejected flit belongs to, where adders are too narrow for a packet's number."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.spec.data import OWN_LAW, DataLaw, Operands
from cosim.spec.flits import Words, payload
from tlm.interconnect.packets import Int64s, PacketKind, Packets

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF)


@dataclass(slots=True)
class _Due:
    """A result that a node is to get.

    Attributes:
        joint: Its number.
        ways: All that it may be, a list of flits each, in which only the bits that count are set.
        came: So many of its flits came.
    """

    joint: int
    ways: list[list[int]]
    came: int = 0

    def takes(self, value: int) -> bool:
        """Whether the next flit is this one, which has then come."""
        ways = [way for way in self.ways if self.came < len(way) and way[self.came] == value]
        if ways:
            self.ways, self.came = ways, self.came + 1
        return bool(ways)


def numbers_of(packets: Packets, node: Words, seen: Words, wanted: Int64s, law: DataLaw) -> Words:
    """The packet of each ejected flit, of a result the joint number.

    A number stands in the payload's high half. Where that is not combined a result is known by its
    bits: of those that are due at a node, the first one whose next flit it may be.

    Args:
        packets: All that were sent.
        node: Where each flit came out, in the order of time.
        seen: Its payload.
        wanted: Rows (packet, node) of what is due.
        law: How operands are combined.
    """
    numbers = seen >> _HALF
    if law.reduced_bits == OWN_LAW.reduced_bits:
        return numbers
    due = _due(packets, wanted, law)
    for at in np.nonzero(~_untouched(packets, numbers, seen))[0].tolist():
        value = int(seen[at] & law.mask)
        found = next((one for one in due.get(int(node[at]), ()) if one.takes(value)), None)
        if found is not None:
            numbers[at] = found.joint
    return numbers


def _untouched(packets: Packets, numbers: Words, seen: Words) -> NDArray[np.bool_]:
    """Whether a flit is one of a packet that nothing combines."""
    there = numbers < np.uint64(len(packets))
    number = np.where(there, numbers, np.uint64(0)).astype(np.int64)
    whole = payload(numbers, seen >> np.uint64(16) & _LOW)
    return np.asarray(there & ~packets.reduces[number] & (whole == seen))


def _due(packets: Packets, wanted: Int64s, law: DataLaw) -> dict[int, list[_Due]]:
    """Results by node, in the order of their numbers."""
    if not packets.reduces.any():
        return {}
    operands = Operands.of(packets, law)
    values, results = operands.values & law.mask, operands.results(law) & law.mask
    node_of = dict(wanted.tolist())
    due: dict[int, list[_Due]] = {}
    joints, starts, counts = np.unique(operands.joints, return_index=True, return_counts=True)
    ends = np.r_[operands.first, len(values)][starts + counts]
    for joint, start, flits, end in zip(joints.tolist(), starts, counts, ends, strict=True):
        ways = results[start : start + flits][None]
        if operands.kinds[start] == PacketKind.SELECT:
            ways = values[operands.first[start] : end].reshape(flits, -1).T
        due.setdefault(node_of[joint], []).append(_Due(joint, ways.tolist()))
    return due
