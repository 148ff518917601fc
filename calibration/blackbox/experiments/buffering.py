"""Flits that inputs and outputs hold: what the network swallows while a tile takes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.benches.mesh_bench import Log
from calibration.blackbox.experiments.base import exact
from calibration.blackbox.mesh import BlackBoxMesh, Hold
from calibration.blackbox.scenes import Send, Size
from calibration.blackbox.subject import Subject
from calibration.experiment import EXACT, LawContradictedError, Parameters
from calibration.solve import solve_exactly
from tlm.calibrated import Parameter
from tlm.errors import InputError
from tlm.interconnect.packets import Packets, TileSet

_LATER_CYCLE = 3000


@dataclass(frozen=True, slots=True)
class Path1D:
    """Single-flit packets along a row from column 0 to a tile that takes nothing.

    With ``side``, what is counted are flits that tile ``side`` of the row then gets rid of.
    """

    size: Size
    row: int
    hops: int
    side: int | None = None


class Buffering:
    """Flits taken: input x (hops + 1) + output x hops + the tile's; by a tile at the way: input.

    The tile at the way offers its flits when all is full.
    """

    name = "buffering"
    subject = "flits accepted against a blocked tile"
    seed = 1
    targets = EXACT

    def __init__(self, subject: Subject) -> None:
        self.mesh = subject
        self.sources: Sequence[Path] = subject.sources()

    def rtl(self, case: Path1D) -> BlackBoxMesh:
        """The mesh of a path."""
        return self.mesh.mesh(case.size)

    def fit_cases(self) -> list[Path1D]:
        """Two lengths, and a tile at the way."""
        size = self.mesh.fit
        return [Path1D(size, 0, 1), Path1D(size, 1, 3), Path1D(size, 2, 2, side=1)]

    def check_cases(self, *, quick: bool) -> list[Path1D]:
        """Other lengths and tiles."""
        fit = [Path1D(self.mesh.fit, 0, 2), Path1D(self.mesh.fit, 1, 3, side=2)]
        others = self.mesh.check_sizes(quick=quick)[1:]
        return fit + [
            Path1D(size, row, size[1] - 1 - row % 2, side=1 if row % 3 == 2 else None)
            for size in others
            for row in range(size[0])
        ]

    def measure(self, cases: Sequence[Path1D]) -> list[float]:
        """Flits that went in at the tile that is counted."""
        accepted: dict[Path1D, float] = {}
        for size in dict.fromkeys(case.size for case in cases):
            chosen = [case for case in cases if case.size == size]
            log = self._run(size, chosen)
            for case in chosen:
                node = case.row * size[1] + (case.side or 0)
                accepted[case] = float(((log[:, 0] == 0) & (log[:, 1] == node)).sum())
        return [accepted[case] for case in cases]

    def identify(self, cases: Sequence[Path1D], values: Sequence[float]) -> dict[str, Parameter]:
        """Depths of inputs, and of outputs to links and to tiles.

        Raises:
            LawContradictedError: if the flits are no such sum.
        """
        rows = [self._law(case) for case in cases]
        inputs, outputs, last = solve_exactly(rows, values)
        if max(values) >= self._offered_flits(self.mesh.fit):
            raise LawContradictedError("the path took every flit that was offered")
        try:
            self.mesh.settle(
                fifo_depth=inputs,
                output_depth=outputs,
                tile_depth=None if last == outputs else last,
            )
        except InputError as error:
            raise LawContradictedError(f"no router is such: {error}") from error
        return {
            "input_depth": exact(inputs, "flits"),
            "output_depth": exact(outputs, "flits"),
            "tile_depth": exact(last, "flits"),
        }

    def predict(self, parameters: Parameters, cases: Sequence[Path1D]) -> list[float]:
        """By the law."""
        depths = [parameters[f"{name}_depth"].value for name in ("input", "output", "tile")]
        return [float(np.dot(self._law(case), depths)) for case in cases]

    def label(self, case: Path1D) -> str:
        """The path in words."""
        counted = "" if case.side is None else f", counted at column {case.side}"
        return f"{case.size[0]}x{case.size[1]}: row {case.row}, {case.hops} hops{counted}"

    def _law(self, case: Path1D) -> tuple[int, int, int]:
        return (case.hops + 1, case.hops, 1) if case.side is None else (1, 0, 0)

    def _offered_flits(self, size: Size) -> int:
        """More than a row is taken to hold, and once that is known than it holds."""
        timing = self.mesh.timing
        return 50 + size[1] * (timing.fifo_depth + max(timing.output_depth, timing.tile_places))

    def _run(self, size: Size, cases: Sequence[Path1D]) -> Log:
        items: list[Send] = []
        for case in cases:
            to = TileSet.tile(case.row, case.hops)
            items += [(0, case.row * size[1], to, 1)] * self._offered_flits(size)
            if case.side is not None:
                node = case.row * size[1] + case.side
                items += [(_LATER_CYCLE, node, to, 1)] * self._offered_flits(size)
        held = tuple(case.row * size[1] + case.hops for case in cases)
        hold = Hold(held, until_cycle=2**31)
        return self.mesh.mesh(size).observe(Packets.of(items), hold=hold)
