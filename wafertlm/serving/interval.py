"""Between what figures of serving may lie: the same requests at both ends of the prices' error."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wafertlm.output import Progress
from wafertlm.serving.error import not_known
from wafertlm.serving.service import Service
from workloads.serving.engine.run import Watch, seldom_collected
from workloads.serving.price.tile_price import End

#: Figures of which it is told, of those with a distribution for the mean.
FIGURES = ("ttft_s", "tbt_ms", "throughput_tok_s", "e2e_s")
_ENDS: tuple[End, ...] = ("low", "high")
_RESTS_ON = {
    "perf": "interval: by how far closed forms are from level lt, and lt from at, in the checked "
    "cases around the plan of each kernel; how far at is from a chip is not in it",
    "lt": "interval: by how far interpolation between measured sizes is from level lt, in the "
    "worst of some checks, and lt from at in the checked cases around the plan of each kernel; "
    "how far at is from a chip is not in it",
    "at": "interval: by how far interpolation between measured sizes is from level at, in the "
    "worst of some checks; how far at is from a chip is not in it",
}


class Interval(NamedTuple):
    """What is known.

    Attributes:
        figures: ``low`` and ``high`` by figure, None of an end that cannot be told, and a ``note``
            where there is something to say; None if nothing is known.
        notes: On what it rests, or why nothing is known.
    """

    figures: dict[str, Any] | None
    notes: list[str]


@seldom_collected()
def interval(
    service: Service,
    centre: Mapping[str, Any],
    rate: float | None,
    progress: Progress | None = None,
) -> Interval:
    """The least and the greatest of the means at low, centre and high prices, if errors are known.

    Args:
        service: What was run.
        centre: Its figures.
        rate: Of arrivals; None: as asked for.
        progress: Hears of the requests of each run.
    """
    runs = [centre]
    for end in _ENDS:
        there = service.at_end(end)
        runs.append(there.mean(rate, Watch(progress)))
    if unknown := not_known(service):
        return Interval(None, [unknown])
    figures: dict[str, Any] = {name: _between(name, runs) for name in FIGURES}
    if any(run["overloaded"] for run in runs):
        figures["note"] = "null where an end is overloaded: times there depend on how many came"
    return Interval(figures, [_RESTS_ON[service.options.level]])


def _between(name: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The least and the greatest; None of a run that is overloaded, and without intervals."""
    found = [
        (run[name]["mean"] if isinstance(run[name], Mapping) else run[name], run) for run in runs
    ]
    if any(value is None for value, _ in found):  # a single token has no interval
        return {"low": None, "high": None}
    least, greatest = (of(found, key=lambda each: each[0]) for of in (min, max))
    ends = {"low": least, "high": greatest}
    return {end: None if run["overloaded"] else value for end, (value, run) in ends.items()}
