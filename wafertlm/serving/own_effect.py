"""What those traits of custom routers do to times that the level of their prices does not model.

No stored comparison of levels has them. So small cases of each kernel of the load run at level
`at`, with the routers and with the same ones without these traits (docs/compare.md has the cases).
"""

from dataclasses import replace
from typing import Any

from tlm.chips import Chip
from tlm.chips.parts import PacketRouter
from wafertlm.compare.cases import Ground, Work
from wafertlm.compare.pairs import Both, Pairs
from wafertlm.serving.effect import OwnEffect
from wafertlm.serving.service import Made, Service
from wafertlm.unmodelled import without_unmodelled
from workloads.machine.dtypes import activation_dtype
from workloads.serving.price.mapping import Mapped


def own_effect(service: Service, made: Made) -> OwnEffect:
    """Measure it on the kernels of all iterations of a run, once; what was measured is kept.

    Args:
        service: What ran, with custom routers.
        made: What its iterations were made of.
    """
    worst, cases, kernels = 0.0, 0, 0
    missing: list[str] = []
    for price, parts in service.parts(made):
        pairs = _pairs(service)
        pairs.measure(
            _both(service, on, mapped, count)
            for part, count in parts.items()
            for on, mapped in price.prices.plans(part)
        )
        errors = pairs.errors.values()
        worst = max([worst, *(100 * abs(each.worst.error) for each in errors)])
        cases += sum(len(each.cases) for each in errors)
        kernels += len(errors)
        missing += [each["kernel"] for each in pairs.records if each["why_not"] is not None]
    return OwnEffect(worst, cases, kernels, tuple(dict.fromkeys(missing)))


def _pairs(service: Service) -> Pairs:
    """The routers without the traits, and with them."""
    from cosim.verilated.cache import cache_folder  # slow to import: only to measure

    custom, chip = service.custom, service.chip
    assert custom is not None and isinstance(chip, Chip)  # as checked
    timing = custom.timing_on(chip)
    bound, chip = custom.cut(timing).fifo_depth, chip.for_dtype(activation_dtype(chip))
    plain, own = (
        Ground(chip, PacketRouter(each, bound)) for each in (without_unmodelled(timing), timing)
    )
    return Pairs(plain, own, service.options.level, cache_folder())


def _both(service: Service, on: Any, mapped: Mapped, count: int) -> Both:
    choices = getattr(on, "choices", service.options.choices)
    own = Work.of(on.place, choices, mapped)
    place = replace(on.place, timing=without_unmodelled(on.place.timing))
    return Both(own._replace(place=place), own, count * own.cycles)
