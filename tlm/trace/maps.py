"""Maps: how many flits of a program cross each link of the mesh, whenever they do."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.lines import leaving, line_loads
from tlm.interconnect.packets import Int64s
from tlm.program import Program
from tlm.program.operations import Transfer, Trees, Unicasts

#: Flits that leave each place of a line upwards (row 0) and downwards (row 1), as bytes of an array
#: of shape (2, places).
_Loads = bytes


def link_flits(program: Program, *, y_first: bool = False) -> dict[str, NDArray[np.int64]]:
    """Flits over the links to the north, east, south and west of each tile, shape (rows, columns).

    A multicast crosses each link of its tree once, and so does what a reduction has so far. The
    counts hold at every level. Time and memory depend on the tiles and on the operations that
    differ, not on how often they are repeated.

    Args:
        program: Whose transfers are counted.
        y_first: Packets go along the column first, else along the row.
    """
    lines = _Lines(program, y_first)
    for operation in program.within_tiles():
        if isinstance(operation, Transfer):
            lines.add(operation)
    east, west = lines.loads("row")
    south, north = (load.T for load in lines.loads("column"))
    return {"north": north.copy(), "east": east, "south": south.copy(), "west": west}


class _Lines:
    """Loads of rows and of columns: which lines have which, and how often."""

    def __init__(self, program: Program, y_first: bool) -> None:
        self._y_first = y_first
        self._size = {"row": program.cols, "column": program.rows}
        self._counts: dict[str, Counter[tuple[bytes, _Loads]]] = {
            "row": Counter(),
            "column": Counter(),
        }

    def add(self, transfer: Transfer) -> None:
        """Count what a transfer moves."""
        for move in transfer.moves():
            if isinstance(move, Trees):
                self._tree(move, transfer.flits)
            else:
                self._unicasts(move, transfer.flits)

    def _unicasts(self, ways: Unicasts, flits: int) -> None:
        """Along the lines of the sources, then along those of the destinations."""
        in_rows = ways.to_rows if self._y_first else ways.rows
        in_cols = ways.cols if self._y_first else ways.to_cols
        self._add("row", in_rows, ways.cols, ways.to_cols, flits)
        self._add("column", in_cols, ways.rows, ways.to_rows, flits)

    def _tree(self, trees: Trees, flits: int) -> None:
        """From the root to both ends of what it spans, or the other way round."""
        near, far = np.full(2, trees.place), np.array(trees.span)
        start, end = (far, near) if trees.inwards else (near, far)
        self._add(trees.along, trees.lines, start, end, flits)

    def loads(self, along: str) -> tuple[Int64s, Int64s]:
        """Flits from each place upwards, and downwards, shape (lines, places)."""
        size, lines = self._size[along], self._size["column" if along == "row" else "row"]
        loads = np.zeros((2, lines, size), dtype=np.int64)
        for (numbers, load), count in self._counts[along].items():
            chosen = np.frombuffer(numbers, dtype=np.int64)
            each = np.frombuffer(load, dtype=np.int64).reshape(2, size)
            loads[:, chosen] += count * each[:, None]
        up, down = loads
        return up, down

    def _add(self, along: str, lines: Int64s, start: Int64s, end: Int64s, flits: int) -> None:
        """Transfers from ``start`` to ``end`` on each of some lines."""
        ways = np.zeros_like(start), start, end, np.full_like(start, flits)
        up, down = line_loads(*ways, (1, self._size[along]))
        if up.any() or down.any():
            loads = np.concatenate([up, leaving(down)])
            key = (np.ascontiguousarray(lines, dtype=np.int64).tobytes(), loads.tobytes())
            self._counts[along][key] += 1
