"""Collectives in software, additions included: the model against RTL; nothing is fitted.

The project's tiles say when each message starts: what it carries has come, and is added. That is
the schedule of `wafertlm noc`, on the model of the network; RTL and model both get it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.experiment import Parameters
from calibration.routers.experiment import RouterExperiment
from calibration.routers.scenes import Scene, Size, span
from calibration.routers.subject import any_group
from cosim.verilog import TILE_SOURCES
from tlm.chips.parts import own_tile
from tlm.chips.profile import load_chip
from tlm.engines.at import run_at
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.tiles.programs import on_tiles
from tlm.trace import TransferLog
from workloads.kernels.parts.software import KINDS, SoftwareCollective

_CHECKS_A_MESH = 6  # of each kind
_MOST_FLITS = 32


@dataclass(frozen=True, slots=True)
class OnMesh:
    """A collective on a mesh."""

    collective: SoftwareCollective

    @property
    def size(self) -> Size:
        """The mesh."""
        return self.collective.rows, self.collective.cols

    @property
    def situation(self) -> str:
        """The kind."""
        return self.collective.kind

    @property
    def label(self) -> str:
        """The collective in words."""
        c = self.collective
        group = f"rows {span(c.group.rows)} columns {span(c.group.cols)}"
        return (
            f"{c.rows}x{c.cols}: {c.kind} by tiles, root {c.root[0]},{c.root[1]}, {group}, "
            f"{c.flits} flits"
        )

    def scene(self, timing: NocTiming) -> Scene:
        """Its messages, each when the project's tiles start it on a network of some timing.

        Raises:
            InputError: if measurements of the tiles are missing or stale.
        """
        rows, cols = self.size
        tile = own_tile(load_chip("rtl-2x2"))  # any size has the same tiles
        assert tile is not None
        seen = TransferLog(TileSet(range(rows), range(cols)))
        program = on_tiles(self.collective.program(), tile)
        mesh = HandshakeMesh(rows, cols, timing, reductions=False)
        run_at(program, timing, mesh, seen, tile.queues)
        first = seen.start_cycle
        sends = sorted(
            (each.start_cycle - first, each.source[0] * cols + each.source[1], each.target)
            for each in seen.spans
        )
        flits = self.collective.flits
        packets = tuple((cycle, node, TileSet.tile(*to), flits) for cycle, node, to in sends)
        return Scene(self.size, self.label, packets, whole=True)


class SoftwareCollectives(RouterExperiment):
    """From the first flit that goes in to the last one that comes out."""

    name = "collective"
    subject = "cycles of sequential and tree collectives in software, additions included"
    seed = 20240229

    @property
    def sources(self) -> Sequence[Path]:
        """The mesh's Verilog, and that of the tiles, which say when messages start."""
        return sorted({*self.mesh.sources(), *TILE_SOURCES})

    def check_cases(self, *, quick: bool) -> list[OnMesh]:
        """Random groups, with roots inside and outside of them, and lengths."""
        rng = np.random.default_rng(self.seed)
        sizes = self.mesh.check_sizes(quick=quick)
        return [case for size in sizes for case in self._draw(size, rng)]

    def measure(self, cases: Sequence[OnMesh]) -> list[float]:
        """Cycles on RTL."""
        return self.mesh.measure(self._scenes(cases))

    def predict(self, parameters: Parameters, cases: Sequence[OnMesh]) -> list[float]:
        """Cycles on the handshake model."""
        return self.mesh.play_model(self._scenes(cases))

    def _scenes(self, cases: Sequence[OnMesh]) -> list[Scene]:
        return [case.scene(self.mesh.timing) for case in cases]

    def _draw(self, size: Size, rng: np.random.Generator) -> Iterator[OnMesh]:
        longest = min(_MOST_FLITS, self.mesh.packet_flits)
        for kind in KINDS:
            drawn = 0
            while drawn < _CHECKS_A_MESH:
                group = any_group(size, rng)
                root = int(rng.integers(size[0])), int(rng.integers(size[1]))
                flits = int(rng.integers(1, longest + 1))
                if len(group) > 1:
                    drawn += 1
                    yield OnMesh(SoftwareCollective(kind, *size, root, group, flits))
