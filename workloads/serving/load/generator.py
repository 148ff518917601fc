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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError, choose
from workloads.serving.load.traces import MAX_SPAN_S, PS_PER_S, Trace

if TYPE_CHECKING:  # slow to import: for drawn lengths only
    from scipy import stats

MAX_REQUESTS = 10_000_000
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
            "such as fixed:100:200"
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
    drawn: NDArray[np.float64] = fit(lengths).rvs(size=requests, random_state=rng)
    return np.maximum(np.rint(drawn), 1).astype(np.int64)


@cache  # tens of milliseconds, and a search for a rate draws many loads
def fit(lengths: Lengths) -> "stats.rv_frozen":
    """The beta distribution with these statistics.

    Raises:
        InputError: if no beta distribution on positive lengths has them.
    """
    from scipy import optimize

    highest = np.geomspace(1.02, 200.0, 400)  # in units of the distance that just has the spread
    for lowest in np.linspace(1.0, lengths.mean, 100, endpoint=False):
        p90 = _beta(lengths, lowest, highest).ppf(0.9)
        best = int(np.nanargmax(p90))
        if p90[best] >= lengths.p90 >= p90[-1]:
            scale = optimize.brentq(
                lambda scale, low=lowest: float(_beta(lengths, low, scale).ppf(0.9)) - lengths.p90,
                highest[best],
                highest[-1],
            )
            return _beta(lengths, lowest, scale)
    raise InputError(f"length statistics {tuple(lengths)}: no beta distribution has them")


def _beta(
    lengths: Lengths, lowest: float, scale: "float | NDArray[np.float64]"
) -> "stats.rv_frozen":
    """Beta on [lowest, mean + scale x std^2 / (mean - lowest)]; a scale of 1 is two points."""
    from scipy import stats

    below = lengths.mean - lowest
    width = below + scale * lengths.std**2 / below
    mean = below / width
    concentration = mean * (1 - mean) / (lengths.std / width) ** 2 - 1
    return stats.beta(mean * concentration, (1 - mean) * concentration, loc=lowest, scale=width)
