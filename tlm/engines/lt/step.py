"""Operations as the compiled steps of the loosely-timed engine read them: records and one pool.

A step is an operation, or a half of a send. Everything that it names by an offset lies in a pool:
delays in that of 32-bit numbers, all else in that of 64-bit numbers.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


class StepKind(IntEnum):
    """What a step does."""

    WORK = 0
    SEND = 1
    BEGIN_SEND = 2
    END_SEND = 3
    ALONG_ROWS = 4  # a collective
    ALONG_COLUMNS = 5


STEP = np.dtype(
    [
        (name, np.int64)
        for name in (
            "kind",  # `StepKind`
            "collective",  # which one (`collectives.CollectiveKind`)
            "few",  # of work or sends: whether they are done tile by tile
            "engine",  # of work
            "operation",  # its number in the program
            "row_first",
            "row_step",
            "rows",
            "to_rows",  # offset: target of each row
            "columns",  # offset: source columns, rising
            "first",  # the first of them if they are consecutive, else -1
            "size",
            "to_columns",  # offset: target columns, rising
            "to_first",
            "order",  # offset (`order.order_of`): for each target its source's place; -1: the same
            "inverse",  # offset: for each source the place of its target
            "root",  # row of the roots, or offset: column of each row's
            "law",  # offset: for each row the offsets of credit (and latency)
            "takes",  # offset (`put_tokens`)
            "slots",
            "gives",
            "arrivals",
            "credit",  # offset: delay of a credit, per target
            "latency",  # offset: from start to arrival, per target
            "extra",  # offset: further delay of both over the rows crossed, per source row
            "flits",
            "launch",  # cycles from the start of a transfer to its first flit
            "occupied",  # cycles from the first to the last flit of a multicast
            "own_occupied",  # the same of the root's own copy
            "hold",  # cycles that a source's interface is busy
            "cycles",  # of work, if the same everywhere
            "table",  # of cycles, else -1
            "beside",  # of work: the other computing engine if the program uses both, else -1
            "buffers",  # offset: input buffers along the row, per target
            "most",  # buffers that do not take a whole transfer
            "room",  # cycles that a buffer lets its source go earlier
            "per_hop",  # cycles from router to router, of an operand or of any flit
            "packet",  # cycles of a reduction's packet, of as many flits as a buffer holds
            "ahead",  # of a reduction: packets ahead of what makes room for the tail, else -1
            "skew",  # rows that the step lies behind the first of its batch
        )
    ]
)
Steps = NDArray[np.void]
StepRecord = Any
"""One of them."""
_FIELDS = STEP.names or ()
OPERATION, SKEW = _FIELDS.index("operation"), _FIELDS.index("skew")


def record(fields: Mapping[str, int]) -> NDArray[np.int64]:
    """The numbers of a step in the order of `STEP`, shape (fields,); fields left out are 0."""
    return np.array([fields.get(name, 0) for name in _FIELDS], dtype=np.int64)


class Pools:
    """The numbers that steps name by offsets; what is put twice lies there once."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all; offsets given so far mean nothing any more."""
        self._indices = _Pool(np.int64)
        self._delays = _Pool(np.int32)
        self._tokens: dict[tuple[tuple[int, int], ...], int] = {}

    @property
    def indices(self) -> NDArray[np.int64]:
        """Columns, rows, orders and tokens, shape (numbers,)."""
        return self._indices.values

    @property
    def delays(self) -> NDArray[np.int32]:
        """Delays in cycles, shape (numbers,)."""
        return self._delays.values

    @property
    def entries(self) -> int:
        """Numbers held."""
        return self._indices.used + self._delays.used

    def put_indices(self, values: ArrayLike) -> int:
        """Offset of some indices."""
        return self._indices.put(values)

    def put_tokens(self, places: tuple[tuple[int, int], ...]) -> int:
        """Offset of some tokens: their number, then their places."""
        if places not in self._tokens:
            numbers = (number for place in places for number in place)
            self._tokens[places] = self.put_indices([len(places), *numbers])
        return self._tokens[places]

    def put_delays(self, values: ArrayLike) -> int:
        """Offset of some delays."""
        return self._delays.put(values)


class _Pool:
    """An array that grows."""

    def __init__(self, dtype: DTypeLike) -> None:
        self.values: NDArray[Any] = np.zeros(1024, dtype=dtype)
        self.used = 0
        self._offsets: dict[bytes, int] = {}

    def put(self, values: ArrayLike) -> int:
        array = np.asarray(values, dtype=self.values.dtype).ravel()
        key = array.tobytes()
        offset = self._offsets.get(key)
        if offset is None:
            offset, self.used = self.used, self.used + len(array)
            if self.used > len(self.values):
                self.values = np.resize(self.values, 2 * self.used)
            self.values[offset : self.used] = array
            self._offsets[key] = offset
        return offset
