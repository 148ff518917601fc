"""Tables of whole numbers that memories keep."""

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


def grown(table: Int64s, rows: int) -> Int64s:
    """The same table, shape (rows, columns), with room for so many rows, and twice those it has."""
    new = np.zeros((max(rows, 2 * len(table)), table.shape[1]), dtype=np.int64)
    new[: len(table)] = table
    return new
