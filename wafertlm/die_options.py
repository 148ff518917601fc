"""How a model lies on the dies of a wafer, as options of several commands say it."""

from typing import Any

from tlm.chips import AnyChip
from tlm.chips.gpu import GpuBox
from tlm.errors import InputError, choose
from wafertlm.asked.mapped import ON_DIES, ROUTINGS
from wafertlm.options import dashed
from workloads.serving.price.die_links import Routing
from workloads.serving.price.die_price import DieMapping


def die_mapping(options: Any, chip: AnyChip) -> DieMapping | None:
    """What options of a command say of a chip's dies; None of a chip that is no wafer.

    Raises:
        InputError: for options of dies with another chip, and an unknown routing.
    """
    if isinstance(chip, GpuBox) or chip.dies is None:
        for name in ON_DIES:
            of_tiles = name == "pp" and not isinstance(chip, GpuBox)
            if getattr(options, name) and not of_tiles:
                chips = "chips of tiles" if name == "pp" else "wafers of dies, such as flat32-wafer"
                raise InputError(f"{dashed(name)}: found with '{chip.name}'; allowed: with {chips}")
        return None
    routing = options.routing or ROUTINGS[0]
    choose("routing", routing, ROUTINGS)
    return DieMapping(
        expert_parallel=options.expert_parallel,
        pipeline=options.pp,
        routing=Routing(routing == "popular", options.merge_copies),
        overlap=options.overlap,
    )
