"""The vector engine of a tile: passes over blocks, a word of elements a cycle.

The law is that of rtl/tile/vector_unit.sv (rtl/tile/README.md, "Vector unit"): from the first
operand to the last result, W words a row and R rows take W R + 3 cycles, whatever the operation.
"""

from dataclasses import dataclass
from typing import Any

from tlm.compiled import law
from tlm.errors import InputError


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """A vector engine.

    Attributes:
        lanes: Elements of a word.
        pipeline_cycles: Cycles of a pass beyond one a word.
    """

    lanes: int
    pipeline_cycles: int = 0

    def pass_cycles(self, rows: int, columns: int) -> int:
        """Cycles of one operation over a block; its rows are whole numbers of words.

        Raises:
            InputError: if a size is below 1.
        """
        if rows < 1 or columns < 1:
            raise InputError(f"vector pass: {rows} x {columns}; sizes are at least 1")
        cycles: int = self.pass_cycles_over(rows, columns)
        return cycles

    def pass_cycles_over(self, rows: Any, columns: Any) -> Any:
        """`pass_cycles` of sizes of 1 or more: numbers, or arrays of many blocks at once."""
        return pass_cycles(self.lanes, self.pipeline_cycles, rows, columns)


@law
def pass_cycles(lanes: int, pipeline_cycles: int, rows: Any, columns: Any) -> Any:
    """`VectorUnit.pass_cycles_over` of an engine of so many lanes."""
    return rows * -(-columns // lanes) + pipeline_cycles
