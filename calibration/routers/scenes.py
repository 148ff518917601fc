"""Scenes on a mesh: a few packets each, played one after the other in one run.

A scene starts when the mesh has long been empty; all that it sees of those before it is whose turn
it is at the arbiters. On RTL and on a model the same scenes are played.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.experiment import NothingMeasuredError
from tlm.errors import InputError
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.lines import hops
from tlm.interconnect.packets import Deliveries, Int64s, Packets, ReductionGoal, TileSet
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
        whole: Its figure is the cycles from the first flit in to the last one out. Else it is the
            weighted mean cycle of heads and tails delivered: the deliveries, in order of packet and
            node, weigh 1, 2, 3 and so on, so that two that change places change the figure.
        situation: What it is about, in words; empty: the experiment's subject.
        from_tail: Its figure is the cycles from the last flit in to the last one out.
    """

    size: Size
    label: str
    sends: tuple[Send, ...]
    whole: bool = False
    situation: str = ""
    from_tail: bool = False

    @property
    def span_cycles(self) -> int:
        """Longer than the scene takes, even if its packets go one by one."""
        last, flits = max(send[0] for send in self.sends), sum(send[3] for send in self.sends)
        return last + _PACE_CYCLES * (flits + sum(self.size)) + _SETTLE_CYCLES

    @property
    def hops(self) -> int:
        """From the first sender to its farthest destination, or to a root from the farthest."""
        return max(self._ways())[0]

    @property
    def way(self) -> tuple[int, int]:
        """The nodes between which that is."""
        return max(self._ways())[1:]

    def _ways(self) -> list[tuple[int, int, int]]:
        """Hops, first and last node of each way of the first sender's goal."""
        (_, source, goal, _), cols = self.sends[0], self.size[1]
        if isinstance(goal, ReductionGoal):
            ends = [(node, goal.root) for node in goal.operands.nodes(cols)]
        else:
            ends = [(source, node) for node in goal.nodes(cols)]
        return [(hops(divmod(a, cols), divmod(b, cols)), a, b) for a, b in ends]

    @property
    def parts(self) -> list[int]:
        """Flits of the first sender's packets."""
        return [flits for _, node, _, flits in self.sends if node == self.sends[0][1]]


def unicast_of(scene: Scene) -> Scene:
    """The flits of a lone multicast or reduction as one unicast on its longest way."""
    far, to = scene.way
    tile = TileSet.tile(*divmod(to, scene.size[1]))
    return Scene(scene.size, scene.label, ((0, far, tile, sum(scene.parts)),), whole=True)


def about(situation: str, scenes: Iterable[Scene]) -> list[Scene]:
    """Scenes that are about one situation."""
    return [replace(scene, situation=situation) for scene in scenes]


def span(places: range) -> str:
    """Places as a label shows them."""
    step = f":{places.step}" if places.step > 1 else ""
    return f"{places.start}:{places.stop}{step}"


class ScenesMixedError(Exception):
    """A scene took so long that the next one had begun."""


class NoFormError(Exception):
    """The model has no form in which scenes can be played."""


def play(scenes: Sequence[Scene], simulate: Simulate) -> list[float]:
    """The figure of each scene, a run a size.

    Raises:
        ScenesMixedError: if a scene ran into the next one.
    """
    return Staged(scenes).figures(simulate)


def play_on(scenes: Sequence[Scene], size: Size, simulate: Simulate) -> list[float]:
    """The figure of each scene, all on meshes of one size in one run.

    Raises:
        ScenesMixedError: if a scene ran into the next one.
    """
    return _Run(scenes, size).figures(simulate)


class Staged:
    """Scenes made ready, to be played on many models: a run a size."""

    def __init__(self, scenes: Sequence[Scene]) -> None:
        self._runs = []
        for size in dict.fromkeys(scene.size for scene in scenes):
            chosen = [index for index, scene in enumerate(scenes) if scene.size == size]
            self._runs.append((chosen, _Run([scenes[index] for index in chosen], size)))

    def figures(self, simulate: Simulate) -> list[float]:
        """The figure of each scene.

        Raises:
            ScenesMixedError: if a scene ran into the next one.
        """
        found: dict[int, float] = {}
        for chosen, run in self._runs:
            found |= zip(chosen, run.figures(simulate), strict=True)
        return [found[index] for index in range(len(found))]

    def on_model(self, timing: NocTiming) -> list[float]:
        """The figures on the handshake model."""
        return self.figures(lambda size, packets: model(size, timing, packets).simulate(packets))


class _Run:
    """Scenes of one size, one after the other in one run."""

    def __init__(self, scenes: Sequence[Scene], size: Size) -> None:
        self._scenes, self._size = scenes, size
        self._packets, self._starts = in_one_run(scenes)
        sends = np.cumsum([0] + [len(scene.sends) for scene in scenes])
        # Deliveries come by packet and node: a scene's are next to each other.
        self._sends = list(zip(sends, sends[1:], strict=False))

    def figures(self, simulate: Simulate) -> list[float]:
        """The figure of each scene.

        Raises:
            ScenesMixedError: if a scene ran into the next one.
        """
        deliveries = simulate(self._size, self._packets)
        first = np.searchsorted(deliveries.packet, [first for first, _ in self._sends])
        bounds = [*first.tolist(), len(deliveries.packet)]
        counts = np.diff(bounds)
        scene_of = np.repeat(np.arange(len(counts)), counts)
        heads, tails = deliveries.head_ejected, deliveries.tail_ejected
        latest = np.maximum(heads, tails)
        late = latest >= self._starts[scene_of + 1]
        if late.any():
            label = self._scenes[scene_of[late.argmax()]].label
            raise ScenesMixedError(f"scene '{label}' ran into the next one")
        # Of heads and tails together: whole numbers, of all scenes at once.
        both = heads + tails - 2 * self._starts[scene_of]
        weights = np.arange(len(both)) - first[scene_of] + 1
        summed = np.diff(np.concatenate([[0], np.cumsum(weights * both)])[bounds])
        figures = []
        for index, scene in enumerate(self._scenes):
            mine, own = slice(*bounds[index : index + 2]), slice(*self._sends[index])
            if scene.from_tail:
                figures.append(float(latest[mine].max() - deliveries.tail_injected[own].max()))
            elif scene.whole:
                figures.append(float(latest[mine].max() - deliveries.head_injected[own].min()))
            else:
                weight = counts[index] * (counts[index] + 1) // 2
                figures.append(float(summed[index] / 2 / weight))
        return figures


def in_one_run(scenes: Sequence[Scene]) -> tuple[Packets, Int64s]:
    """Packets of scenes that are played one after the other; where each starts, and the end."""
    starts = np.cumsum([0] + [scene.span_cycles for scene in scenes])
    packets = Packets.of(
        (int(start) + after, source, to, flits)
        for start, scene in zip(starts, scenes, strict=False)
        for after, source, to, flits in scene.sends
    )
    return packets, starts


def play_model(scenes: Sequence[Scene], timing: NocTiming) -> list[float]:
    """The figures on the handshake model."""
    return Staged(scenes).on_model(timing)


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
    found = by_misfit(candidates, scenes, measured)
    least = found[0][0]
    return [candidate for misfit, candidate in found if misfit == least], least


def shortlist(
    candidates: Iterable[NocTiming], scenes: Sequence[Scene], measured: Sequence[float], most: int
) -> list[NocTiming]:
    """The ``most`` candidates whose scenes are off least, and all that are off as much as these.

    Raises:
        NoFormError: if all candidates contradict the scenes in their nature.
    """
    return best_of(by_misfit(candidates, scenes, measured), most)


def best_of(found: Sequence[tuple[float, NocTiming]], most: int) -> list[NocTiming]:
    """The ``most`` of what `by_misfit` found, and all that are off as much as these."""
    bound = found[min(most, len(found)) - 1][0]
    return [candidate for misfit, candidate in found if misfit <= bound]


def by_misfit(
    candidates: Iterable[NocTiming], scenes: Sequence[Scene], measured: Sequence[float]
) -> list[tuple[float, NocTiming]]:
    """Mean cycles that a candidate's scenes are off, the least first; else in the order given.

    Scenes of which RTL gave no figure are not played.

    Raises:
        NoFormError: if all candidates contradict the scenes in their nature.
    """
    there = [number for number, figure in enumerate(measured) if not np.isnan(figure)]
    if len(there) < len(measured):
        if not there:
            raise NothingMeasuredError(f"no figure of '{scenes[0].label}' and what follows it")
        scenes, measured = [scenes[i] for i in there], [measured[i] for i in there]
    found, staged = [], Staged(scenes)
    for candidate in candidates:
        try:
            figures = staged.on_model(candidate)
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
