"""What a kernel of rows brings to a tile, does there, and takes away: its recipe.

A tile has some rows, and some columns of each. It works on them in steps: block of rows by block of
rows, of these block of columns by block of columns, and of each as many steps as blocks of operands
come together in it (``inner``).
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from tlm.program.data import VectorOperation
from workloads.kernels.parts.passes import Factor


class Part(NamedTuple):
    """A block on its way.

    Attributes:
        name: Of its buffers.
        every: Whether another one comes with each block of rows, block of columns, or step.
        sums: Its elements have the width of sums; else that of operands of products.
        column: It has one element a row.
    """

    name: str
    every: Literal["rows", "block", "step"] = "block"
    sums: bool = True
    column: bool = False


class Step(NamedTuple):
    """A step of a tile.

    Attributes:
        rows: Number of its block of rows.
        block: Number of its block, those of earlier rows counted.
        number: Its own number.
        inner: Its number within the block.
        new_rows: It is the first one of its rows.
    """

    rows: int
    block: int
    number: int
    inner: int
    new_rows: bool

    def of(self, part: Part) -> int:
        """Which one of its blocks a part has in this step."""
        return {"rows": self.rows, "block": self.block, "step": self.number}[part.every]


class Pass(NamedTuple):
    """A pass of the vector engine on parts: see `tlm.program.data.Vector`."""

    operation: VectorOperation
    a: str
    out: str
    b: str | None = None
    factor: Factor | None = None


class Recipe(NamedTuple):
    """A kernel of rows.

    Attributes:
        operands: What comes.
        results: What leaves.
        scratch: What stays in the tile.
        passes: Of a step, in order.
        reduced: A result that tiles with parts of the same rows add up.
    """

    operands: tuple[Part, ...]
    results: tuple[Part, ...]
    scratch: tuple[Part, ...]
    passes: Callable[[Step], list[Pass]]
    reduced: str | None = None

    @property
    def parts(self) -> dict[str, Part]:
        """All parts by name."""
        return {part.name: part for part in (*self.operands, *self.results, *self.scratch)}
