"""Options that several commands have alike: the type of each, and what help says of it."""

from typing import Annotated

from wafertlm.options import NAME_OR_FILE, Flag

Chip = Annotated[str, "Chip profile: a shipped one, or a TOML file.", NAME_OR_FILE]
Set = Annotated[
    tuple[str, ...],
    "Change a figure of the chip, such as noc.hop_cycles=2 (repeatable).",
    Flag(metavar="TABLE.FIELD=VALUE"),
]
Network = Annotated[
    str | None, "A custom network, calibrated by its SPEC.toml.", Flag(metavar="SPEC")
]
AllowStale = Annotated[bool, "Use measurements that are out of date."]

# Variants of kernels.
Collective = Annotated[str | None, "How reductions are made, if another way; see --list."]
Schedule = Annotated[str | None, "Of flat-attention: naive or async (default)."]
Group = Annotated[str | None, "Of flat-attention: GYxGX tiles of a group, or auto (default)."]

# How a model lies on groups of tiles.
Tensor = Annotated[
    int | None,
    "Tiles of a group, which share each product; default: as many as --pp and --dp leave a group.",
]
Pipeline = Annotated[
    int | None, "Groups of tiles, or of dies, with some layers each, one behind another."
]
Replicas = Annotated[
    int | None,
    "Pipelines of groups that serve requests apart; default: as many as there is room for.",
]
MicroBatch = Annotated[
    int | None,
    "Most decoding requests that pass the stages together; default: a share of all a stage.",
]
Partition = Annotated[str | None, "Of products in a group: input, mn, k, 2d or auto (default)."]
Placement = Annotated[
    str | None, "Order of a group's tiles: linear (default), interleave, ring or mesh."
]
StageRows = Annotated[
    int | None, "Rows of a group's tiles; default: as the placement has them, 1x4 or 2x2."
]

# How it lies on dies.
Routing = Annotated[str | None, "Of tokens to experts on dies: balanced (default), or popular."]
MergeCopies = Annotated[
    bool, "Send a token to a die once, whatever number of its experts it goes to."
]
Overlap = Annotated[bool, "Let halves of a batch take turns on dies and links."]


def variant_names() -> dict[str, list[str]]:
    """What options of variants of kernels may name."""
    from workloads.kernels.attention.flat_plan import SCHEDULES
    from workloads.kernels.parts.collectives import METHODS

    return {"collectives": list(METHODS), "schedules": list(SCHEDULES)}


def dealing_names() -> dict[str, list[str]]:
    """What options may name that deal products out to tiles."""
    from workloads.kernels.gemm.partition_plan import PARTITIONS
    from workloads.machine.order import PLACEMENTS

    return {"partitions": list(PARTITIONS), "placements": list(PLACEMENTS)}
