"""Traffic or a collective on a mesh, as a user says it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from wafertlm.options import Flag

LEVELS = ("rtl", "at", "perf")


@dataclass(frozen=True, slots=True, kw_only=True)
class NocOptions:
    """Traffic or a collective on a mesh; None where not given."""

    mesh: Annotated[str, "ROWSxCOLS of routers."]
    level: Annotated[str, "Level of the network: rtl, at or perf."] = "at"
    traffic: Annotated[
        str | None, "A pattern, or a CSV file cycle,source,destinations,flits,kind."
    ] = None
    rate: Annotated[float | None, "Flits that a node creates in a cycle, on average."] = None
    packet_flits: Annotated[int, "Flits of a packet."] = 4
    cycles: Annotated[int, "Cycles in which packets are created."] = 5000
    seed: Annotated[int, "Seed of the traffic."] = 0
    multicast_fraction: Annotated[float, "Share of packets that are multicasts."] = 0.0
    saturation: Annotated[
        bool,
        "Also find the highest accepted load that does not saturate; rates above and below run.",
    ] = False
    collective: Annotated[str | None, "A collective instead of traffic."] = None
    group: Annotated[str | None, "row, column, all or r0:r1,c0:c1 (half-open)."] = None
    source: Annotated[str | None, "ROW,COL of the collective's root."] = None
    flits: Annotated[int | None, "Payload flits of the collective."] = None
    fifo_depth: Annotated[int | None, "Flits a router buffer holds."] = None
    stages: Annotated[int | None, "Cycles of a router, 1 or 2; default: as rtl/noc has it."] = None
    unprotected: Annotated[bool, "Without cut-through: multicasts are not cut, and may hang."] = (
        False
    )
    rtl: Annotated[
        str | None, "A custom mesh, calibrated by its SPEC.toml.", Flag(metavar="SPEC")
    ] = None

    def recorded(self) -> dict[str, Any]:
        """The options as a result keeps them: a file of packets by its content."""
        from tlm.calibrated import file_hash
        from tlm.interconnect.traffic import PATTERNS

        recorded = asdict(self)
        if self.traffic is not None and self.traffic not in PATTERNS:
            path = Path(self.traffic)
            recorded["traffic"] = f"{path.name} {file_hash(path)}"
        if self.rtl is not None:
            recorded["rtl"] = Path(self.rtl).name
        return recorded


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    from tlm.interconnect.collectives import COLLECTIVES
    from tlm.interconnect.traffic import PATTERNS
    from workloads.kernels.parts.software import KINDS

    names = {"traffic": PATTERNS, "collectives": (*COLLECTIVES, *KINDS), "levels": LEVELS}
    return {kind: list(known) for kind, known in names.items()}
