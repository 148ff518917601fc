"""Between what a change may lie, by the measured error of the change itself.

The first variant is taken at both ends of its prices' error and in between. At each of these, the
other's kernels take as many times longer as it says, give or take the error of that ratio.
"""

from collections.abc import Callable, Sequence
from math import fsum
from pathlib import Path
from typing import Any

from tlm.chips.parts import PacketRouter
from tlm.level_errors import Between
from wafertlm.compare.cases import Ground, Work
from wafertlm.compare.change import OnGround, Paired, Ran, Source
from wafertlm.compare.pairs import Both, Pairs
from wafertlm.serving.interval import FIGURES
from wafertlm.serving.run import Served
from wafertlm.serving.service import Service
from workloads.serving.price.parts import AnyPart
from workloads.serving.price.tile_price import End, TilePrice

#: Where the first variant's prices are taken: None is in the middle.
_STARTS: tuple[End | None, ...] = ("low", None, "high")
_ENDS: tuple[End, End] = ("low", "high")


def paired(first: Ran, other: Ran) -> Paired | None:
    """What the errors of the change from one run to another say.

    None where both rest on the same, and where nothing can be measured: errors of the two runs add
    up then.
    """
    if [each.rests_on for each in first.sources] == [each.rests_on for each in other.sources]:
        return None
    if first.served is not None and other.served is not None:
        return _of_serving(first.served, other.served)
    return _of_kernels(first.sources, other.sources)


def _folder() -> Path:
    from cosim.verilated.cache import cache_folder  # slow to import: only to measure

    return cache_folder()


def _of_kernels(mine: Sequence[Source], its: Sequence[Source]) -> Paired | None:
    """Of runs whose time is that of their kernels."""
    if len(mine) != len(its):
        return None
    both = [*zip(mine, its, strict=True)]
    known = [
        (a.kernel, b.kernel, a.share)
        for a, b in both
        if a.kernel and b.kernel and a.kernel.level == b.kernel.level and a.rests_on != b.rests_on
    ]
    if not known:
        return None
    first, other, _ = known[0]
    pairs = Pairs(first.ground, other.ground, first.level, _folder())
    pairs.measure(Both(a.work, b.work, share) for a, b, share in known)
    ends = [_times(both, pairs, start) for start in _STARTS]
    factors = [each for each in ends if each is not None]
    if len(factors) < len(ends):
        return None
    times = Between(min(each.low for each in factors), max(each.high for each in factors))
    return Paired(times, {}, pairs.records)


def _times(
    both: Sequence[tuple[Source, Source]], pairs: Pairs, start: End | None
) -> Between | None:
    """Between what parts of itself the ratio of two times lies, the first's at an end of its error.

    None where no error is known of a part.
    """
    before, low, high = [], [], []
    for one, two in both:
        mine = one.between if one.kernel is None else one.kernel.between
        here = 1.0 if start is None or mine is None else getattr(mine, start)
        if one.rests_on == two.rests_on:
            there: Between | None = Between(here, here)
        else:
            there = _beside(pairs, one.kernel, two.kernel, here) or two.between
        if there is None:
            return None
        before.append(one.share * here)
        low.append(two.share * there.low)
        high.append(two.share * there.high)
    return Between(fsum(low) / fsum(before), fsum(high) / fsum(before))


def _beside(
    pairs: Pairs, first: OnGround | None, other: OnGround | None, here: float
) -> Between | None:
    """Between what a kernel may lie where the first variant's is so many times what it is."""
    if first is None or other is None:
        return None
    change = other.work.cycles / first.work.cycles - 1
    found = pairs.between(first.work, other.work, change)
    return None if found is None else Between(here * found.low, here * found.high)


def _of_serving(first: Served, other: Served) -> Paired | None:
    """Of served loads: the same requests, with the other's prices beside the first's."""
    mine, its = _prices(first.service), _prices(other.service)
    if not mine or len(mine) != len(its) or first.service.shape != other.service.shape:
        return None
    pools = [*zip(mine, its, strict=True)]
    if any(a.residency != b.residency or a.prices.level != b.prices.level for a, b in pools):
        return None
    routers = [each.service.custom for each in (first, other)]
    if any(each is not None and not each.bounds_times for each in routers):
        return None
    beside = [_Beside(a, b, _pairs(first.service, other.service, a, b)) for a, b in pools]
    for each, counted in zip(beside, first.made.values(), strict=True):
        each.measure(each.first.parts(counted))  # type: ignore[arg-type]  # stages, of tiles
    runs = [_ran_from(start, first, other.service, beside) for start in _STARTS]
    records = [record for each in beside for record in each.pairs.records]
    figures: dict[str, tuple[float, float] | None] = {}
    # Of a kernel that nothing was measured of, something has to be known by itself.
    unknown = any(each.not_compared for each in (*mine, *its))
    effects = (each.service.own_effect for each in (first, other))
    unknown |= any(each is not None and not each.is_known for each in effects)
    if unknown and any(record["why_not"] for record in records):
        return Paired(None, figures, records)
    for name in FIGURES:
        told = f"{name}.mean" if isinstance(first.figures[name], dict) else name
        figures[told] = _between([_change(name, *each) for run in runs for each in run])
    return Paired(None, figures, records)


def _prices(service: Service) -> list[TilePrice]:
    """Prices of the pools; none of what is not a grid of tiles that runs kernel after kernel."""
    prices = [price for price in service.tiles if isinstance(price, TilePrice)]
    return prices if len(prices) == len(service.pools) else []


def _pairs(one: Service, two: Service, first: TilePrice, other: TilePrice) -> Pairs:
    return Pairs(_ground(one, first), _ground(two, other), first.prices.level, _folder())


def _ground(service: Service, price: TilePrice) -> Ground:
    chip, custom = price.prices.chip, service.custom
    if custom is None:
        return Ground(chip)
    router = PacketRouter(custom.timing_on(chip), price.place.timing.fifo_depth)
    return Ground(chip, router, custom.worst_error_pct)


class _Beside:
    """Prices of a pool of a variant, beside those of the first.

    Args:
        first: The first variant's.
        other: This one's.
        pairs: Errors of the change.
    """

    def __init__(self, first: TilePrice, other: TilePrice, pairs: Pairs) -> None:
        self.first, self.other, self.pairs = first, other, pairs

    def measure(self, parts: dict[AnyPart, int]) -> None:
        """Measure the errors of all kernels of some parts, and how often each ran."""
        self.pairs.measure(
            Both(one, two, count * one.cycles)
            for part, count in parts.items()
            for one, two in zip(_works(self.first, part), _works(self.other, part), strict=True)
        )

    def prices(self, start: End | None) -> TilePrice:
        """This variant's, between bounds by the first's at an end of its error."""
        return self.other.by(self.other.prices.bounded(self._bounds(start)))

    def _bounds(self, start: End | None) -> Callable[[AnyPart], tuple[float, float]]:
        which = {"low": 0, None: 1, "high": 2}[start]
        mine, its = self.first.prices, self.other.prices

        def bounds(part: AnyPart) -> tuple[float, float]:
            between = its.interpolation_beside(mine, part)
            low = high = 0.0
            for one, two, before, after in zip(
                _works(self.first, part), _works(self.other, part),
                mine.of_kernels(part), its.of_kernels(part), strict=True,
            ):  # fmt: skip
                found = self.pairs.between(one, two, after[1] / before[1] - 1)
                if found is None:  # errors add up
                    low, high = low + after[0], high + after[2]
                    continue
                cycles = after[1] * before[which] / before[1]
                low += cycles * found.low / (1 + between)
                high += cycles * found.high * (1 + between)
            return low, high

        return bounds


def _works(price: TilePrice, part: AnyPart) -> list[Work]:
    plans = price.prices.plans(part)
    return [Work.of(mapping.place, mapping.choices, mapped) for mapping, mapped in plans]


_Run = dict[str, Any]


def _ran_from(
    start: End | None, first: Served, other: Service, beside: Sequence[_Beside]
) -> list[tuple[_Run, _Run]]:
    """Figures of the first variant at an end of its error, and of the other at both of its own."""
    before = first.figures if start is None else first.service.at_end(start).mean()
    after = other.priced_by([each.prices(start) for each in beside])
    return [(before, after.at_end(end).mean()) for end in _ENDS]


def _change(name: str, before: _Run, after: _Run) -> float | None:
    """Change of a figure in per cent; None where a run is overloaded, and without intervals."""
    if before["overloaded"] or after["overloaded"]:
        return None
    one, two = (
        run[name]["mean"] if isinstance(run[name], dict) else run[name] for run in (before, after)
    )
    return None if one is None or two is None else 100 * (two / one - 1)


def _between(changes: Sequence[float | None]) -> tuple[float, float] | None:
    known = [change for change in changes if change is not None]
    return (min(known), max(known)) if len(known) == len(changes) else None
