"""What a served load's figures do not say by themselves, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from tlm.chips import Chip
from tlm.chips.area import core_mm2
from wafertlm.plmr import RunKernel, plmr_warnings
from wafertlm.serving.service import Made, Service
from workloads.kernels.catalogue import KERNELS


def warnings(service: Service, made: Made) -> list[str]:
    """Properties of PLMR that kernels of a run break, on tiles whose routers hold few routes.

    Args:
        service: What ran.
        made: What its iterations were made of.
    """
    chip = service.chip
    if not isinstance(chip, Chip) or chip.limits.routing_paths is None:
        return []
    plans = dict.fromkeys(
        (mapped.kernel, where.place, mapped.plan)
        for price, parts in service.parts(made)
        for part in parts
        for where, mapped in price.prices.plans(part)
    )
    ran = (RunKernel.of(*each, KERNELS[each[0]].program(each[2])) for each in plans)
    return plmr_warnings(chip, ran)


def notes_of_load(figures: Mapping[str, Any]) -> list[str]:
    """That requests came too fast.

    Args:
        figures: Means over the seeds, as `workloads.serving.result` has them.
    """
    if not figures["overloaded"]:
        return []
    return [
        "overloaded: requests came faster than they were served; more than one in twenty had "
        "yet to start when the last came, so times depend on how many there were"
    ]


def notes_of_chip(service: Service) -> list[str]:
    """Areas that are unknown, tiles that stand still, and what tiles keep."""
    idle = _idle_notes(service.groups.get("groups", {}), service.chip)
    return [*_area_notes(service), *idle, *_residency_notes(service)]


def notes_of_routers(service: Service) -> list[str]:
    """What prices do not model of custom routers, and how that is counted."""
    routers, effect = service.custom, service.own_effect
    if routers is None or effect is None or not effect.is_known:
        return []
    return [f"interval: {routers.why_unknown(service.options.level)}; {effect.told}"]


def _area_notes(service: Service) -> list[str]:
    chip = service.chip
    if not isinstance(chip, Chip) or chip.area is None or core_mm2(chip) is not None:
        return []
    return ["area: the chip's array and memory are beyond the points of its profile's [area]"]


def _idle_notes(groups: Mapping[str, Any], chip: Any) -> list[str]:
    # Each of two pools has the tiles of the chip that neither has.
    idle = groups.get("prefill", groups).get("idle_tiles", 0)
    tiles = chip.grid.rows * chip.grid.cols if idle else 0
    return [f"tiles: {idle:,} of the chip's {tiles:,} have no group and stand still"] * bool(idle)


def _residency_notes(service: Service) -> list[str]:
    """What tiles keep, by pool where there are two."""
    found = service.residency.get("residency")
    if found is None:
        return []
    pools = found if "decode" in found else {"": found}
    return [f"residency: {_kept(kept.get('stages', [kept]), pool)}" for pool, kept in pools.items()]


def _kept(stages: Sequence[Mapping[str, Any]], pool: str) -> str:
    shares = sorted(100 * each["weight_share"] for each in stages)
    least, most = f"{shares[0]:.3g}", f"{shares[-1]:.3g}"
    weights = (
        f"{most} % of the weights" if least == most else f"{least} to {most} % of a stage's weights"
    )
    tokens = min(each["kv_tokens"] for each in stages)
    where = f"tiles of the {pool} pool" if pool else "tiles"
    return f"{where} keep {weights}, and keys and values of {tokens:,} tokens"
