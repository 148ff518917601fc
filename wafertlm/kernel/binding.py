"""What most of a kernel's cycles go into, in words, and what to look at next."""

from collections.abc import Mapping
from typing import Any, NamedTuple

#: Parts of ``breakdown_cycles`` as tables and pages call them.
PART_NAMES = {
    "compute": "compute",
    "communication": "communication",
    "memory": "memory",
    "overhead": "engine below peak",
}
_WHY = {
    "compute": "Products at the engine's peak, and vector passes, take most of the time.",
    "communication": "Tiles wait for packets, and for each other.",
    "memory": "Tiles wait for off-chip memory.",
    "overhead": "The matrix engine is busy, but fills and drains for longer than it multiplies.",
}
_NEXT = {
    "compute": "more tiles, where --grid is not the whole chip; a faster engine: "
    "compare --vary set:tile.matrix.FIELD=A,B.",
    "communication": "where they wait: --map FILE, --timeline FILE; another --collective or "
    "network: compare --vary.",
    "memory": "fewer bytes, by larger blocks (plan, --group); what a channel gives: "
    "wafertlm memory.",
    "overhead": "larger slices, by a smaller --grid or a larger --shape; another kernel.",
}


class Binding(NamedTuple):
    """What binds a kernel.

    Attributes:
        part: The part of ``breakdown_cycles`` with most cycles.
        share_pct: Its share of all cycles.
        why: What these cycles are.
        next: What to look at next.
    """

    part: str
    share_pct: float
    why: str
    next: str

    @property
    def told(self) -> str:
        """All of it."""
        return (
            f"bound by {PART_NAMES.get(self.part, self.part)}, {self.share_pct:.0f} % of the "
            f"cycles. {self.why} Next: {self.next}"
        )


def binding(result: Mapping[str, Any]) -> Binding:
    """What binds a kernel.

    Args:
        result: As ``wafertlm kernel --json`` prints it; fields beside cycles and their breakdown
            may be missing.
    """
    parts: Mapping[str, float] = result["breakdown_cycles"]
    part = max(parts, key=lambda name: parts[name])
    why = [_WHY.get(part, ""), *_figures(part, result)]
    share_pct = 100 * parts[part] / result["cycles"]
    return Binding(part, share_pct, " ".join(why), _NEXT.get(part, "--timeline FILE."))


def _figures(part: str, result: Mapping[str, Any]) -> list[str]:
    """What the result says of it, in a sentence."""
    plan: Mapping[str, Any] = result.get("plan") or {}
    reached = plan.get("engine_utilization")
    if part == "overhead" and reached is not None and plan["slice"]:
        sizes = ", ".join(f"{name} {size:,}" for name, size in plan["slice"].items())
        return [f"Slices of {sizes} let a busy engine reach {reached:.0%} of its peak."]
    used = result.get("memory_utilization")
    if part == "memory" and used is not None:
        return [f"The run takes {used:.0%} of its bandwidth."]
    return []
