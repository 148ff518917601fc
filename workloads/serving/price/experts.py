"""How many experts of a mixture-of-experts layer a batch of tokens needs.

Experts are not equally popular: their popularity is log-normal with sigma 1.4, and a token takes
its top k by popularity times Gumbel noise (in logarithms), which is sampling without replacement.
Sigma is the value that meets the coverage measured on Qwen3-30B-A3B with ShareGPT (table 1 of the
layered-prefill paper) within 4 points; it was fitted to that table, for 128 experts and 8 active,
and is taken over to other models. Tokens count as independent of each other.
"""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from workloads.serving.price.cost import Float64s, Int64s

POPULARITY_SIGMA = 1.4


@cache
def inclusion(count: int, active: int) -> Float64s:
    """Probability of each of ``count`` experts to be among the ``active`` of a token, falling.

    Popularities are the quantiles of the log-normal distribution, one for each expert. Top-k by
    Gumbel noise takes the experts whose exponential clocks, as fast as they are popular, ring
    first; the k-th rings at nearly the time at which k are expected to have rung. That is within
    one point of sampling for 32 experts and half a point for 128.
    """
    if active == count:
        return np.ones(count)
    from scipy import optimize, special  # slow to import: for few models only

    ranks = (np.arange(count, 0, -1) - 0.5) / count
    popularity = np.exp(POPULARITY_SIGMA * special.ndtri(ranks))
    time = optimize.brentq(
        lambda time: float(-np.expm1(-popularity * time).sum()) - active, 0.0, 1e9, xtol=1e-12
    )
    return np.asarray(-np.expm1(-popularity * time), dtype=np.float64)


@lru_cache(maxsize=1 << 16)
def distinct_experts(count: int, active: int, tokens: int) -> float:
    """Expected number of different experts that ``tokens`` tokens need."""
    return float(expected_loads(count, active, tokens)[0].sum())


def expected_loads(count: int, active: int, tokens: int) -> tuple[Float64s, Float64s]:
    """Of each expert, by falling popularity, what a batch of tokens makes of it.

    Returns:
        Probability that it is needed, and expected tokens that it gets.
    """
    chance = inclusion(count, active)
    return -np.expm1(tokens * np.log1p(-_below_one(chance))), tokens * chance


class Chosen(NamedTuple):
    """What a batch needs of experts some of which are kept.

    Attributes:
        kept: Expected number of those that are kept.
        hottest_other: Probability that it needs the most popular one of the others; 0: none is.
        any_other: The same of any of the others.
    """

    kept: float
    hottest_other: float
    any_other: float


def chosen(count: int, active: int, tokens: int, kept: int, *, hottest: bool) -> Chosen:
    """What a batch needs of experts of which the ``kept`` most popular ones are kept, or any."""
    needed, _ = expected_loads(count, active, tokens)
    if kept == count:
        return Chosen(float(needed.sum()), 0.0, 0.0)
    if hottest:
        return Chosen(*map(float, (needed[:kept].sum(), needed[kept], needed[kept:].mean())))
    mean = float(needed.mean())
    return Chosen(mean * kept, float(needed[0]), mean)


def device_of(count: int, devices: int) -> Int64s:
    """Expert parallelism: the device of each expert.

    They are dealt out in order of popularity, there and back, so that devices are as even as a
    placement by known popularity makes them.
    """
    place = np.arange(count) % (2 * devices)
    return np.minimum(place, 2 * devices - 1 - place)


def _below_one(chance: Float64s) -> Float64s:
    return np.minimum(chance, 1 - 1e-15)
