"""Seeded requests whose lengths and arrivals follow given statistics.

Lengths: a beta distribution on a fitted interval [lowest, highest], rounded to whole tokens. Mean
and standard deviation are met exactly; the interval is chosen so that the 90th percentile is too:
``lowest`` is the smallest (from 1 up) that allows it, ``highest`` the largest. Served lengths are
bounded by the context, and a bounded family follows their percentiles where a lognormal or gamma
does not. Prompt and output lengths are independent (their correlation in ShareGPT is 0.04).

Arrivals: gamma-distributed gaps of a given mean and coefficient of variation; 1 is Poisson.
"""

import math
import re
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError, choose
from workloads.serving.load.traces import MAX_SPAN_S, PS_PER_S, Trace

MAX_REQUESTS = 10_000_000
#: Ends of the interval that are tried at a time, and to what part of itself one is found.
_SCALES, _EXACT = 400, 1e-12
_FIXED = re.compile(r"fixed:([1-9]\d{0,6}):([1-9]\d{0,6})")


class Lengths(NamedTuple):
    """Statistics of a token length: mean, 90th percentile, standard deviation."""

    mean: float
    p90: float
    std: float


class Workload(NamedTuple):
    """Length statistics of the requests of one data set, or the one length of all of them."""

    prompt: Lengths | int
    output: Lengths | int


# Table 4 of the layered-prefill paper.
WORKLOADS = {
    "arxiv": Workload(Lengths(9194, 17152, 5754), Lengths(231, 386, 104)),
    "sharegpt": Workload(Lengths(2340, 5696, 2088), Lengths(438, 834, 265)),
}


def generate(workload: str, requests: int, rate_rps: float, cv: float, seed: int) -> Trace:
    """Make ``requests`` requests of a named workload.

    Args:
        workload: a key of ``WORKLOADS``; or ``fixed:IN:OUT``, all alike.
        requests: how many, 1 to ``MAX_REQUESTS``.
        rate_rps: arrivals a second; infinity makes all arrive at once (offline).
        cv: coefficient of variation of the gaps between arrivals.
        seed: lengths and gaps have generators of their own, so the rate does not change lengths.

    Raises:
        InputError: for an unknown workload or a figure out of range.
    """
    lengths = _workload(workload)
    if not 1 <= requests <= MAX_REQUESTS:
        raise InputError(f"requests: found {requests}; allowed: 1 to {MAX_REQUESTS}")
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)]
    return Trace(
        arrivals_ps(requests, rate_rps, cv, streams[0]),
        sample(lengths.prompt, requests, streams[1]),
        sample(lengths.output, requests, streams[2]),
    )


def _workload(name: str) -> Workload:
    if not name.startswith("fixed"):
        return WORKLOADS[choose("workload", name, (*WORKLOADS, "fixed:IN:OUT"))]
    found = _FIXED.fullmatch(name)
    if found is None:
        raise InputError(
            f"workload: found '{name}'; write fixed:IN:OUT, tokens of every prompt and output, "
            "1 to 9999999, such as fixed:100:200"
        )
    return Workload(int(found[1]), int(found[2]))


def arrivals_ps(
    requests: int, rate_rps: float, cv: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Arrival times in picoseconds, the first at 0.

    Raises:
        InputError: if rate or coefficient of variation is not positive, or 100 days are passed.
    """
    if not rate_rps > 0:
        raise InputError(f"rate: found {rate_rps}; allowed: positive, or inf for offline")
    if not 0.01 <= cv <= 100:
        raise InputError(f"arrival cv: found {cv}; allowed: 0.01 to 100")
    if math.isinf(rate_rps):
        return np.zeros(requests, dtype=np.int64)
    gaps_s = rng.gamma(1 / cv**2, cv**2 / rate_rps, size=requests)
    gaps_s[0] = 0.0
    arrival_s = np.cumsum(gaps_s)
    if not arrival_s[-1] <= MAX_SPAN_S:  # nor NaN, of gaps past all numbers
        raise InputError(f"rate: found {rate_rps}; allowed: all arrivals within 100 days")
    return np.rint(arrival_s * PS_PER_S).astype(np.int64)


def sample(lengths: Lengths | int, requests: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw token counts, each 1 or more."""
    if isinstance(lengths, int):
        return np.full(requests, lengths, dtype=np.int64)
    return np.maximum(np.rint(fit(lengths).drawn(requests, rng)), 1).astype(np.int64)


class Fitted(NamedTuple):
    """A beta distribution on an interval; numbers, or arrays of many distributions.

    Attributes:
        a: First parameter.
        b: Second parameter.
        lowest: Where the interval begins.
        width: Of the interval.
    """

    a: Any
    b: Any
    lowest: float
    width: Any

    @classmethod
    def of(cls, lengths: Lengths, lowest: float, scale: Any) -> "Fitted":
        """With a mean and a spread, up to mean + scale x std^2 / (mean - lowest).

        A scale of 1 is two points.
        """
        below = lengths.mean - lowest
        width = below + scale * lengths.std**2 / below
        mean = below / width
        concentration = mean * (1 - mean) / (lengths.std / width) ** 2 - 1
        return cls(mean * concentration, (1 - mean) * concentration, lowest, width)

    @property
    def p90(self) -> Any:
        """The 90th percentile."""
        # All of scipy's distributions and solvers would take a second to import.
        from scipy.special import betaincinv

        return self.lowest + self.width * betaincinv(self.a, self.b, 0.9)

    def drawn(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """So many lengths."""
        lengths: NDArray[np.float64] = rng.beta(self.a, self.b, size=count) * self.width
        return lengths + self.lowest


@cache  # tens of milliseconds, and a search for a rate draws many loads
def fit(lengths: Lengths) -> Fitted:
    """The beta distribution with these statistics.

    Raises:
        InputError: if no beta distribution on positive lengths has them.
    """
    highest = np.geomspace(1.02, 200.0, _SCALES)  # in units of the distance that has the spread
    for lowest in np.linspace(1.0, lengths.mean, 100, endpoint=False).tolist():
        p90 = Fitted.of(lengths, lowest, highest).p90
        best = int(np.nanargmax(p90))
        if p90[best] >= lengths.p90 >= p90[-1]:
            return _largest(lengths, lowest, highest[best:])
    raise InputError(f"length statistics {tuple(lengths)}: no beta distribution has them")


def _largest(lengths: Lengths, lowest: float, scales: NDArray[np.float64]) -> Fitted:
    """Of rising scales, past one of which the 90th percentile is too low, the last that is not."""
    while scales[-1] > scales[0] * (1 + _EXACT):
        enough = Fitted.of(lengths, lowest, scales).p90 >= lengths.p90
        last = min(int(np.flatnonzero(enough)[-1]), len(scales) - 2)
        scales = np.linspace(scales[last], scales[last + 1], _SCALES)
    return Fitted.of(lengths, lowest, float(scales[0]))
