"""Flits of packets in Verilog: which there are, and the data that each carries."""

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.packets import Int64s, Packets

Words = NDArray[np.uint64]


def flits_of(packets: Packets, numbers: Int64s) -> tuple[Words, Words, Int64s]:
    """Packet and flit number of every flit of a list of packets, and where each packet starts."""
    lengths = packets.flits[numbers]
    starts = np.cumsum(lengths) - lengths
    flit = np.arange(lengths.sum()) - np.repeat(starts, lengths)
    return np.repeat(numbers, lengths).astype(np.uint64), flit.astype(np.uint64), starts


def mask(first: Int64s, last: Int64s, step: Int64s, size: int) -> Words:
    """Bits of the marked places of each packet on a side of ``size``."""
    place = np.arange(size)[:, None]
    marked = (place >= first) & (place <= last) & ((place - first) % step == 0)
    bits = np.uint64(1) << place.astype(np.uint64)
    return np.asarray(np.where(marked, bits, np.uint64(0)).sum(axis=0, dtype=np.uint64))


def payload(packet: Words, flit: Words) -> Words:
    """Payload that the replayer gives to flit ``flit`` of packet ``packet``; shapes broadcast."""
    low = flit & np.uint64(0xFFFF)
    swapped = (low & np.uint64(0xFF)) << np.uint64(8) | low >> np.uint64(8)
    check = (packet & np.uint64(0xFFFF)) ^ swapped ^ np.uint64(0xA5C3)
    whole: Words = packet << np.uint64(32) | low << np.uint64(16) | check
    return whole


def operand(packet: Words, flit: Words, element_bits: int = 32) -> Words:
    """The low half of an operand's payload (``arbitrary`` in rtl/bench/replayer.sv).

    Of a 64-bit element its upper bits alone: no sum of a mesh's operands reaches the high half.
    """
    word = np.uint64(0xFFFFFFFF)
    x = (packet * np.uint64(0x9E3779B1) ^ flit * np.uint64(0x85EBCA77)) & word
    x = (x ^ x >> np.uint64(15)) * np.uint64(0x2C1B3C6D) & word
    x = x ^ x >> np.uint64(12)
    return np.asarray(x >> np.uint64(12 if element_bits == 64 else 0), dtype=np.uint64)
