"""Reductions whose operands could block each other, because links may see them in two orders.

Every tile issues its operands in program order. All reductions complete if the operands of any two
go in program order on each link, too. For nothing is then before the operands of the earliest one
that is not complete.

Two reductions that share a link keep their order on it in two cases. The tile at its first router
brings an operand of both, or the link before carries both, in order. Else the later one must not
begin before the earlier one is known to be complete. A walk over the program finds that out
(`tlm.check.marks` of a family). Families are the reductions of equal segments: their order is
always kept.

This admits more than the rule of `tlm.interconnect.ordering`, which knows nothing of the order in
which a tile issues operands of different groups.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tlm.check import marks
from tlm.check.report import Finding
from tlm.check.walk import Walk
from tlm.program import Along, Program, Reduce

_MOST_WALKS = 32
_Family = tuple[Along, range]
#: A line and the two ends of a link on it.
_Link = tuple[int, int, int]


@dataclass(slots=True)
class _Reach:
    """How far a family's operands go: outermost roots on each line; beyond the line where none."""

    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]


class Reductions:
    """The families of reductions of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._reaches: dict[_Family, _Reach] = {}

    def add(self, reduce: Reduce) -> None:
        """Take note of a reduction."""
        lines, places = reduce.root_lines
        family = (reduce.along, reduce.segment)
        if family not in self._reaches:
            program = self._program
            size = program.rows if reduce.along == "row" else program.cols
            none = np.full(size, max(program.rows, program.cols))
            self._reaches[family] = _Reach(none, -none)
        reach = self._reaches[family]
        part = np.s_[lines.start : lines.stop : lines.step]
        reach.lowest[part] = np.minimum(reach.lowest[part], places)
        reach.highest[part] = np.maximum(reach.highest[part], places)

    def findings(self) -> list[Finding]:
        """Pairs of reductions that could block each other, one for each pair of families."""
        findings: list[Finding] = []
        walks = 0
        for one, other in combinations(self._reaches, 2):
            where = self._unordered(one, other)
            if where is None:
                continue
            walks += 1
            if walks > _MOST_WALKS:
                message = f"reductions of more than {_MOST_WALKS} pairs of segments share links"
                return [*findings, Finding("order", message)]
            found = self._walk(one, other, where) or self._walk(other, one, where)
            findings += [found] if found else []
        return findings

    def _unordered(self, one: _Family, other: _Family) -> _Link | None:
        """Line and ends of a link on which operands may change their order."""
        if one[0] != other[0]:
            return None  # Links of rows and of columns; a tile's own operands keep their order.
        a, b = self._reaches[one], self._reaches[other]
        reaches = np.stack([a.lowest, b.lowest, a.highest, b.highest], axis=1)
        _, firsts = np.unique(reaches, axis=0, return_index=True)
        for line in sorted(firsts.tolist()):
            lows, highs = reaches[line, :2].tolist(), reaches[line, 2:].tolist()
            up = _unordered_place((one[1], other[1]), highs)
            if up is not None:
                return line, up, up + 1
            down = _unordered_place(
                (_mirrored(one[1]), _mirrored(other[1])), [-place for place in lows]
            )
            if down is not None:
                return line, -down, -down - 1
        return None

    def _walk(self, early: _Family, late: _Family, where: _Link) -> Finding | None:
        """The first reduction of a family that begins while an earlier one may be in flight."""
        by_row = early[0] == "row"
        walk = Walk(self._program, marks.Mode.ROWS if by_row else marks.Mode.COLUMNS)
        last = np.zeros(self._program.rows if by_row else self._program.cols, dtype=np.int64)
        for number, operation in enumerate(self._program.within_tiles()):
            family = (operation.along, operation.segment) if isinstance(operation, Reduce) else None
            if not isinstance(operation, Reduce) or family not in (early, late):
                walk.apply(operation)
                continue
            lines, _ = operation.root_lines
            part = np.s_[lines.start : lines.stop : lines.step]
            if family == early:
                walk.apply(operation, complete=number + 1)
                last[part] = number + 1
                continue
            fault = walk.apply(operation, required=last[part].copy())
            if fault is not None and fault.kind == marks.FaultKind.NOT_KNOWN:
                tile = (fault.row, fault.col)
                other = int(last[tile[0] if by_row else tile[1]]) - 1
                return _finding(operation, number, other, tile, where)
        return None


def _unordered_place(segments: tuple[range, range], ends: list[int]) -> int | None:
    """The first link from place k to k + 1 on which operands on their way up may change order."""
    first, last = max(segment[0] for segment in segments), min(ends)
    before = max(segment[0] for segment in segments) - 1
    ordered = False
    for place in range(first, last):
        shared = place in segments[0] and place in segments[1]
        ordered = shared or (place > before + 1 and ordered)
        if not ordered:
            return place
    return None


def _mirrored(segment: range) -> range:
    return range(-segment[-1], -segment[0] + 1, segment.step)


def _finding(
    operation: Reduce, number: int, other: int, tile: tuple[int, int], where: _Link
) -> Finding:
    line, start, end = where
    ends = [(line, start), (line, end)]
    if operation.along == "column":
        ends = [place[::-1] for place in ends]
    return Finding(
        rule="order",
        message=(
            f"operands may block each other for ever: tile {tile} begins while the reduction of "
            f"operation {other} may be in flight, and on the link from tile {ends[0]} to "
            f"{ends[1]} nothing keeps their order; reductions in flight together need segments "
            "that keep it, such as equal ones, or tokens between them"
        ),
        operation=number,
        label=operation.label,
        tile=tile,
    )
