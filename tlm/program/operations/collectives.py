"""Transfers that the network copies or combines on the way, along rows or along columns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

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
        lines, across = self.on_grid(roots.rows, roots.cols)
        return lines, np.full(len(lines), across[0], dtype=np.int64)

    def on_grid(self, lines: Any, places: Any) -> tuple[Any, Any]:
        """Rows and columns, given lines and places along them; also the other way round."""
        return (lines, places) if self.by_row else (places, lines)

    def roots_by_place(self) -> Iterator[tuple[int, Indices]]:
        """Places at which roots lie, rising, and the lines of each."""
        lines, places = self.root_lines
        numbers = np.array(lines)
        for place in np.unique(places).tolist():
            yield place, numbers[places == place]

    @property
    def root_tiles(self) -> list[Tile]:
        """Row and column of every root."""
        lines, places = self.root_lines
        return [self.on_grid(*pair) for pair in zip(lines, places.tolist(), strict=True)]

    @property
    def near(self) -> Ends:
        """The roots, or the members if what they send goes inwards."""
        return self._member_ends if self.inwards else self._root_ends

    @property
    def far(self) -> Ends:
        """The members, or the roots."""
        return self._root_ends if self.inwards else self._member_ends

    @property
    def _root_ends(self) -> Ends:
        return Ends(*self.on_grid(*self.root_lines), paired=True)

    @property
    def _member_ends(self) -> Ends:
        return Ends(*self.on_grid(self.root_lines[0], self.segment))

    @property
    def own_cycles(self) -> tuple[int, ...]:
        """Cycles that a law needs to know beside the length."""
        return ()

    def members(self, root: Tile) -> TileSet:
        """The members of one root."""
        line, _ = self.on_grid(*root)
        return TileSet(*self.on_grid(range(line, line + 1), self.segment))

    def ways(self, region: TileSet | None = None) -> Iterator[Way]:
        """See `Transfer`."""
        for row, col in self.root_tiles:
            if region is None or (row in region.rows if self.by_row else col in region.cols):
                yield Way((row, col), self.members((row, col)), self.inwards)

    def moves(self) -> Iterator[Unicasts | Trees]:
        """See `Transfer`."""
        for place, lines in self.roots_by_place():
            yield Trees(self.along, lines, place, self.segment, self.inwards)

    def unicasts(self, lines: Indices, sources: Indices, targets: Indices) -> Unicasts:
        """On each of some lines from each of some places to another."""
        return Unicasts(*self.on_grid(lines, sources), *self.on_grid(lines, targets))

    def turned(self) -> Self:
        """See `Operation`."""
        roots = self.roots if isinstance(self.roots, Roots) else turned_tiles(self.roots)
        return replace(self, roots=roots, along="column" if self.by_row else "row")

    def on_lines(self, lines: Placement) -> Iterator[tuple[Operation, list[TileSet]]]:
        """See `Operation`: each line's part, with the tiles out of use that its way leads by."""
        across, along = self.on_grid(lines.rows, lines.cols)
        numbers, places = self.root_lines
        segment, spanned = along.segment(self.segment)
        for which, there in across.runs(numbers):
            beside = [range(line, line + 1) for line in spanned]
            sets = [TileSet(*self.on_grid(there, at)) for at in beside]
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
        members = TileSet(*self.on_grid(self.root_lines[0], self.segment))
        return outside_fault(members, grid) or self._combining_fault()

    def _combining_fault(self) -> str | None:
        return None

    def _roots_fault(self, grid: Grid) -> str | None:
        roots = self.roots
        if isinstance(roots, TileSet):
            _, across = self.on_grid(roots.rows, roots.cols)
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
    def forks(self) -> bool:
        """See `Transfer`."""
        return len(self.segment) > 1

    @property
    def returns(self) -> bool:
        """Whether each root sends to itself alone."""
        return not self.forks and bool((self.root_lines[1] == self.segment[0]).all())

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
        if self.forks:
            yield from Collective.moves(self)
            return
        for place, lines in self.roots_by_place():
            yield self.unicasts(lines, np.array([place]), indices(self.segment))


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
    def bystander_takes(self) -> tuple[str, ...]:
        """See `Operation`."""
        return self.takes

    @property
    def bystander_gives(self) -> tuple[str, ...]:
        """See `Operation`."""
        return self.gives

    def contributes(self, tile: Tile) -> bool:
        """See `Transfer`."""
        return self.on_grid(*tile)[1] not in self.neutral

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
