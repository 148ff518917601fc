"""Figure 10: what placements cost, through which output, and without a lock."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tlm.interconnect.lines import MeshPort
from workloads.studies.campaign import Figures
from workloads.studies.npusim.cases import PromptCase
from workloads.studies.npusim.facts import FASTER, PLACEMENTS, Group, groups, placement_case
from workloads.studies.npusim.judge import row, target

#: Placements differ by less where nothing is locked.
_ALIKE = 1.01
#: A ratio holds so near to what is plotted.
_NEAR = 0.05
_CHANNELS = ("output", "none")


def figure_10_cases(*, quick: bool) -> Iterator[PromptCase]:
    """All prompts."""
    for group, placement, channel in product(groups(quick=quick), PLACEMENTS, _CHANNELS):
        yield placement_case(group, placement, channel)


def figure_10(found: Mapping[str, Figures], *, quick: bool) -> Iterator[dict[str, Any]]:
    """How much faster than interleaved placements are, and how long packets wait for an output."""
    for group, channel in product(groups(quick=quick), _CHANNELS):
        by_placement = {
            placement: found[repr(placement_case(group, placement, channel))]
            for placement in PLACEMENTS
        }
        for placement, figures in by_placement.items():
            name = f"F10/{group.name}/{placement}-{_told(channel)}"
            if placement != "interleave":
                yield _faster(name, group, placement, by_placement, channel)
            note = _output(figures) if figures["waited_pct"] else "nothing waited"
            yield row(f"{name}/waited", figures["waited_pct"], None, "% of products", "at", note)


def _faster(
    name: str, group: Group, placement: str, found: Mapping[str, Figures], channel: str
) -> dict[str, Any]:
    base, own = found["interleave"]["seconds"], found[placement]["seconds"]
    value = None if base is None or own is None else base / own
    low, high = FASTER[group.cores, placement]
    if channel == "none":
        return row(f"{name}/faster", value, None, "x", "at", "no output is locked")
    note = f"{low:g} to {high:g} plotted; partition, links and prompt are not published"
    held = value is not None and low - _NEAR <= value <= high + _NEAR
    return row(f"{name}/faster", value, (low + high) / 2, "x", "at", note, held=held)


def _output(figures: Figures) -> str:
    at, port = (f"{figures[f'waited_{axis}']:.0f}" for axis in ("row", "col")), "waited_port"
    direction = MeshPort(int(figures[port] or 0)).name.lower()
    return f"most at output {direction} of the core in row {', column '.join(at)} of the group"


def _told(channel: str) -> str:
    return "locked" if channel == "output" else "unlocked"


def figure_10_targets(
    rows: Sequence[Mapping[str, Any]], *, quick: bool
) -> Iterator[dict[str, Any]]:
    """Who wins, and that waits are gone without the lock."""
    model = {each["id"]: each["model"] for each in rows}
    for group in groups(quick=quick):
        name = f"F10/{group.name}"
        faster = {
            (placement, lock): model.get(f"{name}/{placement}-{lock}/faster", 1.0)
            for placement, lock in product(PLACEMENTS, ("locked", "unlocked"))
        }
        waited = {
            (placement, lock): model[f"{name}/{placement}-{lock}/waited"]
            for placement, lock in product(PLACEMENTS, ("locked", "unlocked"))
        }
        best = max(faster[placement, "locked"] for placement in PLACEMENTS)
        ring = faster["ring", "locked"]
        yield target(f"{name}: ring is the fastest, within 1 %", ring, ring >= best / _ALIKE)
        lines = min(faster["linear", "locked"], 1.0)
        yield target(
            f"{name}: a line is the slowest",
            lines,
            lines <= min(faster[placement, "locked"] for placement in PLACEMENTS),
        )
        text = f"{name}: linear is as fast as interleaved, within 1 %, or faster"
        yield target(text, faster["linear", "locked"], faster["linear", "locked"] >= 1 / _ALIKE)
        free = [faster[placement, "unlocked"] for placement in PLACEMENTS]
        spread = max(free) / min(free)
        yield target(f"{name}: placements are within 1 % without a lock", spread, spread < _ALIKE)
        slowest = min(PLACEMENTS, key=lambda each: faster[each, "locked"])
        gone = waited[slowest, "unlocked"]
        text = f"{name}: what {slowest} waits for locks is gone without"
        yield target(text, gone, gone <= 0.01 * waited[slowest, "locked"])
