"""What a program computes on: named buffers of every tile, and the tasks of its engines.

Blocks are matrices of two's-complement integers, row after row. Chips with other number formats run
the same programs; their buffers state sizes, and no values are computed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tlm.errors import InputError

VectorOperation = Literal[
    "add", "maximum", "multiply", "scale", "quantize", "exp", "row-sum", "row-maximum"
]
#: Operations of two operands, and those that make one element of a row.
TWO_OPERANDS = ("add", "maximum", "multiply")
OF_ROWS = ("row-sum", "row-maximum")
_MULTIPLIER_BITS, _MOST_SHIFT = 16, 63


@dataclass(frozen=True, slots=True)
class Buffer:
    """Room for a block in the memory of every tile.

    Attributes:
        rows: Rows of the block.
        columns: Elements of a row.
        bits: Bits of an element.
        within: A buffer that this one is a part of; its elements must have as many bits.
        offset: Elements of that buffer before the first of this one.
        offchip: It lies in off-chip memory and takes no room of the tile. `Load` and `Store` move
            it; to other operations it costs no more than if it lay in the tile.

    Raises:
        InputError: if a size is below 1, or the offset below 0 or without a buffer.
    """

    rows: int
    columns: int
    bits: int
    within: str | None = None
    offset: int = 0
    offchip: bool = False

    def __post_init__(self) -> None:
        if min(self.rows, self.columns, self.bits) < 1:
            raise InputError(
                f"buffer of {self.rows} x {self.columns} elements of {self.bits} bits; "
                "allowed: 1 or more of each"
            )
        if self.offset < 0 or (self.offset and self.within is None):
            raise InputError(
                f"buffer: offset {self.offset}; allowed: 0 or more, within another buffer"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def size_bytes(self) -> int:
        """Bytes of the block, packed without gaps."""
        return -(-self.rows * self.columns * self.bits // 8)


@dataclass(frozen=True, slots=True)
class Gemm:
    """A product of blocks: ``c`` = ``a`` ``b``, or added to what ``c`` holds; sums wrap.

    Attributes:
        a: Left operand, m x k.
        b: Right operand, k x n.
        c: Result, m x n.
        accumulate: Whether ``c`` keeps what it holds.
        turned: Whether ``b`` lies turned, as n x k. The project's own array has no such operand.
    """

    a: str
    b: str
    c: str
    accumulate: bool = False
    turned: bool = False


@dataclass(frozen=True, slots=True)
class Vector:
    """A pass of the vector engine over a block (rtl/tile/README.md, "Vector unit").

    - ``add`` wraps; ``maximum`` takes the larger element.
    - ``multiply``: ``a`` times the low 16 bits of ``b`` (with sign), shifted right, rounded down,
      saturated.
    - ``scale``: ``a`` times ``multiplier``, shifted right, rounded down, saturated; ``quantize``
      the same. Both saturate to the bits of ``out``.
    - ``exp``: 2^(a / 256) in units of 2^-16 of an element that is zero or below.
    - ``row-sum`` (wraps) and ``row-maximum`` yield a column.

    Attributes:
        operation: What is done with each element or row.
        a: Operand, rows x columns.
        out: Result: as ``a``, or a column (rows x 1) of row operations. May be ``a`` or ``b``.
        b: Second operand of ``add``, ``maximum`` and ``multiply``: as ``a``, or a column, whose
            elements then meet all those of their row.
        multiplier: Of ``scale`` and ``quantize``: 16 bits with sign.
        shift: Of ``scale``, ``quantize`` and ``multiply``: 0 to 63.
    """

    operation: VectorOperation
    a: str
    out: str
    b: str | None = None
    multiplier: int = 1
    shift: int = 0


Task = Gemm | Vector


def buffer_names(task: Task) -> tuple[str, ...]:
    """Buffers that a task reads or writes."""
    if isinstance(task, Gemm):
        return task.a, task.b, task.c
    return tuple(name for name in (task.a, task.b, task.out) if name is not None)


def buffers_fault(buffers: Mapping[str, Buffer]) -> str | None:
    """What is wrong with a program's buffers: parts that do not lie within what they are of."""
    for name, part in buffers.items():
        if part.within is None:
            continue
        whole = buffers.get(part.within)
        if whole is None or whole.within is not None:
            return f"buffer '{name}': within '{part.within}', which is no buffer of its own"
        last = part.offset + part.rows * part.columns
        if part.bits != whole.bits or last > whole.rows * whole.columns:
            return (
                f"buffer '{name}': {last} elements of {part.bits} bits up to its end; allowed "
                f"within '{part.within}': {whole.rows * whole.columns} of {whole.bits}"
            )
    return None


def task_fault(task: Task, buffers: Mapping[str, Buffer]) -> str | None:
    """What is wrong with a task on the buffers of its program."""
    fault = unknown_buffer(buffer_names(task), buffers)
    if fault:
        return fault
    if isinstance(task, Gemm):
        a, b, c = (buffers[name].shape for name in (task.a, task.b, task.c))
        return _gemm_fault(a, b[::-1] if task.turned else b, c)
    return _vector_fault(task, buffers)


def unknown_buffer(names: tuple[str, ...], buffers: Mapping[str, Buffer]) -> str | None:
    """Which of some names is no buffer."""
    for name in names:
        if name not in buffers:
            return f"unknown buffer '{name}'; known: {', '.join(sorted(buffers))}"
    return None


def peak_bytes(buffers: Mapping[str, Buffer]) -> int:
    """Memory that every tile needs: all buffers that are neither part of another nor off chip."""
    own = (buffer for buffer in buffers.values() if buffer.within is None and not buffer.offchip)
    return sum(buffer.size_bytes for buffer in own)


def _gemm_fault(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> str | None:
    if a[1] != b[0] or c != (a[0], b[1]):
        return f"a product of {a[0]} x {a[1]} and {b[0]} x {b[1]} into {c[0]} x {c[1]}"
    return None


def _vector_fault(task: Vector, buffers: Mapping[str, Buffer]) -> str | None:
    if task.operation not in get_args(VectorOperation):
        return (
            f"unknown vector operation '{task.operation}'; known: "
            f"{', '.join(get_args(VectorOperation))}"
        )
    if (task.b is not None) != (task.operation in TWO_OPERANDS):
        return f"'{task.operation}' has {'a' if task.b else 'no'} second operand"
    half = 2 ** (_MULTIPLIER_BITS - 1)
    if not (-half <= task.multiplier < half and 0 <= task.shift <= _MOST_SHIFT):
        return (
            f"multiplier {task.multiplier}, shift {task.shift}; allowed: {-half} to {half - 1}, "
            f"0 to {_MOST_SHIFT}"
        )
    shape = buffers[task.a].shape
    column = (shape[0], 1)
    wanted = column if task.operation in OF_ROWS else shape
    out = buffers[task.out].shape
    if out != wanted:
        return (
            f"'{task.operation}' of {shape[0]} x {shape[1]} into {out[0]} x {out[1]}; allowed: "
            f"{wanted[0]} x {wanted[1]}"
        )
    if task.b is not None and buffers[task.b].shape not in (shape, column):
        b = buffers[task.b].shape
        return f"'{task.operation}' of {shape[0]} x {shape[1]} and {b[0]} x {b[1]}"
    return None
