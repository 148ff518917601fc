"""How far a figure changes from one run to another, and between what errors let that be."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tlm.level_errors import Between
from wafertlm.compare.cases import Ground, Work
from wafertlm.output import TIMES
from wafertlm.serving.interval import FIGURES
from wafertlm.serving.run import Served

#: Figures that are proportional to the inverse of times, and all that the error of a time is of.
_INVERSE = ("utilization", "memory_utilization", "accepted", "saturation")
_TIMED = ("cycles", "seconds", "latency_cycles", "source_queue_cycles", *_INVERSE)
#: Figures that are counted, at all levels alike.
_COUNTED = ("memory_bytes", "messages", "flit_hops", "packets", "offered")
#: Parts of a result that are no figures to compare.
_BESIDE = {
    "options", "contents", "provenance", "error", "notes", "kernels", "plan", "network", "tiles",
    "memory", "capacity", "interval", "ci95", "seconds_low", "seconds_high", "timeline", *TIMES,
}  # fmt: skip


def has_bounds(command: str, metric: str) -> bool:
    """Whether bounds of a command's figure are told where errors are known."""
    if command == "serve":
        return metric.removesuffix(".mean") in FIGURES
    return metric.startswith(_TIMED)


class OnGround(NamedTuple):
    """A kernel of a chip of tiles, on whose small cases two variants can be held together.

    Attributes:
        work: The kernel.
        ground: Where it runs.
        level: That of its network.
        between: Between what its time may lie if routers are like those that were compared.
    """

    work: Work
    ground: Ground
    level: str
    between: Between


class Source(NamedTuple):
    """A part of a run's time, and how far it may be off.

    Attributes:
        share: Of the time.
        between: Between what its time may lie, as parts of it; None where nothing was compared.
        rests_on: What ran, and all constants: where these are equal the errors are, too.
        kernel: The kernel that it is; None of other parts, and of chips without such cases.
    """

    share: float
    between: Between | None
    rests_on: Any
    kernel: OnGround | None = None


class Ran(NamedTuple):
    """A variant's run.

    Attributes:
        result: As its command prints it.
        sources: What its time is made of.
        between: Between what figures may lie, by name, where more than kernels makes them; None of
            runs whose time is that of their kernels alone.
        served: What served, if that is what ran.
        unchecked: How the names of timed figures begin that the errors of the sources are not of.
    """

    result: dict[str, Any]
    sources: list[Source]
    between: Mapping[str, tuple[float, float]] | None = None
    served: Served | None = None
    unchecked: tuple[str, ...] = ()

    @property
    def figures(self) -> dict[str, float | None]:
        """Its figures by name; those in tables ``table.name``."""
        return dict(_flat(self.result))


class Paired(NamedTuple):
    """What errors of the change itself say, where they were measured.

    Attributes:
        times: Between what parts of what it is the ratio of both times may lie; None of serving.
        figures: Between what figures of serving change, in per cent; None where an end is
            overloaded.
        records: What was measured, kernel by kernel.
    """

    times: Between | None
    figures: Mapping[str, tuple[float, float] | None]
    records: Sequence[dict[str, Any]]

    def between(self, metric: str, changed_pct: float) -> tuple[float, float] | None:
        """Between what a figure changes, in per cent."""
        if self.times is None or not metric.startswith(_TIMED):
            return self.figures.get(metric)
        low, high = _of_figure(metric, self.times)
        ratio = 1 + changed_pct / 100
        return 100 * (ratio * low - 1), 100 * (ratio * high - 1)


def change(metric: str, first: Ran, other: Ran, paired: Paired | None = None) -> dict[str, Any]:
    """Change of a figure in per cent, and between what the errors of the levels let it be.

    Where the errors of the change itself were measured, these do. Else errors of parts that rest on
    the same cancel, and others add up. Without an error of one of those, or of the figure itself,
    the bounds are None.
    """
    before, after = first.figures.get(metric), other.figures.get(metric)
    told: dict[str, Any] = {"from": before, "to": after}
    told |= dict.fromkeys(("change_pct", "low_pct", "high_pct", "significant"))
    if before is None or after is None or (before == 0 and after != 0):
        return told
    scale = 100 / before if before else 0.0
    changed_pct = (after - before) * scale
    told["change_pct"] = changed_pct
    mine, its = apart(first.sources, other.sources)
    here, there = _between(metric, first, mine), _between(metric, other, its)
    changes_pct: list[float] = []
    if paired is not None and not metric.startswith(_COUNTED):
        ends = paired.between(metric, changed_pct)
        changes_pct = [] if ends is None else [changed_pct, *ends]
    elif here is not None and there is not None and (mine or its):
        changes_pct = [(there[0] - here[1]) * scale, (there[1] - here[0]) * scale]
    elif here is not None and there is not None and first.between is not None:
        # Prices are the same: both runs are at the same end.
        at_ends = [100 * (a - b) / b for b, a in zip(here, there, strict=True) if b]
        changes_pct = [changed_pct, *at_ends]
    elif not (mine or its) and (first.between is None or first.figures == other.figures):
        changes_pct = [changed_pct]
    if changes_pct:
        low, high = min(changes_pct), max(changes_pct)
        told |= {"low_pct": low, "high_pct": high, "significant": low > 0 or high < 0}
    return told


def _between(metric: str, ran: Ran, sources: Sequence[Source]) -> tuple[float, float] | None:
    """Between what a run's figure may lie, by the errors of some sources; None: not known."""
    value = ran.figures[metric]
    assert value is not None
    if ran.between is not None:
        return ran.between.get(metric)
    if metric.startswith(_COUNTED):
        return value, value
    ends = [(each.share, each.between) for each in sources if each.between is not None]
    if not metric.startswith(_TIMED) or len(ends) < len(sources):
        return None
    if sources and metric.startswith(ran.unchecked):
        return None
    less, more = (
        sum(share * (getattr(between, end) - 1) for share, between in ends)
        for end in Between._fields
    )
    low, high = _of_figure(metric, Between(1 + less, 1 + more))
    return value * low, value * high


def _of_figure(metric: str, times: Between) -> Between:
    """Between what parts of itself a figure may lie, by those of the time that it is made of."""
    return Between(1 / times.high, 1 / times.low) if metric.startswith(_INVERSE) else times


def apart(
    mine: Sequence[Source], its: Sequence[Source]
) -> tuple[Sequence[Source], Sequence[Source]]:
    """Sources without those that rest on the same in both runs."""
    if len(mine) != len(its):
        return mine, its
    pairs = [pair for pair in zip(mine, its, strict=True) if pair[0].rests_on != pair[1].rests_on]
    return [each for each, _ in pairs], [each for _, each in pairs]


def _flat(result: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, float | None]]:
    for name, figure in result.items():
        if not inside and name in _BESIDE:
            continue
        if isinstance(figure, Mapping):
            yield from _flat(figure, f"{inside}{name}.")
        elif figure is None or (isinstance(figure, int | float) and not isinstance(figure, bool)):
            yield inside + name, figure
