"""Transfers from each tile of a set to one of its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program.data import Buffer
from tlm.program.lines import Placement
from tlm.program.operations.base import (
    Ends,
    Grid,
    Indices,
    Operation,
    Tile,
    Unicasts,
    Way,
    indices,
    indices_fault,
    outside_fault,
    turned_tiles,
)
from tlm.program.operations.transfer import Transfer


@dataclass(frozen=True, slots=True)
class Send(Transfer):
    """Every source tile sends ``flits`` to one destination tile of its own.

    The tile in the i-th row and j-th column of ``tiles`` sends to ``(to_rows[i], to_cols[j])``; all
    destinations differ.

    Attributes:
        tiles: Source tiles.
        to_rows: Destination row of each row of the set.
        to_cols: Destination column of each column of the set.
        flits: Length of each transfer.
    """

    tiles: TileSet
    to_rows: Indices
    to_cols: Indices
    flits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "to_rows", indices(self.to_rows))
        object.__setattr__(self, "to_cols", indices(self.to_cols))

    @property
    def near(self) -> Ends:
        """Sources."""
        return Ends.of(self.tiles)

    @property
    def far(self) -> Ends:
        """Destinations."""
        return Ends(self.to_rows, self.to_cols)

    def destination(self, row: int, col: int) -> Tile:
        """Where a source sends to."""
        tiles = self.tiles
        return int(self.to_rows[tiles.rows.index(row)]), int(self.to_cols[tiles.cols.index(col)])

    def ways(self, region: TileSet | None = None) -> Iterator[Way]:
        """See `Transfer`."""
        rows = _pairs(self.tiles.rows, self.to_rows, None if region is None else region.rows)
        cols = _pairs(self.tiles.cols, self.to_cols, None if region is None else region.cols)
        for row, to_row in rows:
            for col, to_col in cols:
                yield Way((row, col), TileSet.tile(to_row, to_col))

    def moves(self) -> Iterator[Unicasts]:
        """See `Transfer`."""
        rows, cols = indices(self.tiles.rows), indices(self.tiles.cols)
        yield Unicasts(rows, cols, self.to_rows, self.to_cols)

    def turned(self) -> "Send":
        """See `Operation`."""
        tiles = turned_tiles(self.tiles)
        return replace(self, tiles=tiles, to_rows=self.to_cols, to_cols=self.to_rows)

    def on_lines(self, lines: Placement) -> Iterator[tuple[Operation, list[TileSet]]]:
        """See `Operation`."""
        for rows, cols, tiles in lines.pieces(self.tiles):
            to_rows = lines.rows.places[self.to_rows[rows]]
            to_cols = lines.cols.places[self.to_cols[cols]]
            yield replace(self, tiles=tiles, to_rows=to_rows, to_cols=to_cols), []

    def _places_fault(self, grid: Grid, buffers: Mapping[str, Buffer]) -> str | None:
        for axis, sources, targets, size in (
            ("rows", self.tiles.rows, self.to_rows, grid[0]),
            ("cols", self.tiles.cols, self.to_cols, grid[1]),
        ):
            fault = indices_fault(f"to_{axis}", targets)
            if fault:
                return fault
            if len(targets) != len(sources):
                return f"to_{axis} has {len(targets)} entries for {len(sources)} {axis}"
            fault = _targets_fault(targets.tobytes(), size, grid)
            if fault:
                return f"to_{axis} {fault}"
        return outside_fault(self.tiles, grid)


def _pairs(sources: range, targets: Indices, near: range | None) -> list[tuple[int, int]]:
    """Sources and targets of which one is among some places."""
    pairs = zip(sources, targets.tolist(), strict=True)
    return [pair for pair in pairs if near is None or pair[0] in near or pair[1] in near]


@lru_cache(256)  # loops send the same way again and again
def _targets_fault(targets: bytes, size: int, grid: Grid) -> str | None:
    """What is wrong with the rows, or columns, of destinations, of so many."""
    places = np.frombuffer(targets, dtype=np.int64)
    if not len(places):
        return None
    if not 0 <= places.min() <= places.max() < size:
        return f"leaves the grid of {grid[0]} x {grid[1]} tiles"
    return "names a destination twice" if np.bincount(places).max() > 1 else None
