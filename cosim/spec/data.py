"""What reductions do with data: what goes in so that each result is known, and what comes out.

Words are the low 64 bits of payloads. A packet's number stands in the high half, of an operand the
joint number; the low half is arbitrary, or what the operation can bear.
"""

from dataclasses import dataclass

import numpy as np

from cosim.spec.flits import Words, flits_of, operand, payload
from tlm.interconnect.packets import Int64s, PacketKind, Packets

_WORD = 64
_HALF = 32
#: Packets have fewer flits: from here on what is arbitrary is drawn anew.
_AGAIN = np.uint64(1 << 16)


@dataclass(frozen=True, slots=True)
class DataLaw:
    """How a network combines operands.

    Attributes:
        element_bits: Width of the elements of sums and maxima.
        reduced_bits: So many bits of a result count, from the payload's low end.
    """

    element_bits: int = 32
    reduced_bits: int = _WORD

    @property
    def mask(self) -> np.uint64:
        """The bits of a word that count."""
        return np.uint64((1 << self.reduced_bits) - 1)

    def sent(self, packets: Packets, packet: Words, flit: Words) -> Words:
        """Payload with which flit ``flit`` of packet ``packet`` goes in."""
        kinds, data = packets.kind[packet.astype(np.int64)], payload(packet, flit)
        for kind in np.unique(kinds).tolist():
            if kind >= PacketKind.SUM:
                mine = kinds == kind
                data[mine] = self._operands(packets, kind, packet[mine], flit[mine])
        return data

    def _operands(self, packets: Packets, kind: int, packet: Words, flit: Words) -> Words:
        """The same of operands of one kind of reduction."""
        number = packet.astype(np.int64)
        joint = packets.joint[number]
        # An AND and a selection keep what all operands have; else one operand alone has it.
        everywhere = kind in (PacketKind.AND, PacketKind.SELECT)
        named = np.where(everywhere | (joint == number), joint, 0).astype(np.uint64)
        by_element = kind in (PacketKind.SUM, PacketKind.MAXIMUM)
        low = operand(packet, flit, self.element_bits if by_element else _HALF)
        if kind == PacketKind.AND:
            low = _conjunct(joint.astype(np.uint64), flit, _own_places(packets, number, flit))
        if kind == PacketKind.COLLECT:
            low = low & _own_places(packets, number, flit)
        return np.asarray(named << np.uint64(_HALF) | low, dtype=np.uint64)

    def received(self, packets: Packets, packet: Words, flit: Words, seen: Words) -> Words:
        """Payload with which each flit comes out: of a reduction, what its operands amount to.

        Args:
            packets: All that were sent.
            packet: The packets that come out, of a reduction the joint number; sorted, each once.
            flit: Their flits.
            seen: What came out. Of a selection it may be any operand, whole: the one that it is, or
                the first. Bits of results that do not count are taken from here.
        """
        data = self.sent(packets, packet, flit)
        reduced = np.nonzero(packets.reduces[packet.astype(np.int64)])[0]
        if len(reduced) == 0:
            return data
        # Both lists are sorted by joint number and flit; the wanted ones are a reduction's once.
        operands, came = Operands.of(packets, self), seen[reduced]
        result = operands.results(self)
        chosen = operands.kinds == PacketKind.SELECT
        if chosen.any():
            result = np.where(chosen, operands.selected(came, self.mask), result)
        data[reduced] = result & self.mask | came & ~self.mask
        return data


@dataclass(frozen=True, slots=True)
class Operands:
    """The flits of all operands, next to each other by reduction and flit.

    Attributes:
        values: Their payloads, shape (flits of operands,).
        sources: Their packets.
        first: Where each flit of a reduction begins, shape (flits of results,).
        joints: The reduction's number.
        kinds: Its operation.
    """

    values: Words
    sources: Int64s
    first: Int64s
    joints: Int64s
    kinds: Int64s

    @classmethod
    def of(cls, packets: Packets, law: DataLaw) -> "Operands":
        """Those of a list of packets in which there are some."""
        source, index, _ = flits_of(packets, np.nonzero(packets.reduces)[0])
        joint = packets.joint[source.astype(np.int64)]
        order = np.lexsort((index, joint))
        group = np.stack([joint, index.astype(np.int64)], axis=1)[order]
        first = np.nonzero(np.r_[True, (np.diff(group, axis=0) != 0).any(axis=1)])[0]
        joints, values = group[first, 0], law.sent(packets, source, index)[order]
        return cls(values, source[order].astype(np.int64), first, joints, packets.kind[joints])

    def results(self, law: DataLaw) -> Words:
        """What they amount to, flit by flit; nothing of selections."""
        result: Words = np.zeros(len(self.first), dtype=np.uint64)
        for kind in np.unique(self.kinds).tolist():
            if kind != PacketKind.SELECT:
                result = np.where(self.kinds == kind, self._amounts(kind, law), result)
        return result

    def _amounts(self, kind: int, law: DataLaw) -> Words:
        """What they would amount to by an operation."""
        if kind in (PacketKind.AND, PacketKind.COLLECT):
            bitwise = np.bitwise_and if kind == PacketKind.AND else np.bitwise_or
            return np.asarray(bitwise.reduceat(self.values, self.first))
        result: Words = np.zeros(len(self.first), dtype=np.uint64)
        unused = np.uint64(_WORD - law.element_bits)
        for lsb in range(0, _WORD, law.element_bits):
            # An element at the top of a word wraps and compares as one of its own width.
            top = self.values >> np.uint64(lsb) << unused
            if kind == PacketKind.SUM:
                element = np.add.reduceat(top, self.first)
            else:
                element = np.maximum.reduceat(top.view(np.int64), self.first).view(np.uint64)
            result |= element >> unused << np.uint64(lsb)
        return result

    def selected(self, seen: Words, mask: np.uint64) -> Words:
        """Of each reduction the flits of the operand that came out whole, or of the first one.

        Args:
            seen: The flits of results that came out.
            mask: Their bits that count.
        """
        count = len(self.values)
        equal = (self.values ^ np.repeat(seen, np.diff(np.r_[self.first, count]))) & mask == 0
        whole = np.ones(int(self.sources.max()) + 1, dtype=np.bool_)
        np.logical_and.at(whole, self.sources, equal)
        places = np.where(whole[self.sources], np.arange(count), count)
        chosen = np.minimum.reduceat(places, self.first)
        return np.asarray(self.values[np.where(chosen < count, chosen, self.first)])


#: That of the project's mesh.
OWN_LAW = DataLaw()


def _conjunct(joint: Words, flit: Words, own: Words) -> Words:
    """Low half of an operand of an AND: most of its own places it alone clears, some all clear."""
    apart, more, rest = (operand(joint, flit + np.uint64(turn) * _AGAIN) for turn in range(3))
    apart = apart | more
    return np.asarray((own & apart | ~apart & rest) ^ np.uint64((1 << _HALF) - 1))


def _own_places(packets: Packets, number: Int64s, flit: Words) -> Words:
    """Bits of the low half that belong to operands: they take turns, and turn from flit to flit."""
    order = np.argsort(packets.joint, kind="stable")
    joint = packets.joint[order]
    rank = np.empty(len(packets), dtype=np.int64)
    rank[order] = np.arange(len(packets)) - np.searchsorted(joint, joint)
    own, count = rank[number], packets.tile_counts()[number]
    result: Words = np.zeros(len(number), dtype=np.uint64)
    for bit in range(_HALF):
        mine = (bit + flit.astype(np.int64)) % count == own
        result |= mine.astype(np.uint64) << np.uint64(bit)
    return result
