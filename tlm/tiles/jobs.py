"""Jobs of a tile's matrix and vector engines: which words of the scratchpad they read and write.

Their fields are those of descriptors (rtl/tile/descriptors.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tlm.compute.base import ceil_div
from tlm.program.data import Gemm, Vector
from tlm.tiles.layout import SUM_BITS, WORD_BITS, BufferPlace, Order


@dataclass(frozen=True, slots=True)
class MatrixJob:
    """Folds of the systolic array; addresses and distances in words.

    The array has n rows and columns. Weight-stationary C = A W: ``length`` rows of A and n of W a
    fold; output-stationary C = A B: ``length`` columns of A and rows of B, n rows of C a fold.

    Attributes:
        output_stationary: The dataflow.
        accumulate: Results are added to what is in memory.
        length: Steps of a fold.
        panels_m: Panels of A.
        panels_n: Panels of B, or of W: n columns of the result each.
        a: Address of A; step s of panel i is the word ``a + i * a_panel + s * a_step``.
        b: Address of B or W; step s of panel j is the word ``b + j * b_panel + s``.
        c: Address of C; row r of panels (i, j) is at ``c + i * c_panel + r * c_row + j * n / 2``.
        a_panel: Distance of panels of A.
        a_step: Distance of words in them.
        b_panel: Distance of panels of B.
        c_panel: Distance of the results of panels of A.
        c_row: Distance of rows of results.
    """

    length: int
    a: int
    b: int
    c: int
    c_row: int
    output_stationary: bool = True
    accumulate: bool = False
    panels_m: int = 1
    panels_n: int = 1
    a_panel: int = 0
    a_step: int = 1
    b_panel: int = 0
    c_panel: int = 0


@dataclass(frozen=True, slots=True)
class VectorJob:
    """A pass of the vector unit over rows of words; addresses and distances in words.

    Attributes:
        operation: What is done.
        words: Words of a row of A.
        rows: Rows.
        a: Address of A.
        a_row: Distance of its rows.
        out: Address of the results.
        out_row: Distance of their rows.
        b: Address of B; used by operations of two operands.
        b_row: Distance of its rows.
        b_step: Distance of its words: 0 for a row's result, which every word of the row meets.
        multiplier: Of ``scale`` and ``quantize``.
        shift: Of ``scale``, ``quantize`` and ``multiply``.
        pack: Elements of ``quantize`` are packed to operands of the array; ``words`` is a multiple
            of the words that become one.
        out_words: Words of a row of results.
    """

    operation: str
    words: int
    rows: int
    a: int
    a_row: int
    out: int
    out_row: int
    out_words: int
    b: int = 0
    b_row: int = 0
    b_step: int = 1
    multiplier: int = 1
    shift: int = 0
    pack: bool = False


Job = MatrixJob | VectorJob


def matrix_jobs(task: Gemm, places: Mapping[str, BufferPlace], size: int) -> list[MatrixJob]:
    """Jobs of a product, one after the other.

    Args:
        task: The product.
        places: Where the buffers lie.
        size: Rows, and columns, of the array.
    """
    a, b, c = (places[name] for name in (task.a, task.b, task.c))
    depth, panels_n = a.buffer.columns, b.padded[1] // size
    if a.order is Order.LEFT:
        return [
            MatrixJob(
                length=depth, a=a.address, b=b.address, c=c.address, c_row=c.row_words,
                accumulate=task.accumulate, panels_m=a.padded[0] // size, panels_n=panels_n,
                a_panel=depth, b_panel=depth, c_panel=size * c.row_words,
            )
        ]  # fmt: skip
    return [
        MatrixJob(
            output_stationary=False, length=a.buffer.rows, a=a.address + panel,
            a_step=a.row_words, b=b.address + panel * size, b_panel=depth, c=c.address,
            c_row=c.row_words, accumulate=task.accumulate or panel > 0, panels_n=panels_n,
        )
        for panel in range(ceil_div(depth, size))
    ]  # fmt: skip


def vector_job(task: Vector, places: Mapping[str, BufferPlace]) -> VectorJob:
    """The job of a pass; rows that end within a word take all of it.

    Args:
        task: The pass.
        places: Where the buffers lie.
    """
    a, out = places[task.a], places[task.out]
    words = 1 if a.order is Order.COLUMN else ceil_div(a.buffer.columns, WORD_BITS // SUM_BITS)
    operation, pack = str(task.operation), out.order is Order.PACKED
    if pack:
        words = out.row_words * SUM_BITS // out.buffer.bits
    if operation in ("scale", "quantize"):
        operation = "quantize" if pack else "scale"
    b = places[task.b] if task.b is not None else None
    column = b is not None and b.order is Order.COLUMN
    return VectorJob(
        operation, words, a.buffer.rows, a.address, a.row_words, out.address, out.row_words,
        out_words=out.row_words if pack else (1 if out.order is Order.COLUMN else words),
        b=b.address if b else 0, b_row=b.row_words if b else 0, b_step=int(not column),
        multiplier=task.multiplier, shift=task.shift, pack=pack,
    )  # fmt: skip
