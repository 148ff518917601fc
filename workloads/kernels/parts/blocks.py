"""Matrices cut into blocks, as the host puts them into tiles and takes them out.

Blocks are arrays of shape (block rows, block columns, rows of a block, columns of a block).
"""

import numpy as np

from tlm.compute.base import ceil_div
from tlm.program.arithmetic import Integers


def cut(
    matrix: Integers, rows: int, cols: int, *, width: int | None = None, fill: int = 0
) -> Integers:
    """A matrix as ``rows`` x ``cols`` blocks, padded with ``fill`` to whole ones.

    Blocks are as small as they can be, or have ``width`` columns.
    """
    height = ceil_div(matrix.shape[0], rows)
    width = ceil_div(matrix.shape[1], cols) if width is None else width
    padded = np.full((rows * height, cols * width), fill, dtype=np.int64)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded.reshape(rows, height, cols, width).swapaxes(1, 2)


def join(blocks: Integers, shape: tuple[int, int]) -> Integers:
    """The matrix of ``shape`` that was cut into these blocks."""
    rows, cols, height, width = blocks.shape
    padded = blocks.swapaxes(1, 2).reshape(rows * height, cols * width)
    return padded[: shape[0], : shape[1]]
