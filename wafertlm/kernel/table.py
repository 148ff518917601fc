"""A table of a chip's tiles: slow tiles, and tiles that must not be used."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tlm.chips import Chip
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.files import read_bytes
from tlm.program import Program
from tlm.program.harvest import Harvest, least_harvest
from tlm.program.remap import on_lines
from tlm.program.unequal import on_unequal_tiles, percent_table
from wafertlm.asked.kernel import KernelOptions
from wafertlm.kernel.options import Levels


@dataclass(frozen=True, slots=True)
class UnequalTiles:
    """A table of tiles, and where on it a program runs.

    Attributes:
        file: Name of the table's file.
        sha256: Of the bytes of that file.
        percent: Shape (rows, columns) of the table: cycles of work, in per cent; 0: disabled.
        harvest: Lines of the table that are out of use.
        rows: Rows of the table on which the program runs.
        cols: Columns of the table on which the program runs.
    """

    file: str
    sha256: str
    percent: NDArray[np.int64]
    harvest: Harvest
    rows: list[int]
    cols: list[int]

    @classmethod
    def read(cls, file: str, chip: Chip, grid: tuple[int, int]) -> Self:
        """The tiles of a chip by a table, and those of them for a grid.

        Raises:
            InputError: if the table cannot be read, is larger than the chip, or has no room for
                the grid beside the lines out of use.
        """
        content = read_bytes(Path(file), file)
        percent = percent_table(content, file)
        rows, cols = percent.shape
        if rows > chip.grid.rows or cols > chip.grid.cols:
            raise InputError(
                f"{file}: found {rows}x{cols} tiles; allowed on '{chip.name}': up to "
                f"{chip.grid.rows}x{chip.grid.cols}"
            )
        try:
            harvest = least_harvest(percent == 0, grid)
        except InputError as error:
            raise InputError(f"--grid: {error} in {file}") from None
        sha256 = hashlib.sha256(content).hexdigest()
        return cls(Path(file).name, sha256, percent, harvest, *harvest.places(grid))

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns from the first tile of the program to the last."""
        return self.rows[-1] - self.rows[0] + 1, self.cols[-1] - self.cols[0] + 1

    @property
    def has_gaps(self) -> bool:
        """Whether lines between those of the program are out of use."""
        return self.grid != (len(self.rows), len(self.cols))

    @property
    def _places(self) -> tuple[list[int], list[int]]:
        """Rows and columns of the program, counted from the first."""
        return [row - self.rows[0] for row in self.rows], [col - self.cols[0] for col in self.cols]

    def program(self, program: Program) -> Program:
        """The same program on these tiles, lines out of use included."""
        slowed = on_unequal_tiles(program, self.percent[np.ix_(self.rows, self.cols)])
        return on_lines(slowed, *self._places)

    def used(self, outcome: Outcome) -> Outcome:
        """The times of the program's tiles; those out of use have none."""
        used = np.zeros(self.grid, dtype=np.int64)
        used[np.ix_(*self._places)] = 1
        return replace(
            outcome,
            engine_end_cycle=outcome.engine_end_cycle * used,
            last_arrival_cycle=outcome.last_arrival_cycle * used,
        )

    @property
    def known_by(self) -> dict[str, str]:
        """What tells it from other tables."""
        return {"file": self.file, "sha256": self.sha256}

    def figures(self) -> dict[str, Any]:
        """What the table costs: fields of the result."""
        disabled, (rows, cols) = int((self.percent == 0).sum()), self.harvest.left
        return {
            "table": self.known_by,
            "disabled_tiles": disabled,
            "harvested_rows": list(self.harvest.rows),
            "harvested_columns": list(self.harvest.cols),
            "lost_tiles": self.percent.size - disabled - rows * cols,
            "left_grid": f"{rows}x{cols}",
            "first_tile": [self.rows[0], self.cols[0]],
            "spanned_grid": "x".join(map(str, self.grid)),
        }


def unequal_tiles(
    options: KernelOptions, levels: Levels, chip: Chip, grid: tuple[int, int]
) -> UnequalTiles | None:
    """The table of tiles, if the options name one.

    Raises:
        InputError: if it cannot be used, or not at these levels.
    """
    if options.tiles is None:
        return None
    if levels.noc == "perf" or levels.whole_tiles:
        raise InputError(
            f"--tiles: found {'network at ' if levels.noc == 'perf' else ''}level {levels.noc}, "
            "whose tiles are all alike; allowed: --level at|lt, --noc rtl|at|lt"
        )
    tiles = UnequalTiles.read(options.tiles, chip, grid)
    if levels.memory is not None and tiles.has_gaps:
        raise InputError(
            f"--memory: found lines of disabled tiles among those used in {options.tiles}; "
            "allowed: beside them"
        )
    return tiles
