"""A collective between dies, as a user says it."""

from dataclasses import dataclass
from typing import Annotated

from wafertlm.asked import shared
from wafertlm.options import NAME_OR_FILE

LEVELS = ("lt", "perf")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiesOptions:
    """A collective between dies; None where not given."""

    chip: Annotated[str, "Chip profile with dies: a shipped one, or a TOML file.", NAME_OR_FILE]
    collective: Annotated[str, "What the dies do together."]
    bytes: Annotated[int, "Bytes of each message, block or die; of all-reduce the whole."]
    group: Annotated[str, "Dies that take part: all, or r0:r1,c0:c1."] = "all"
    piece_bytes: Annotated[
        int | None,
        "Of all-to-all: a die turns to the next one after so many; else when it is done.",
    ] = None
    level: Annotated[str, "Level of the links: lt or perf."] = "lt"
    kernel_s: Annotated[float | None, "Seconds of a kernel before the collective."] = None
    repeat: Annotated[int, "Kernels, each with a collective behind it."] = 1
    micro_batches: Annotated[int, "Parts of a kernel that overlap with collectives."] = 2
    set: shared.Set = ()


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    from tlm.chips import chip_names, load_chip
    from tlm.dies.collectives import COLLECTIVES

    wafers = [name for name in chip_names() if "RxC" not in name and load_chip(name).dies]
    return {"chips": wafers, "collectives": list(COLLECTIVES), "levels": list(LEVELS)}
