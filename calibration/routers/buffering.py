"""Flits that inputs and outputs hold: what the network swallows while a tile takes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from calibration.benches.mesh_bench import Log
from calibration.experiment import LawContradictedError, Parameters
from calibration.routers.experiment import RouterExperiment, exact
from calibration.routers.scenes import Send, Size
from calibration.solve import solve_exactly
from tlm.calibrated import Parameter
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet

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

    @property
    def label(self) -> str:
        """The path in words."""
        counted = "" if self.side is None else f", counted at column {self.side}"
        return f"{self.size[0]}x{self.size[1]}: row {self.row}, {self.hops} hops{counted}"

    @property
    def situation(self) -> str:
        """What is full."""
        if self.side is None:
            return "a path that fills behind a blocked tile"
        return "a tile at a full path"

    @property
    def places(self) -> tuple[int, int, int]:
        """How many buffers of inputs, of outputs to links and to tiles the flits fill."""
        return (self.hops + 1, self.hops, 1) if self.side is None else (1, 0, 0)


class Buffering(RouterExperiment):
    """Flits taken: input x (hops + 1) + output x hops + the tile's; by a tile at the way: input.

    The tile at the way offers its flits when all is full.
    """

    name = "buffering"
    subject = "flits accepted against a blocked tile"
    seed = 1

    @property
    def untried(self) -> Sequence[str]:
        """Other packets."""
        long = ("packets of several flits against a blocked tile",)
        return (*long, "a multicast to a blocked tile") if self.mesh.multicasts else long

    def fit_cases(self) -> list[Path1D]:
        """Two lengths, and a tile at the way."""
        size = self.mesh.fit
        return [Path1D(size, 0, 1), Path1D(size, 1, 3), Path1D(size, 2, 2, side=1)]

    def check_cases(self, *, quick: bool) -> list[Path1D]:
        """Other lengths and tiles; on sizes that the fit has not seen, every length there is."""
        fit = self.mesh.fit
        paths = [Path1D(fit, 2, 2), Path1D(fit, 0, 2), Path1D(fit, 1, 3, side=2)]
        for size in self.mesh.check_sizes(quick=quick)[1:]:
            rows, longest = range(size[0]), size[1] - 1
            paths += [Path1D(size, row, min(row or 5, longest)) for row in rows]
            paths += [Path1D(size, row, longest, side=1) for row in rows[::2]]
        return paths

    def measure(self, cases: Sequence[Path1D]) -> list[float]:
        """Flits that went in at the tile that is counted; paths of one run share no row."""
        accepted: dict[Path1D, float] = {}
        for size, alone in dict.fromkeys((case.size, case.side is None) for case in cases):
            chosen = [case for case in cases if (case.size, case.side is None) == (size, alone)]
            log = self._run(size, chosen)
            for case in chosen:
                # A run that goes wrong does not tell of which path: each is then observed alone.
                seen = self._run(size, [case]) if log is None and len(chosen) > 1 else log
                if seen is not None:
                    mine = np.isin(seen[:, 1], self.counted(case))
                    accepted[case] = float(((seen[:, 0] == 0) & mine).sum())
        return [accepted.get(case, nan) for case in cases]

    def find(self, cases: Sequence[Path1D], values: Sequence[float]) -> dict[str, Parameter]:
        """Depths of inputs, and of outputs to links and to tiles.

        Raises:
            LawContradictedError: if the flits are no such sum.
        """
        inputs, outputs, last = solve_exactly([case.places for case in cases], values)
        if max(values) >= self.offered_flits(self.mesh.fit):
            raise LawContradictedError("the path took every flit that was offered")
        try:
            replace(self.mesh.timing, fifo_depth=inputs, output_depth=outputs, tile_depth=last)
        except InputError as error:
            raise LawContradictedError(f"no router is such: {error}") from error
        return {
            "fifo_depth": exact(inputs, "flits"),
            "output_depth": exact(outputs, "flits"),
            "tile_depth": exact(last, "flits"),
        }

    def predict(self, parameters: Parameters, cases: Sequence[Path1D]) -> list[float]:
        """By the law."""
        depths = [parameters[f"{name}_depth"].value for name in ("fifo", "output", "tile")]
        return [float(np.dot(case.places, depths)) for case in cases]

    def counted(self, case: Path1D) -> list[int]:
        """Nodes whose flits are counted."""
        return [case.row * case.size[1] + (case.side or 0)]

    def items(self, case: Path1D) -> list[Send]:
        """What a case's nodes send."""
        to, flits = TileSet.tile(case.row, case.hops), self.offered_flits(case.size)
        items: list[Send] = [(0, case.row * case.size[1], to, 1)] * flits
        if case.side is not None:
            items += [(_LATER_CYCLE, case.row * case.size[1] + case.side, to, 1)] * flits
        return items

    def offered_flits(self, size: Size) -> int:
        """More than a row is taken to hold, and once that is known than it holds."""
        timing = self.mesh.timing
        return 50 + size[1] * (timing.fifo_depth + max(timing.output_depth, timing.tile_places))

    def _run(self, size: Size, cases: Sequence[Path1D]) -> Log | None:
        items = [send for case in cases for send in self.items(case)]
        held = tuple(case.row * size[1] + case.hops for case in cases)
        label = "; ".join(case.label for case in cases)
        return self.mesh.observe(label, size, items, held)
