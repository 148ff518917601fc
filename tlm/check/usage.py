"""What operations use of the tiles: engines, buffers, distances."""

import numpy as np
from numpy.typing import NDArray

from tlm.check.report import Parallelism
from tlm.check.walk import root_indices
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Program, Reduce, Send, TileOperation, Work, root_lines
from tlm.program.data import buffer_names

_COMPUTING = (Engine.MATRIX, Engine.VECTOR)


class Usage:
    """Busy cycles of each tile, and the buffers that operations touch there.

    Memory per tile: 8 bytes, and 1 for each buffer.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._shape = (program.rows, program.cols)
        self._busy_cycles = np.zeros(self._shape, dtype=np.int64)
        self._touched: dict[str, NDArray[np.bool_]] = {}
        self._seen: set[tuple[object, ...]] = set()

    def add(self, operation: TileOperation) -> None:
        """Take note of an operation."""
        if isinstance(operation, Work):
            part = _part(operation.tiles)
            if operation.engine in _COMPUTING:
                self._busy_cycles[part] += operation.cycles
            if operation.task is not None:
                for name in buffer_names(operation.task):
                    self._touch(name, operation.tiles)
            return
        if operation.source is None or operation.target is None:
            return
        if isinstance(operation, Send):
            self._touch(operation.source, operation.tiles)
            self._touch_at(operation.target, (operation.to_rows, operation.to_cols), product=True)
            return
        ends = (operation.source, operation.target)
        at_roots, at_segments = ends[::-1] if isinstance(operation, Reduce) else ends
        self._touch_at(at_roots, root_indices(operation), product=False)
        lines, _ = root_lines(operation)
        by_row = operation.along == "row"
        self._touch(
            at_segments,
            TileSet(lines, operation.segment) if by_row else TileSet(operation.segment, lines),
        )

    def parallelism(self) -> Parallelism:
        """Tiles that work, and how evenly."""
        busy = self._busy_cycles
        most = int(busy.max())
        return Parallelism(
            tiles=busy.size,
            busy_share=float(np.count_nonzero(busy) / busy.size),
            balance=float(busy.mean()) / most if most else 0.0,
        )

    def bytes_used(self) -> NDArray[np.int64]:
        """Bytes of all buffers touched, shape (rows, columns)."""
        used = np.zeros(self._shape, dtype=np.int64)
        for name, touched in self._touched.items():
            used += touched * self._program.buffers[name].size_bytes
        return used

    def _touch(self, name: str, tiles: TileSet) -> None:
        key = (self._whole(name), tiles)
        if key not in self._seen:
            self._seen.add(key)
            self._mask(name)[_part(tiles)] = True

    def _touch_at(
        self, name: str, places: tuple[NDArray[np.int64], NDArray[np.int64]], *, product: bool
    ) -> None:
        key = (self._whole(name), product, places[0].tobytes(), places[1].tobytes())
        if key not in self._seen:
            self._seen.add(key)
            self._mask(name)[np.ix_(*places) if product else places] = True

    def _mask(self, name: str) -> NDArray[np.bool_]:
        return self._touched.setdefault(self._whole(name), np.zeros(self._shape, dtype=np.bool_))

    def _whole(self, name: str) -> str:
        """The buffer of which another is a part, or itself."""
        return self._program.buffers[name].within or name


def longest_hops(operation: TileOperation) -> int | None:
    """Hops to the farthest tile of a transfer; None if nothing is moved."""
    if isinstance(operation, Work):
        return None
    if isinstance(operation, Send):
        tiles = operation.tiles
        down = np.abs(operation.to_rows - np.array(tiles.rows)).max()
        return int(down + np.abs(operation.to_cols - np.array(tiles.cols)).max())
    _, places = root_lines(operation)
    ends = np.array([operation.segment[0], operation.segment[-1]])
    return int(np.abs(places[:, None] - ends).max())


def transfers(operation: TileOperation) -> int:
    """Transfers that an operation stands for: its sources, of reductions its roots."""
    if isinstance(operation, Work):
        return 0
    if isinstance(operation, Send):
        return len(operation.tiles)
    return len(root_lines(operation)[0])


def _part(tiles: TileSet) -> tuple[slice, slice]:
    rows, cols = tiles.rows, tiles.cols
    return (
        slice(rows.start, rows.stop, rows.step),
        slice(cols.start, cols.stop, cols.step),
    )
