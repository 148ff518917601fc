"""Collectives in software, message by message: the model against RTL; nothing is fitted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.experiment import EXACT, Parameters
from calibration.experiments.mesh_cases import (
    CHECK_MESH,
    FIT_MESH,
    Outcome,
    Scene,
    play_model,
    play_rtl,
    some,
    span,
    timing_of,
)
from calibration.harness.mesh import RtlMesh
from cosim.verilog import NOC_SOURCES
from tlm.calibrated import Parameter, load_result
from tlm.interconnect.collectives import CollectiveTraffic
from tlm.interconnect.packets import TileSet

_KINDS = ("seq-multicast", "tree-multicast", "seq-reduce", "tree-reduce")
_CHECKS_A_MESH = 6  # of each kind
_MOST_FLITS = 32


@dataclass(frozen=True, slots=True)
class OnMesh:
    """A collective on a Verilated mesh."""

    mesh: RtlMesh
    collective: CollectiveTraffic

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
                self.mesh,
                f"{self.label}, round {number}",
                tuple(
                    (0, int(source), packets.tiles(index), int(flits))
                    for index, (source, flits) in enumerate(
                        zip(packets.source, packets.flits, strict=True)
                    )
                ),
            )
            for number, packets in enumerate(self.collective.rounds())
        ]


class SoftwareCollectives:
    """Rounds one after the other: what has come in one cycle goes on in the next."""

    name = "collective"
    subject = "cycles of sequential and tree collectives in software"
    sources: Sequence[Path] = NOC_SOURCES
    seed = 20240229
    targets = EXACT

    def fit_cases(self) -> list[OnMesh]:
        """None: the other experiments have fitted everything."""
        return []

    def check_cases(self, *, quick: bool) -> list[OnMesh]:
        """Random groups, with roots inside and outside of them, and lengths."""
        rng = np.random.default_rng(self.seed)
        meshes = (FIT_MESH,) if quick else (FIT_MESH, CHECK_MESH)
        return [case for mesh in meshes for case in _draw(mesh, rng)]

    def rtl(self, case: OnMesh) -> RtlMesh:
        """The mesh."""
        return case.mesh

    def measure(self, cases: Sequence[OnMesh]) -> list[float]:
        """Cycles on RTL."""
        return _cycles(cases, play_rtl([scene for case in cases for scene in case.scenes()]))

    def identify(self, cases: Sequence[OnMesh], values: Sequence[float]) -> dict[str, Parameter]:
        """Nothing."""
        return {}

    def predict(self, parameters: Parameters, cases: Sequence[OnMesh]) -> list[float]:
        """Cycles on the handshake model."""
        timing = timing_of(load_result("unicast").parameters)
        scenes = [scene for case in cases for scene in case.scenes()]
        return _cycles(cases, play_model(scenes, timing))

    def label(self, case: OnMesh) -> str:
        """The collective in words."""
        return case.label


def _draw(mesh: RtlMesh, rng: np.random.Generator) -> Iterator[OnMesh]:
    for kind in _KINDS:
        drawn = 0
        while drawn < _CHECKS_A_MESH:
            group = TileSet(some(mesh.rows, rng), some(mesh.cols, rng))
            root = int(rng.integers(mesh.rows)), int(rng.integers(mesh.cols))
            flits = int(rng.integers(1, _MOST_FLITS + 1))
            if len(group) > 1:
                drawn += 1
                size = (mesh.rows, mesh.cols)
                yield OnMesh(
                    mesh, CollectiveTraffic(kind, *size, root, group, flits, mesh.fifo_depth)
                )


def _cycles(cases: Sequence[OnMesh], outcomes: Sequence[Outcome]) -> list[float]:
    """Sum over each case's rounds, and a cycle between one and the next."""
    left = iter(outcomes)
    totals = []
    for case in cases:
        rounds = [next(left).cycles for _ in case.collective.rounds()]
        totals.append(float(sum(rounds) + len(rounds) - 1))
    return totals
