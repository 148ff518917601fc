"""Toggles of nets: how often their bits change from cycle to cycle, by a wave of Verilator (VCD).

A net has many names: a port, what it is bound to, its place in a vector of all nodes. So bits that
change in the same cycles count once. Values are those at the end of a cycle, before the clock
rises: clocks stand still then, and what changes twice within a cycle counts once at most.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class _Changes(NamedTuple):
    """Values of a signal: in which cycles they came, and their bits as text, the highest first."""

    bits: int
    cycles: list[int]
    values: list[bytes]


class Toggles(NamedTuple):
    """How often nets change.

    Attributes:
        histories: When each net does: equal numbers for equal cycles.
        counts: How often.
    """

    histories: Words
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        """Of all nets."""
        return int(self.counts.sum())

    def apart(self, other: "Toggles") -> int:
        """Of the nets that change in other cycles than all nets of another run."""
        return int(self.counts[~np.isin(self.histories, other.histories)].sum())


def toggles(wave: Path, half_cycle: int, first_cycle: int = 0) -> Toggles:
    """How often the nets of a wave change.

    Args:
        wave: The file.
        half_cycle: In its unit of time; the clock rises in the middle of each cycle.
        first_cycle: Changes from here on count.
    """
    with wave.open("rb") as lines:
        signals = _signals(lines)
        last = _read(lines, signals, half_cycle)
    marks = np.random.default_rng(0).integers(2**64, size=last + 1, dtype=np.uint64)
    found = [_of_bits(signal, marks, first_cycle) for signal in signals.values() if signal.cycles]
    histories = np.concatenate([np.zeros(0, dtype=np.uint64), *(each for each, _ in found)])
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(each for _, each in found)])
    histories, once = np.unique(histories, return_index=True)
    return Toggles(histories, counts[once])


def _signals(lines: Iterable[bytes]) -> dict[bytes, _Changes]:
    """Signals by their short names, from the head of the file."""
    found: dict[bytes, _Changes] = {}
    for line in lines:
        words = line.split()
        if words[:1] == [b"$enddefinitions"]:
            break
        if words[:1] == [b"$var"] and words[1] != b"real":
            found.setdefault(words[3], _Changes(int(words[2]), [], []))
    return found


def _read(lines: Iterator[bytes], signals: dict[bytes, _Changes], half_cycle: int) -> int:
    """Read what changes; returns the last cycle. What a rising clock changes is of the next one."""
    cycle = 0
    for line in lines:
        kind = line[:1]
        if kind == b"#":
            cycle = -(-int(line[1:]) // (2 * half_cycle))
            continue
        if kind == b"b":
            value, _, name = line[1:].strip().partition(b" ")
        elif kind in (b"0", b"1"):
            value, name = kind, line[1:].strip()
        else:
            continue
        _, cycles, values = signals[name]
        if cycles and cycles[-1] == cycle:
            values[-1] = value
        else:
            cycles.append(cycle)
            values.append(value)
    return cycle


def _of_bits(signal: _Changes, marks: Words, first_cycle: int) -> tuple[Words, NDArray[np.int64]]:
    """Of each bit the sum of the marks of the cycles in which it changes, and how many these are.

    A random number marks each cycle: sums are equal where the cycles are.
    """
    text = b"".join(value.rjust(signal.bits, b"0") for value in signal.values)
    values = np.frombuffer(text, dtype=np.uint8).reshape(-1, signal.bits)
    cycles = np.array(signal.cycles[1:], dtype=np.int64)
    changes = (values[1:] != values[:-1])[cycles >= first_cycle]
    marked = marks[cycles[cycles >= first_cycle]]
    # Sums wrap, of which nothing is lost.
    history = np.where(changes, marked[:, None], np.uint64(0)).sum(axis=0, dtype=np.uint64)
    return history, changes.sum(axis=0, dtype=np.int64)
