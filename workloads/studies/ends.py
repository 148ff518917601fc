"""Serving on tiles at both ends of the prices' error."""

from collections.abc import Callable, Sequence
from typing import Any

from tlm.errors import InputError
from workloads.serving.price.models import OnTiles
from workloads.serving.price.tile_price import End
from workloads.studies.campaign import Figures

ENDS: tuple[End, End] = ("low", "high")


def with_ends(prices: Sequence[Any], served: Callable[[Sequence[Any]], Figures]) -> Figures:
    """Figures of a run, and ``FIGURE_low`` and ``FIGURE_high`` of the same at the prices' ends.

    An end is None where levels were not compared. Of a run that is overloaded it is None as well,
    as times then depend on how many requests came; ``overloaded_low`` and ``overloaded_high`` tell.
    Requests that all come at once are no overload. Prices of GPUs have no such error, and no ends.

    Args:
        prices: Of the chip, or of its pools.
        served: Runs the requests with such prices; ``overloaded`` is 1 or 0 among its figures, or
            None where all come at once.
    """
    figures = served(prices)
    if not all(isinstance(price, OnTiles) for price in prices):
        return figures
    ends: Figures = {}
    for end in ENDS:
        try:
            found = served([price.at_end(end) for price in prices])
        except InputError:  # comparisons are missing or stale
            found, known = dict.fromkeys(figures), False
        else:
            known = not found["overloaded"] and not any(price.not_compared for price in prices)
        ends |= {f"{name}_{end}": value if known else None for name, value in found.items()}
        ends[f"overloaded_{end}"] = found["overloaded"]
    return figures | ends
