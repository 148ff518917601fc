"""What the study's plots share."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows of the study by their names.
Found = Mapping[str, Mapping[str, Any]]


def panels(rows: int, cols: int, width: float, height: float) -> tuple[Any, NDArray[Any]]:
    """A figure, in inches, and its panels [rows, cols]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, cols, squeeze=False)


def model_values(found: Found, names: Iterable[str]) -> NDArray[np.float64]:
    """Figures of the model; NaN where there is none."""
    return np.array([found[name]["model"] for name in names], dtype=np.float64)
