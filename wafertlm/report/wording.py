"""Numbers and errors as the report writes them."""

from collections.abc import Mapping
from typing import Any

from wafertlm.report.records import Error

#: What stands where there is nothing.
NOTHING = "\N{EN DASH}"
#: Figures of results by the words for them, and their units.
_NAMES = {
    "ttft_s": ("time to first token", "s"),
    "tbt_ms": ("time between tokens", "ms"),
    "e2e_s": ("time end to end", "s"),
    "queue_s": ("time in the queue", "s"),
    "throughput_tok_s": ("throughput", "tokens/s"),
    "goodput_rps": ("goodput", "requests/s"),
    "slo_attainment": ("share that attains the SLOs", ""),
    "latency_cycles": ("latency in the network", "cycles"),
    "source_queue_cycles": ("wait at the source", "cycles"),
    "accepted": ("accepted load", "flits/node/cycle"),
    "offered": ("offered load", "flits/node/cycle"),
    "saturation": ("saturation load", "flits/node/cycle"),
    "energy_j": ("energy", "J"),
    "energy_mj_per_output_token": ("energy of an output token", "mJ"),
    "energy_mj_per_token": ("energy of a token", "mJ"),
    "utilization": ("share of peak that is used", ""),
    "seconds": ("time", "s"),
    "gates.router.cells": ("cells of a router", ""),
    "gates.router.area_um2": ("area of a router", "µm²"),
    "gates.chip.cells": ("cells of the chip's routers", ""),
    "gates.chip.area_um2": ("area of the chip's routers", "µm²"),
}


def named(metric: str) -> str:
    """A figure in words with its unit, where there are any for it."""
    table, _, part = (metric, "", "") if metric in _NAMES else metric.partition(".")
    if table not in _NAMES:
        return metric
    name, unit = _NAMES[table]
    return f"{name}{f', {part}' if part else ''}{f' ({unit})' if unit else ''}"


def count(value: float) -> str:
    """A whole number in groups of three digits."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def figure(value: float | None, digits: int = 3) -> str:
    """A number to some significant digits; a dash where there is none."""
    if value is None:
        return NOTHING
    if abs(value) >= 10**digits:
        return count(value)
    return f"{value:.{digits}g}"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if not value:
        return figure(value)
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{figure(value / scale)}\N{NO-BREAK SPACE}{unit}"
    return f"{figure(value / 1e-9)}\N{NO-BREAK SPACE}ns"


def percent(value: float | None) -> str:
    """A signed change in per cent."""
    if value is None:
        return NOTHING
    text = f"{value + 0.0:+.3g}".replace("-", "\N{MINUS SIGN}")
    return f"{text}\N{NO-BREAK SPACE}%"


def between(low: float | None, high: float | None, told: Any = figure) -> str:
    """An interval; nothing where it is not known."""
    return "" if low is None or high is None else f"{told(low)} to {told(high)}"


def plain(value: Any) -> str:
    """Anything in words."""
    if value is None:
        return NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(plain(one) for one in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {plain(one)}" for name, one in value.items())
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def trust(error: Error | None) -> str:
    """How far a figure may be trusted, in sentences."""
    if error is None:
        return "This command tells no error."
    level = {
        None: "The levels used were not compared with anything below them: trust orderings before "
        "figures.",
        0.0: "The levels used are exact in the checked cases around it.",
    }.get(
        error.level_pct,
        f"The levels used are within {figure(error.level_pct)} % in the checked cases around it.",
    )
    profile = (
        "The chip's profile was not checked against published measurements of this."
        if error.profile_pct is None
        else f"The chip's profile is {figure(error.profile_pct)} % off published measurements, on "
        "average."
    )
    return f"{level} {profile}"
