"""Descriptors of a tile's queues (rtl/tile/descriptors.md) and their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError

Words = NDArray[np.uint64]

TOKENS = 64
DESCRIPTOR_WORDS = 8
CREDITS = 8
TRANSFER_TOKENS = 2
_RUN = 1
_TWO_OPERANDS = ("add", "maximum", "multiply")
#: Operations of the vector unit (rtl/tile/vector_unit.sv).
VECTOR_OPERATIONS = {
    "add": 0, "maximum": 1, "scale": 2, "quantize": 3, "exp": 4, "multiply": 5,
    "row-sum": 6, "row-maximum": 7,
}  # fmt: skip


class TransferKind(IntEnum):
    """What the network does with a transfer."""

    UNICAST = 0
    MULTICAST = 1
    SUM = 2
    MAXIMUM = 3


@dataclass(frozen=True, slots=True)
class Credit:
    """A unit of token ``token`` for the tile in row ``row`` and column ``col``."""

    row: int
    col: int
    token: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Occupies its queue for ``cycles`` cycles; two at least."""

    cycles: int = 2


@dataclass(frozen=True, slots=True)
class Matrix:
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
class Vector:
    """A pass of the vector unit over rows of words; addresses and distances in words.

    Attributes:
        operation: A name of `VECTOR_OPERATIONS`.
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


@dataclass(frozen=True, slots=True)
class Transfer:
    """Words that go to other tiles' memories; addresses and distances in words.

    Attributes:
        kind: What the network does.
        words: Words of a row.
        rows: Rows.
        source: Address of the first word here.
        source_row: Distance of rows here.
        target: Address of the first word there.
        target_row: Distance of rows there.
        row: Row of a unicast's destination, of a reduction's root.
        col: Its column.
        row_mask: Rows of a multicast's destinations or of a reduction's operands, a bit each.
        col_mask: Their columns.
        tokens: Tokens given at the destination when the last word is written, two at most.
        carry: The flits carry address and token; of a reduction one operand's do, all else always.
    """

    kind: TransferKind
    words: int
    source: int
    target: int
    row: int = 0
    col: int = 0
    row_mask: int = 0
    col_mask: int = 0
    tokens: tuple[int, ...] = ()
    carry: bool = True
    rows: int = 1
    source_row: int = 0
    target_row: int = 0


Job = Wait | Matrix | Vector | Transfer


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A job and its tokens.

    Attributes:
        job: What is done.
        takes: Tokens of which it takes a unit each at its start.
        gives: Tokens of which it gives a unit each at its end.
        credits: Units that it gives to other tiles at its end.
        label: What it is for, for traces.
    """

    job: Job
    takes: frozenset[int] = frozenset()
    gives: frozenset[int] = frozenset()
    credits: tuple[Credit, ...] = ()
    label: str = ""

    def encode(self) -> Words:
        """Its words, shape (8,).

        Raises:
            InputError: naming the field that its place in the descriptor cannot hold.
        """
        if len(self.credits) > CREDITS:
            raise InputError(
                f"descriptor '{self.label}': found {len(self.credits)} credits; "
                f"allowed: at most {CREDITS}"
            )
        credits = [_credit(credit) for credit in self.credits]
        credits += [0] * (CREDITS - len(credits))
        words = [
            _mask(self.takes),
            _mask(self.gives),
            _joined(credits[:4], "credit"),
            *_job_words(self.job),
            _joined(credits[4:], "credit"),
        ]
        return np.array(words, dtype=np.uint64)


def _mask(tokens: frozenset[int]) -> int:
    for token in tokens:
        _field("token", token, 6)
    return sum(1 << token for token in tokens)


def _credit(credit: Credit) -> int:
    return (
        _field("credit token", credit.token, 6)
        | _field("credit column", credit.col, 4) << 6
        | _field("credit row", credit.row, 4) << 10
        | 1 << 15
    )


def _job_words(job: Job) -> tuple[int, int, int, int]:
    match job:
        case Wait():
            return _field("cycles", job.cycles, 32) << 32, 0, 0, 0
        case Matrix():
            return _matrix_words(job)
        case Vector():
            return _vector_words(job)
        case Transfer():
            return _transfer_words(job)


def _matrix_words(job: Matrix) -> tuple[int, int, int, int]:
    folds = job.panels_m * job.panels_n
    flags = _RUN | job.output_stationary << 4 | job.accumulate << 5
    return (
        flags | _field("folds", folds, 16, 1) << 16 | _field("length", job.length, 16, 1) << 32,
        _joined([job.a, job.b, job.c, _field("panels_m", job.panels_m, 16, 1)], "matrix address"),
        _joined([job.a_panel, job.b_panel, job.c_panel, job.c_row], "matrix distance"),
        _joined([_field("panels_n", job.panels_n, 16, 1), job.a_step], "matrix distance"),
    )


def _vector_words(job: Vector) -> tuple[int, int, int, int]:
    if job.operation not in VECTOR_OPERATIONS:
        raise InputError(
            f"vector operation: found '{job.operation}'; allowed: {', '.join(VECTOR_OPERATIONS)}"
        )
    first = _RUN | VECTOR_OPERATIONS[job.operation] << 4 | job.pack << 7
    first |= _field("shift", job.shift, 6) << 8
    first |= _field("multiplier", job.multiplier & 0xFFFF, 16) << 16
    first |= _field("words", job.words, 16, 1) << 32 | _field("rows", job.rows, 16, 1) << 48
    return (
        first,
        _joined([job.a, job.a_row, job.b, job.b_row], "vector operand"),
        _joined([job.out, job.out_row, job.out_words, job.b_step], "vector result"),
        0,
    )


def _transfer_words(job: Transfer) -> tuple[int, int, int, int]:
    if len(job.tokens) > TRANSFER_TOKENS:
        raise InputError(
            f"transfer: found {len(job.tokens)} tokens; allowed: at most {TRANSFER_TOKENS}"
        )
    token, second = (_field("token", each, 6) for each in (*job.tokens, 0, 0)[:2])
    first = _RUN | job.kind << 4 | (len(job.tokens) > 0) << 6 | job.carry << 7 | token << 8
    second |= (len(job.tokens) > 1) << 6
    first |= _field("row", job.row, 4) << 16 | _field("column", job.col, 4) << 20
    first |= _field("words", job.words, 16, 1) << 32 | _field("rows", job.rows, 16, 1) << 48
    flits = _field("flits", job.words * job.rows, 16, 1)
    return (
        first,
        _joined([job.source, job.source_row, job.target, job.target_row], "transfer address"),
        _joined([job.col_mask, job.row_mask, flits, second], "transfer mask"),
        0,
    )


def _joined(values: Sequence[int], name: str) -> int:
    """Up to four fields of 16 bits, the first one lowest."""
    return sum(_field(name, value, 16) << 16 * place for place, value in enumerate(values))


def _field(name: str, value: int, bits: int, least: int = 0) -> int:
    if not least <= value < 1 << bits:
        raise InputError(
            f"descriptor: {name}: found {value}; allowed: {least} to {(1 << bits) - 1}"
        )
    return value
