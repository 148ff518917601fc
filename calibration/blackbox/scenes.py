"""Scenes on a custom mesh: a few packets each, played one after the other in one run.

A scene starts when the mesh has long been empty; all that it sees of those before it is whose turn
it is at the arbiters. On RTL and on a model the same scenes are played.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet
from tlm.interconnect.zero_load import NocTiming

Goal = TileSet | ReductionGoal
#: Cycle, source node, destinations or reduction, flits.
Send = tuple[int, int, Goal, int]
Size = tuple[int, int]
Simulate = Callable[[Size, Packets], Deliveries]

#: No mesh is taken to need more cycles for a flit, or a hop, of a scene.
_PACE_CYCLES = 10
_SETTLE_CYCLES = 50


@dataclass(frozen=True, slots=True)
class Scene:
    """A few packets on a mesh.

    Attributes:
        size: Rows and columns of the mesh.
        label: The scene in words.
        sends: (cycle after the scene's start, source node, destinations or reduction, flits), in
            queue order.
    """

    size: Size
    label: str
    sends: tuple[Send, ...]

    @property
    def span_cycles(self) -> int:
        """Longer than the scene takes, even if its packets go one by one."""
        last, flits = max(send[0] for send in self.sends), sum(send[3] for send in self.sends)
        return last + _PACE_CYCLES * (flits + sum(self.size)) + _SETTLE_CYCLES


class ScenesMixedError(Exception):
    """A scene took so long that the next one had begun."""


class NoFormError(Exception):
    """The model has no form in which scenes can be played."""


def play(scenes: Sequence[Scene], simulate: Simulate) -> list[float]:
    """The figure of each scene, a run a size: the weighted mean cycle of heads and tails delivered.

    It counts from the scene's start; the deliveries, in order of packet and node, weigh 1, 2, 3 and
    so on, so that two packets that change places change the figure.

    Raises:
        ScenesMixedError: if a scene ran into the next one.
    """
    found: dict[int, float] = {}
    for size in dict.fromkeys(scene.size for scene in scenes):
        chosen = [index for index, scene in enumerate(scenes) if scene.size == size]
        found |= zip(chosen, _play_on([scenes[i] for i in chosen], size, simulate), strict=True)
    return [found[index] for index in range(len(scenes))]


def _play_on(scenes: Sequence[Scene], size: Size, simulate: Simulate) -> list[float]:
    starts = np.cumsum([0] + [scene.span_cycles for scene in scenes])
    packets = Packets.of(
        (int(start) + after, source, to, flits)
        for start, scene in zip(starts, scenes, strict=False)
        for after, source, to, flits in scene.sends
    )
    deliveries = simulate(size, packets)
    scene_of = np.repeat(np.arange(len(scenes)), [len(scene.sends) for scene in scenes])
    figures = []
    for index, scene in enumerate(scenes):
        mine = scene_of[deliveries.packet] == index
        cycles = np.stack([deliveries.head_ejected[mine], deliveries.tail_ejected[mine]])
        if cycles.max(initial=0) >= starts[index + 1]:
            raise ScenesMixedError(f"scene '{scene.label}' ran into the next one")
        weights = np.arange(1, cycles.shape[1] + 1)
        figures.append(float(np.average(cycles.mean(axis=0) - starts[index], weights=weights)))
    return figures


def play_model(scenes: Sequence[Scene], timing: NocTiming) -> list[float]:
    """The figures on the handshake model."""
    return play(scenes, lambda size, packets: model(size, timing, packets).simulate(packets))


def model(size: Size, timing: NocTiming, packets: Packets) -> HandshakeMesh:
    """The handshake model for packets."""
    return HandshakeMesh(*size, timing, reductions=bool(packets.reduces.any()))


def closest(
    candidates: Iterable[NocTiming], scenes: Sequence[Scene], measured: Sequence[float]
) -> tuple[list[NocTiming], float]:
    """The candidates that explain measurements best, and how far they are off on average.

    Returns:
        Those that explain everything, and 0, if there are any; else those whose scenes are off
        least in the mean, and by how many cycles.

    Raises:
        NoFormError: if all candidates contradict the scenes in their nature.
    """
    found = _by_misfit(candidates, scenes, measured)
    least = found[0][0]
    return [candidate for misfit, candidate in found if misfit == least], least


def shortlist(
    candidates: Iterable[NocTiming], scenes: Sequence[Scene], measured: Sequence[float], most: int
) -> list[NocTiming]:
    """The ``most`` candidates whose scenes are off least, and all that are off as much as these.

    Raises:
        NoFormError: if all candidates contradict the scenes in their nature.
    """
    found = _by_misfit(candidates, scenes, measured)
    bound = found[min(most, len(found)) - 1][0]
    return [candidate for misfit, candidate in found if misfit <= bound]


def _by_misfit(
    candidates: Iterable[NocTiming], scenes: Sequence[Scene], measured: Sequence[float]
) -> list[tuple[float, NocTiming]]:
    """Mean cycles that a candidate's scenes are off, the least first; else in the order given."""
    found = []
    for candidate in candidates:
        try:
            figures = play_model(scenes, candidate)
        except (DeadlockError, InputError, ScenesMixedError):
            continue
        found.append((float(np.abs(np.subtract(figures, measured)).mean()), candidate))
    if not found:
        raise NoFormError(
            f"no form of the model can deliver '{scenes[0].label}' and what follows it"
        )
    return sorted(found, key=lambda pair: pair[0])


def forms(timings: Iterable[NocTiming], **fields: Iterable[object]) -> list[NocTiming]:
    """Every timing with every combination of other fields that can be."""
    grown = list(timings)
    for name, values in fields.items():
        listed = list(values)
        grown = [changed for timing in grown for changed in _changed(timing, name, listed)]
    return grown


def _changed(timing: NocTiming, name: str, values: Sequence[object]) -> Iterable[NocTiming]:
    for value in values:
        try:
            yield replace(timing, **{name: value})  # type: ignore[arg-type]  # of its field
        except InputError:
            continue
