"""Descriptors of a tile's queues (rtl/tile/descriptors.md) and their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.program.operations import Engine
from tlm.tiles.jobs import MatrixJob, VectorJob

Words = NDArray[np.uint64]

TOKENS = 64
DESCRIPTOR_WORDS = 8
CREDITS = 8
TRANSFER_TOKENS = 2
#: Words of a memory channel's burst.
BURST_WORDS = 4
_TARGET_BITS = 27
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
class Transfer:
    """Words that go to other tiles' memories; addresses and distances in words.

    Attributes:
        kind: What the network does.
        words: Words of a row.
        rows: Rows.
        source: Address of the first word here.
        source_row: Distance of rows here.
        target: Address of the first word there; in a memory channel up to 27 bits.
        target_row: Distance of rows there.
        request: Its word is a request to a memory node (`memory_request`), no data.
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
    request: bool = False


Job = Wait | MatrixJob | VectorJob | Transfer
#: What each engine does besides waiting.
JOBS = {Engine.MATRIX: MatrixJob, Engine.VECTOR: VectorJob, Engine.TRANSFER: Transfer}


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
            return _field("cycles", job.cycles, 32, 2) << 32, 0, 0, 0
        case MatrixJob():
            return _matrix_words(job)
        case VectorJob():
            return _vector_words(job)
        case Transfer():
            return _transfer_words(job)


def _matrix_words(job: MatrixJob) -> tuple[int, int, int, int]:
    folds = job.panels_m * job.panels_n
    flags = _kind(Engine.MATRIX) | job.output_stationary << 4 | job.accumulate << 5
    return (
        flags | _field("folds", folds, 16, 1) << 16 | _field("length", job.length, 16, 1) << 32,
        _joined([job.a, job.b, job.c, _field("panels_m", job.panels_m, 16, 1)], "matrix address"),
        _joined([job.a_panel, job.b_panel, job.c_panel, job.c_row], "matrix distance"),
        _joined([_field("panels_n", job.panels_n, 16, 1), job.a_step], "matrix distance"),
    )


def _vector_words(job: VectorJob) -> tuple[int, int, int, int]:
    if job.operation not in VECTOR_OPERATIONS:
        raise InputError(
            f"vector operation: found '{job.operation}'; allowed: {', '.join(VECTOR_OPERATIONS)}"
        )
    results = 1 if job.operation.startswith("row-") else job.words
    if not job.pack and job.out_words != results:
        raise InputError(
            f"descriptor: words of a row of '{job.operation}' results: found {job.out_words}; "
            f"allowed: {results}"
        )
    first = _kind(Engine.VECTOR) | VECTOR_OPERATIONS[job.operation] << 4 | job.pack << 7
    first |= _field("shift", job.shift, 6) << 8
    first |= _signed_field("multiplier", job.multiplier, 16) << 16
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
    # What has no tokens has in their place the high bits of the target, or the mark of a request.
    low, high = job.target, 0
    if not job.tokens:
        high, low = divmod(_field("target", job.target, _TARGET_BITS), 1 << 16)
    others = () if job.tokens else (high >> 6 | job.request << 5, high & 63)
    token, second = (_field("token", each, 6) for each in (*job.tokens, *others, 0)[:2])
    first = _kind(Engine.TRANSFER) | job.kind << 4 | job.carry << 7
    first |= (len(job.tokens) > 0) << 6 | token << 8
    second |= (len(job.tokens) > 1) << 6
    first |= _field("row", job.row, 4) << 16 | _field("column", job.col, 4) << 20
    first |= _field("words", job.words, 16, 1) << 32 | _field("rows", job.rows, 16, 1) << 48
    flits = _field("flits", job.words * job.rows, 16, 1)
    return (
        first,
        _joined([job.source, job.source_row, low, job.target_row], "transfer address"),
        _joined([job.col_mask, job.row_mask, flits, second], "transfer mask"),
        0,
    )


def memory_request(address: int, words: int, row: int, col: int, *, loads: bool) -> int:
    """The word that asks a memory node for a block (rtl/memory/memory_node.sv).

    Args:
        address: The block's first word in the channel, that of a burst.
        words: How many it has, 1 to 65,535.
        row: Row of the tile that asks.
        col: Its column.
        loads: The block is sent to the tile; else this word is, when all before it is kept.

    Raises:
        InputError: naming the field that is not allowed.
    """
    if address % BURST_WORDS:
        raise InputError(
            f"memory request: address: found {address}; allowed: multiples of {BURST_WORDS}, "
            "the words of a burst"
        )
    return (
        _field("memory request address", address, _TARGET_BITS)
        | _field("memory request row", row, 4) << 28
        | _field("memory request column", col, 4) << 32
        | _field("memory request words", words, 16, 1) << 36
        | loads << 52
    )


def _kind(engine: Engine) -> int:
    """Of an engine's jobs; a wait's is 0."""
    return engine + 1


def _joined(values: Sequence[int], name: str) -> int:
    """Up to four fields of 16 bits, the first one lowest."""
    return sum(_field(name, value, 16) << 16 * place for place, value in enumerate(values))


def _field(name: str, value: int, bits: int, least: int = 0) -> int:
    if not least <= value < 1 << bits:
        raise InputError(
            f"descriptor: {name}: found {value}; allowed: {least} to {(1 << bits) - 1}"
        )
    return value


def _signed_field(name: str, value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    if not -half <= value < half:
        raise InputError(f"descriptor: {name}: found {value}; allowed: {-half} to {half - 1}")
    return value & (1 << bits) - 1
