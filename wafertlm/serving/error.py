"""How far off the time of the iterations of a run may be, and what that time rests on."""

from collections.abc import Sequence
from math import fsum
from typing import Any, NamedTuple, cast

from tlm.errors import InputError
from tlm.level_errors import off_pct
from wafertlm.rests_on import subsystem
from wafertlm.serving.service import Made, Service
from workloads.kernels.catalogue import KERNELS
from workloads.machine.place import Place
from workloads.machine.spent import Spent
from workloads.serving.engine.run import seldom_collected
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.models import OnTiles
from workloads.serving.price.part_price import PartPrices
from workloads.serving.price.parts import Part
from workloads.serving.price.tile_price import End

#: Shares of the time are those of so many parts, which take most of it.
_MOST = 64
_ENDS: tuple[End, End] = ("low", "high")


class TimeError(NamedTuple):
    """How far off the time of the iterations may be, by the level of their prices.

    Attributes:
        pct: `off_pct`; None of GPUs, and where nothing was compared.
        notes: Why it is None.
    """

    pct: float | None
    notes: list[str]


@seldom_collected()
def time_error(service: Service, made: Made) -> TimeError:
    """Error of the time of all iterations of a run."""
    if not service.tiles:
        return TimeError(None, [])
    try:
        # Of whole iterations: a part that runs beside others has no time of its own.
        centre = _seconds(service.tiles, made)
        low, high = (_seconds([each.at_end(end) for each in service.tiles], made) for end in _ENDS)
    except InputError as error:
        return TimeError(None, [f"level_pct and interval: not known: {error}"])
    if unknown := not_known(service):
        return TimeError(None, [unknown])
    return TimeError(off_pct(centre, low, high), [])


def _seconds(prices: Sequence[OnTiles], made: Made) -> float:
    """Time of all iterations of the pools."""
    counted = zip(prices, made.values(), strict=True)
    return fsum(price.seconds_of(cast(Any, iterations)) for price, iterations in counted)


def not_known(service: Service) -> str:
    """Why no error is known, in words; empty if one is."""
    missing = sorted({kernel for price in service.tiles for kernel in price.not_compared})
    routers, why = service.custom, ""
    if missing:
        what = "closed form" if service.options.level == "perf" else "run at lt"
        why = f"no {what} of {', '.join(missing)} has been compared"
    elif routers is not None and not routers.bounds_times:
        off_pct = f"{routers.worst_error_pct:.3g}"
        why = f"the calibration of {routers.spec.file.name} is {off_pct} % off at worst"
    elif routers is not None and service.own_effect is not None and not service.own_effect.is_known:
        why = f"{routers.why_unknown(service.options.level)}; {service.own_effect.told}"
    return f"level_pct and interval: not known: {why}" if why else ""


def rests_on(service: Service, made: Made) -> dict[str, dict[str, Any]] | None:
    """Per subsystem the share of the time, the level, and the hash of its Verilog; None of GPUs.

    Shares are those of the closed forms, of the parts that take most of the time.
    """
    if not service.tiles:
        return None
    taken = [
        (price.prices.of(part).cycles * count, price.prices, part)
        for price, parts in service.parts(made)
        for part, count in parts.items()
    ]
    # What goes between dies has no kernels.
    between = fsum(cycles for cycles, prices, part in taken if not prices.plans(part))
    links = between / fsum(cycles for cycles, _, _ in taken)
    shares: list[tuple[float, float, float]] = []
    on_tiles = [each for each in taken if each[1].plans(each[2])]
    for cycles, prices, part in sorted(on_tiles, key=_largest_first)[:_MOST]:
        spent = [_spent(mapping.place, mapped) for mapping, mapped in prices.plans(part)]
        scale = cycles / sum(each.all for each in spent)
        communication = sum(each.communication for each in spent)
        waiting = sum(each.memory for each in spent)
        shares.append((scale * communication, scale * waiting, cycles))
    noc, memory, together = map(fsum, zip(*shares, strict=True))
    inside, verilog = 1 - links, service.origin["rtl_hash"]
    found = {
        "noc": subsystem(inside * noc / together, service.options.level, verilog),
        "memory": subsystem(inside * memory / together, "perf", None),
        "compute": subsystem(inside * (1 - (noc + memory) / together), "at", None),
    }
    return found | ({"links": subsystem(links, "perf", None)} if links else {})


def _largest_first(taken: tuple[float, PartPrices, Part]) -> tuple[float, str]:
    return -taken[0], str(taken[2])


def _spent(place: Place, mapped: Mapped) -> Spent:
    """What the cycles of a kernel went into, by its closed form."""
    kernel, plan = KERNELS[mapped.kernel], mapped.plan
    without = kernel.closed_form(kernel.without_memory(plan), place.timing)
    return Spent.in_closed_form(
        mapped.cycles, plan.tile_matrix_cycles, plan.tile_vector_cycles, without
    )
