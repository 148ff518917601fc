"""Collectives in software, message by message: the model against RTL; nothing is fitted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.experiment import Parameters
from calibration.routers.experiment import RouterExperiment
from calibration.routers.scenes import Scene, Size, play_model, span
from calibration.routers.subject import any_group
from tlm.interconnect.collectives import CollectiveTraffic

_KINDS = ("seq-multicast", "tree-multicast", "seq-reduce", "tree-reduce")
_CHECKS_A_MESH = 6  # of each kind
_MOST_FLITS = 32


@dataclass(frozen=True, slots=True)
class OnMesh:
    """A collective on a mesh."""

    collective: CollectiveTraffic

    @property
    def size(self) -> Size:
        """The mesh."""
        return self.collective.rows, self.collective.cols

    @property
    def label(self) -> str:
        """The collective in words."""
        c = self.collective
        group = f"rows {span(c.group.rows)} columns {span(c.group.cols)}"
        return (
            f"{c.rows}x{c.cols}: {c.kind}, root {c.root[0]},{c.root[1]}, {group}, {c.flits} flits"
        )

    def scenes(self) -> list[Scene]:
        """A scene for each round."""
        return [
            Scene(
                self.size,
                f"{self.label}, round {number}",
                tuple(
                    (0, int(source), packets.tiles(index), int(flits))
                    for index, (source, flits) in enumerate(
                        zip(packets.source, packets.flits, strict=True)
                    )
                ),
                whole=True,
            )
            for number, packets in enumerate(self.collective.rounds())
        ]


class SoftwareCollectives(RouterExperiment):
    """Rounds one after the other: what has come in one cycle goes on in the next."""

    name = "collective"
    subject = "cycles of sequential and tree collectives in software"
    seed = 20240229

    def check_cases(self, *, quick: bool) -> list[OnMesh]:
        """Random groups, with roots inside and outside of them, and lengths."""
        rng = np.random.default_rng(self.seed)
        sizes = self.mesh.check_sizes(quick=quick)
        return [case for size in sizes for case in self._draw(size, rng)]

    def measure(self, cases: Sequence[OnMesh]) -> list[float]:
        """Cycles on RTL."""
        return _cycles(cases, self.mesh.measure([s for case in cases for s in case.scenes()]))

    def predict(self, parameters: Parameters, cases: Sequence[OnMesh]) -> list[float]:
        """Cycles on the handshake model."""
        scenes = [scene for case in cases for scene in case.scenes()]
        return _cycles(cases, play_model(scenes, self.mesh.timing))

    def _draw(self, size: Size, rng: np.random.Generator) -> Iterator[OnMesh]:
        longest = min(_MOST_FLITS, self.mesh.packet_flits)
        for kind in _KINDS:
            drawn = 0
            while drawn < _CHECKS_A_MESH:
                group = any_group(size, rng)
                root = int(rng.integers(size[0])), int(rng.integers(size[1]))
                flits = int(rng.integers(1, longest + 1))
                if len(group) > 1:
                    drawn += 1
                    yield OnMesh(CollectiveTraffic(kind, *size, root, group, flits, longest))


def _cycles(cases: Sequence[OnMesh], figures: Sequence[float]) -> list[float]:
    """Sum over each case's rounds, and a cycle between one and the next."""
    left = iter(figures)
    totals = []
    for case in cases:
        rounds = [next(left) for _ in case.collective.rounds()]
        totals.append(sum(rounds) + len(rounds) - 1)
    return totals
