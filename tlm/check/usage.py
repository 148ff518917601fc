"""What operations use of the tiles: engines and buffers."""

import numpy as np
from numpy.typing import NDArray

from tlm.check.report import Parallelism
from tlm.program import Program
from tlm.program.operations import COMPUTING, Ends, Engine, Operation, Work


class Usage:
    """Busy cycles of each tile, and the buffers that operations touch there.

    Memory per tile: 8 bytes, and 1 for each buffer.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._shape = (program.rows, program.cols)
        self._busy_cycles = np.zeros(self._shape, dtype=np.int64)
        self._products = np.zeros(self._shape, dtype=np.int64)
        self._touched: dict[str, NDArray[np.bool_]] = {}
        self._seen: set[tuple[object, ...]] = set()

    def add(self, operation: Operation) -> None:
        """Take note of an operation."""
        if isinstance(operation, Work) and operation.engine in COMPUTING:
            self._busy_cycles[operation.near.part] += operation.cycles
            if operation.engine is Engine.MATRIX:
                self._products[operation.near.part] += 1
        for name, where in operation.touched:
            self._touch(name, where)

    def parallelism(self) -> Parallelism:
        """Tiles that work, and how evenly."""
        busy = self._busy_cycles
        most = int(busy.max())
        return Parallelism(
            tiles=busy.size,
            busy_share=float(np.count_nonzero(busy) / busy.size),
            balance=float(busy.mean()) / most if most else 0.0,
            products=int(self._products.max()),
        )

    def bytes_used(self) -> NDArray[np.int64]:
        """Bytes of all buffers touched, shape (rows, columns)."""
        used = np.zeros(self._shape, dtype=np.int64)
        for name, touched in self._touched.items():
            used += touched * self._program.buffers[name].size_bytes
        return used

    def _touch(self, name: str, where: Ends) -> None:
        whole = self._program.buffers[name].within or name  # a part counts as what it is of
        if self._program.buffers[whole].offchip:
            return
        rows, cols = (
            each if isinstance(each, range) else each.tobytes() for each in (where.rows, where.cols)
        )
        key = (whole, rows, cols, where.paired)
        if key not in self._seen:
            self._seen.add(key)
            mask = self._touched.setdefault(whole, np.zeros(self._shape, dtype=np.bool_))
            mask[where.part] = True
