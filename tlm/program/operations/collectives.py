"""Transfers that the network copies or combines on the way, along rows or along columns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program.arithmetic import Integers, wrap
from tlm.program.data import Buffer
from tlm.program.lines import Placement
from tlm.program.operations.base import (
    Along,
    Ends,
    Grid,
    Indices,
    Operation,
    Tile,
    Trees,
    Unicasts,
    Way,
    indices,
    indices_fault,
    outside_fault,
    turned_tiles,
)
from tlm.program.operations.transfer import Transfer


@dataclass(frozen=True, slots=True)
class Roots:
    """One root on each of some rows (or columns), each at a place of its own.

    Attributes:
        lines: Rows (along rows) or columns (along columns).
        places: Shape (lines,): the root's column, or row, on each.
    """

    lines: range
    places: Indices

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", indices(self.places))


@dataclass(frozen=True, slots=True)
class Collective(Transfer):
    """Every root has a segment of its own row, or of its own column.

    Attributes:
        roots: Root tiles, one a row (along rows) or column: a single column of tiles or a single
            row, or `Roots` at places of their own.
        along: Whether the segments lie in the roots' rows or columns.
        segment: Columns (along rows) or rows (along columns) of the members, in rising order;
            may hold the root.
        flits: Length of each transfer.
    """

    roots: TileSet | Roots
    along: Along
    segment: range
    flits: int

    @property
    def by_row(self) -> bool:
        """Whether it goes along rows."""
        return self.along == "row"

    @property
    def root_lines(self) -> tuple[range, Indices]:
        """Rows (along rows) or columns that have a root, and shape (lines,) its place on each."""
        roots = self.roots
        if isinstance(roots, Roots):
            return roots.lines, roots.places
        lines, across = (roots.rows, roots.cols) if self.by_row else (roots.cols, roots.rows)
        return lines, np.full(len(lines), across[0], dtype=np.int64)

    @property
    def root_tiles(self) -> list[Tile]:
        """Row and column of every root."""
        lines, places = self.root_lines
        pairs = zip(lines, places.tolist(), strict=True)
        return [pair if self.by_row else pair[::-1] for pair in pairs]

    @property
    def root_ends(self) -> Ends:
        """The roots."""
        lines, places = self.root_lines
        return Ends(lines, places, paired=True) if self.by_row else Ends(places, lines, paired=True)

    @property
    def segment_ends(self) -> Ends:
        """The members of all roots."""
        lines, _ = self.root_lines
        return Ends(lines, self.segment) if self.by_row else Ends(self.segment, lines)

    @property
    def own_cycles(self) -> tuple[int, ...]:
        """Cycles that a law needs to know beside the length."""
        return ()

    def members(self, root: Tile) -> TileSet:
        """The members of one root."""
        row, col = root
        if self.by_row:
            return TileSet(range(row, row + 1), self.segment)
        return TileSet(self.segment, range(col, col + 1))

    def ways(self, region: TileSet | None = None) -> Iterator[Way]:
        """See `Transfer`."""
        for row, col in self.root_tiles:
            if region is None or (row in region.rows if self.by_row else col in region.cols):
                yield Way((row, col), self.members((row, col)), self.inwards)

    def moves(self) -> Iterator[Unicasts | Trees]:
        """See `Transfer`."""
        lines, places = self.root_lines
        numbers = np.array(lines)
        for place in np.unique(places).tolist():
            where = numbers[places == place]
            yield Trees(self.along, where, place, self.segment, self.inwards)

    def turned(self) -> Self:
        """See `Operation`."""
        roots = self.roots if isinstance(self.roots, Roots) else turned_tiles(self.roots)
        return replace(self, roots=roots, along="column" if self.by_row else "row")

    def on_lines(self, lines: Placement) -> Iterator[tuple[Operation, list[TileSet]]]:
        """See `Operation`: each line's part, with the tiles out of use that its way leads by."""
        across, along = (lines.rows, lines.cols) if self.by_row else (lines.cols, lines.rows)
        numbers, places = self.root_lines
        segment, spanned = along.segment(self.segment)
        for which, there in across.runs(numbers):
            beside = [range(line, line + 1) for line in spanned]
            sets = [TileSet(there, at) if self.by_row else TileSet(at, there) for at in beside]
            roots = Roots(there, along.places[places[which]])
            piece = replace(self, roots=roots, segment=segment)
            yield piece._passing(along.places, spanned), sets

    def _passing(self, places: Indices, spanned: list[int]) -> Self:
        """The same on some places of its lines, past bystanders at others."""
        return self

    def _places_fault(self, grid: Grid, buffers: Mapping[str, Buffer]) -> str | None:
        fault = self._roots_fault(grid)
        if fault:
            return fault
        if not len(self.segment):
            return "the segment is empty"
        if self.segment.step < 1:
            return f"the segment has a step of {self.segment.step}; allowed: 1 or more"
        lines, segment = self.root_lines[0], self.segment
        members = TileSet(lines, segment) if self.by_row else TileSet(segment, lines)
        return outside_fault(members, grid) or self._combining_fault()

    def _combining_fault(self) -> str | None:
        return None

    def _roots_fault(self, grid: Grid) -> str | None:
        roots = self.roots
        if isinstance(roots, TileSet):
            across = roots.cols if self.by_row else roots.rows
            if len(across) != 1:
                return f"{len(across)} roots share a {self.along}; allowed: 1"
            return outside_fault(roots, grid)
        fault = indices_fault("places", roots.places)
        if fault:
            return fault
        if len(roots.places) != len(roots.lines):
            return f"roots has {len(roots.places)} places for {len(roots.lines)} {self.along}s"
        size = grid[1] if self.by_row else grid[0]
        if not len(roots.lines) or not 0 <= roots.places.min() <= roots.places.max() < size:
            return f"roots leave the grid of {grid[0]} x {grid[1]} tiles"
        return None


@dataclass(frozen=True, slots=True)
class Multicast(Collective):
    """Every root tile sends ``flits`` to the members of its segment.

    A segment of one tile is reached as by `Send`.
    """

    @property
    def near(self) -> Ends:
        """The roots."""
        return self.root_ends

    @property
    def far(self) -> Ends:
        """The members."""
        return self.segment_ends

    @property
    def forks(self) -> bool:
        """See `Transfer`."""
        return len(self.segment) > 1

    @property
    def bystander_takes(self) -> tuple[str, ...]:
        """See `Operation`."""
        return self.slots

    @property
    def bystander_gives(self) -> tuple[str, ...]:
        """See `Operation`."""
        return self.arrivals

    def moves(self) -> Iterator[Unicasts | Trees]:
        """See `Transfer`: to a single tile unicasts."""
        for tree in Collective.moves(self):
            assert isinstance(tree, Trees)
            if self.forks:
                yield tree
                continue
            place, target = np.array([tree.place]), np.array(self.segment)
            if self.by_row:
                yield Unicasts(tree.lines, place, tree.lines, target)
            else:
                yield Unicasts(place, tree.lines, target, tree.lines)


@dataclass(frozen=True, slots=True)
class Reduce(Collective):
    """The members of each root's segment send ``flits``, which the network combines.

    The mirror image of `Multicast`: every contributor begins on its own, and the root gets one
    block, element by element the sum or the maximum of theirs. ``slots`` are taken at the root
    once; they reach every contributor as credits.

    Attributes:
        operation: ``sum`` (wraps) or ``maximum``.
        neutral: Columns (along rows) or rows of the segment whose contributions change nothing:
            zeros for a sum, least values for a maximum, instead of ``source``.
    """

    operation: Literal["sum", "maximum"] = "sum"
    neutral: tuple[int, ...] = ()

    inwards: ClassVar[bool] = True

    @property
    def near(self) -> Ends:
        """The contributors."""
        return self.segment_ends

    @property
    def far(self) -> Ends:
        """The roots."""
        return self.root_ends

    @property
    def bystander_takes(self) -> tuple[str, ...]:
        """See `Operation`."""
        return self.takes

    @property
    def bystander_gives(self) -> tuple[str, ...]:
        """See `Operation`."""
        return self.gives

    def contributes(self, tile: Tile) -> bool:
        """See `Transfer`."""
        return tile[1 if self.by_row else 0] not in self.neutral

    def combined(self, blocks: list[Integers], bits: int) -> Integers:
        """See `Transfer`."""
        operands = np.stack(blocks)
        if self.operation == "sum":
            return wrap(operands.sum(axis=0), bits)
        most: Integers = operands.max(axis=0)
        return most

    def _passing(self, places: Indices, spanned: list[int]) -> Self:
        neutral = sorted([*places[list(self.neutral)].tolist(), *spanned])
        return replace(self, neutral=tuple(neutral))

    def _combining_fault(self) -> str | None:
        if self.operation not in ("sum", "maximum"):
            return f"unknown reduction '{self.operation}'; known: sum, maximum"
        others = set(self.segment) - {*self.neutral} if self.neutral else self.segment
        if not others or not {*self.neutral} <= {*self.segment}:
            return f"neutral is {list(self.neutral)}; allowed: some of the segment, but not all"
        return None
