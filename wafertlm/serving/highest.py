"""The highest rate that attains the objectives, and whether it is one that can be kept up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tlm.errors import InputError
from wafertlm.output import Progress
from wafertlm.serving.load import rate_of
from wafertlm.serving.objectives import shortest_iterations
from wafertlm.serving.service import Service
from workloads.serving.engine.run import Watch
from workloads.serving.load.capacity import Capacity, find_rate
from workloads.serving.load.traces import MAX_SPAN_S, PS_PER_S

_FRONTIER = ("ttft_s", "tbt_ms")


@dataclass(frozen=True, slots=True)
class Highest:
    """What a search of the rate has found.

    Attributes:
        rate: Requests a second.
        capacity: It, and all rates that were tried.
        times: Mean times to first tokens and between tokens, by rate.
        given_rate: Rate of the trace as it is; None of a generated load.
        arrivals_s: From the first arrival to the last, at that rate.
    """

    rate: float
    capacity: Capacity
    times: Mapping[float, Mapping[str, float | None]]
    given_rate: float | None
    arrivals_s: float

    @property
    def rate_scale(self) -> float | None:
        """``--rate-scale`` that runs the trace so; None of a generated load."""
        return None if self.given_rate is None else self.rate / self.given_rate

    def record(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """``capacity`` of the result.

        Args:
            figures: Those of the run at that rate.
        """
        trials = [trial._asdict() | dict(self.times[trial.rate]) for trial in self.capacity.trials]
        return {
            "rate_rps": self.rate,
            "rate_scale": self.rate_scale,
            "arrivals_s": self.arrivals_s,
            "burst": self.is_burst(figures),
            "trials": trials,
        }

    def is_burst(self, figures: Mapping[str, Any]) -> bool:
        """Whether the load ends before queues have grown: overload, or shorter than a request."""
        e2e_s: float = figures["e2e_s"]["mean"]
        return bool(figures["overloaded"]) or self.arrivals_s < e2e_s

    def notes(self, figures: Mapping[str, Any]) -> list[str]:
        """What a user should know of the rate."""
        notes = []
        if self.rate_scale is not None:
            notes.append(
                f"highest rate: {self.rate:.4g} requests a second are the trace at --rate-scale "
                f"{self.rate_scale:.4g}"
            )
        if self.is_burst(figures):
            e2e_s = figures["e2e_s"]["mean"]
            notes.append(
                f"highest rate: an overload that ends in time, no capacity: requests come for "
                f"{self.arrivals_s:.3g} s, and take {e2e_s:.3g} s each; more of them, by "
                "--requests or a longer trace, attain less"
            )
        return notes


def highest_rate(service: Service, progress: Progress | None) -> Highest:
    """Search the highest rate at which enough requests attain the objectives.

    Raises:
        InputError: if there is none.
    """
    options = service.options
    seeds = options.every_seed
    times: dict[float, dict[str, float | None]] = {}

    def attainment_at(rate: float) -> float:
        runs = [service.run(seed, rate, Watch(progress)) for seed in seeds]
        times[rate] = {name: _mean([run[name]["mean"] for run in runs]) for name in _FRONTIER}
        return float(sum(run["slo_attainment"] for run in runs)) / len(runs)

    own = options.rate_rps
    if own is None:  # that of a trace, before --rate-scale
        own = rate_of(service.load.requests(options.seed)) / options.rate_scale
    start = own * options.rate_scale
    longest_ps = max(int(service.load.requests(seed, start).arrival_ps[-1]) for seed in seeds)
    lowest = start * longest_ps / (MAX_SPAN_S * PS_PER_S)
    found = find_rate(attainment_at, start, options.attainment, lowest)
    if found.rate is None:
        tried = found.trials[-1].rate
        raise InputError(
            f"--find-rate: found no rate at which {options.attainment:.0%} of the requests attain "
            f"the objectives; the lowest tried: {tried:.3g} a second; "
            f"{shortest_iterations(service).told}"
        )
    arrivals_s = longest_ps / PS_PER_S * start / found.rate
    given = own if options.rate_rps is None else None
    return Highest(found.rate, found, times, given, arrivals_s)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]  # a single token has no interval
    return sum(known) / len(known) if known else None
