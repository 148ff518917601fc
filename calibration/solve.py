"""Laws that are solved exactly."""

from collections.abc import Sequence

import numpy as np

from calibration.experiment import LawContradictedError, NothingMeasuredError


def solve_exactly(rows: Sequence[Sequence[int]], values: Sequence[float]) -> list[int]:
    """Whole numbers x with ``rows`` x = ``values``; rows whose value is NaN do not count.

    Raises:
        LawContradictedError: if there are none.
    """
    matrix, right = np.array(rows, dtype=float), np.array(values, dtype=float)
    matrix, right = matrix[~np.isnan(right)], right[~np.isnan(right)]
    if len(right) < len(values) and np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise NothingMeasuredError("too few figures are left to find the constants")
    solution, _, rank, _ = np.linalg.lstsq(matrix, right, rcond=None)
    whole = np.rint(solution).astype(int)
    if rank < matrix.shape[1] or (matrix @ whole != right).any():
        worst = int(np.argmax(np.abs(matrix @ whole - right)))
        raise LawContradictedError(
            f"no whole constants fit: nearest {whole.tolist()}, fit point {worst} measured "
            f"{right[worst]:g}, law {float(matrix[worst] @ whole):g}"
        )
    return [int(value) for value in whole]
