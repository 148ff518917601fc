"""Traits of routers that levels `lt` and `perf` do not model, nor were compared with.

Those levels were held against `at` on routers without such a trait. So their stored errors are not
of a router that has one: `at` models it, and they run as if it were not there.
"""

from dataclasses import replace
from typing import Any

from tlm.interconnect.zero_load import NocTiming

#: As all routers had it on which levels were compared (calibration/levels).
_COMPARED: dict[str, Any] = {
    "tile_depth": None,
    "cut_through": True,
    "fork": "own-pace",
    "arbiter": "round-robin",
    "line": (0, 1, 2, 3, 4, 5),
    "lock_on_transfer": False,
    "operands_share": False,
    "unit_choice": "complete",
    "unit_arbiter": "round-robin",
    "unit_lock_on_transfer": False,
}


def unmodelled(timing: NocTiming) -> list[str]:
    """Traits of a router that levels above `at` do not know, in words.

    They know how deep outputs are, but not that one place alone is filled every other cycle.
    """
    found = {name: getattr(timing, name) for name in _COMPARED}
    if timing.tile_places == timing.output_depth:
        found["tile_depth"] = None
    told = [_told(name, each) for name, each in found.items() if each != _COMPARED[name]]
    return told + (["output_depth 1"] if timing.output_depth == 1 else [])


def without_unmodelled(timing: NocTiming) -> NocTiming:
    """The same router without these traits.

    Raises:
        InputError: if such a router cannot be built.
    """
    # One place at the outputs becomes none: two are not what it holds.
    depth = 0 if timing.output_depth == 1 else timing.output_depth
    least = max(timing.ejection_cycles, 1 + int(depth > 0))
    return replace(timing, **_COMPARED, output_depth=depth, ejection_cycles=least)


def _told(name: str, found: Any) -> str:
    if isinstance(found, tuple):
        return f"{name} {','.join(map(str, found))}"
    return f"{name} {str(found).lower() if isinstance(found, bool) else found}"
