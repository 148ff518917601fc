"""The highest rate at which requests still attain their objectives."""

from collections.abc import Callable
from typing import NamedTuple

from tlm.errors import InputError

ATTAINMENT = 0.9
_RESOLUTION = 0.01
_FACTOR_LIMIT = 2.0**20


class Trial(NamedTuple):
    """A rate that was tried, and the share of requests that attained their objectives."""

    rate: float
    attainment: float


class Capacity(NamedTuple):
    """The highest rate found, None if not even the lowest tried will do, and all that was tried."""

    rate: float | None
    trials: list[Trial]


def find_rate(
    attainment_at: Callable[[float], float],
    start: float = 1.0,
    least: float = ATTAINMENT,
    lowest: float = 0.0,
) -> Capacity:
    """Find the highest rate with an attainment of ``least`` by doubling and then bisection, to 1 %.

    Attainment is taken to fall as the rate grows, which holds where requests and the order of their
    arrivals stay the same. A rate that is still enough after 20 doublings is returned as it is.

    Args:
        attainment_at: Runs the load at a rate.
        start: Where to begin, positive.
        least: Share of requests, above 0 and at most 1.
        lowest: Rate below which the load cannot be run.

    Raises:
        InputError: if a figure is out of range.
    """
    if not 0 < start < float("inf"):
        raise InputError(f"rate to start from: found {start}; allowed: positive and finite")
    if not 0 < least <= 1:
        raise InputError(f"attainment: found {least}; allowed: above 0, 1 at most")
    trials: list[Trial] = []

    def enough(rate: float) -> bool:
        trials.append(Trial(rate, attainment_at(rate)))
        return trials[-1].attainment >= least

    low, high = start, start * 2
    if enough(start):
        while enough(high):
            low, high = high, high * 2
            if low >= start * _FACTOR_LIMIT:
                return Capacity(low, trials)
    else:
        low, high = start / 2, start
        while not enough(low):
            low, high = low / 2, low
            if high <= start / _FACTOR_LIMIT or low < lowest:
                return Capacity(None, trials)
    while high > low * (1 + _RESOLUTION):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if enough(middle) else (low, middle)
    return Capacity(low, trials)
