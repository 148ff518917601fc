"""How the network combines: cycles of an addition, from flit to flit, and where operands wait."""

from collections.abc import Sequence

import numpy as np

from calibration.blackbox.experiments.base import SceneExperiment, common, exact
from calibration.blackbox.scenes import Scene, Send, Size, closest, forms
from tlm.calibrated import Parameter
from tlm.interconnect.packets import TileSet

_FIT_ALONE = 6
_FIT_AMONG = 8
_CHECKS_A_MESH = 30
_LONGEST_FLITS = 24
#: Slowest adder that is recognised.
_LONGEST_CYCLES = 16


class Reduction(SceneExperiment):
    """One reduction at a time, alone or among unicasts."""

    name = "reduction"
    subject = "results of a reduction, alone and among unicasts"

    def fit_cases(self) -> list[Scene]:
        """Random groups and roots: alone, then with unicasts in the way."""
        rng = np.random.default_rng(self.seed)
        kinds = [False] * _FIT_ALONE + [True] * _FIT_AMONG
        return [self._scene(self.mesh.fit, rng, i, among) for i, among in enumerate(kinds)]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Others."""
        rng = np.random.default_rng(self.seed + 1)
        return [
            self._scene(size, rng, i, bool(i % 2))
            for size in self.mesh.check_sizes(quick=quick)
            for i in range(_CHECKS_A_MESH)
        ]

    def identify(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """From reductions that are alone the cycles; from the others who waits for whom."""
        cycles = range(_LONGEST_CYCLES + 1)
        known = forms(
            [self.mesh.timing],
            operand_limit=[self.mesh.operand_limit],
            operands_share=(False, True),
            reduce_cycles=cycles,
        )
        # One flit alone does not show the interval.
        short = [i for i in range(_FIT_ALONE) if cases[i].sends[0][3] == 1]
        if short:
            known, _ = closest(known, [cases[i] for i in short], [values[i] for i in short])
        known = forms(known, reduce_interval_cycles=range(1, _LONGEST_CYCLES + 2))
        known, _ = closest(known, cases[:_FIT_ALONE], values[:_FIT_ALONE])
        inputs = [port for port in self.mesh.timing.line if port != 5]
        lines = [(*inputs[:place], 5, *inputs[place:]) for place in reversed(range(6))]
        known = forms(known, line=lines)
        found = self.choose(known, cases, values, "reductions")
        self.mesh.timing = found[0]
        return {
            "reduce_cycles": common(found, lambda f: f.reduce_cycles, "cycles/router"),
            "reduce_interval_cycles": common(
                found, lambda f: f.reduce_interval_cycles, "cycles/flit"
            ),
            "operand_limit": exact(self.mesh.operand_limit, "operands/router"),
            "operands_share": common(
                found, lambda f: int(f.operands_share), "1: they wait in the input buffers"
            ),
            "place_reduction": common(found, lambda f: f.line.index(5), "in line"),
            "reduction_flits": exact(self.mesh.reduction_flits, "flits/packet at most"),
        }

    def _scene(self, size: Size, rng: np.random.Generator, number: int, among: bool) -> Scene:
        rows, cols = size
        goal = self.mesh.random_reduction(size, rng)
        longest = min(self.mesh.reduction_flits, _LONGEST_FLITS)
        flits = 1 if number < _FIT_ALONE // 2 else int(rng.integers(1, longest + 1))
        start = int(rng.integers(6))
        sends: list[Send] = [(start, node, goal, flits) for node in goal.operands.nodes(cols)]
        for _ in range(int(rng.integers(4, 12)) if among else 0):
            source, end = rng.choice(rows * cols, 2, replace=False).tolist()
            length = int(rng.integers(1, min(12, self.mesh.packet_flits) + 1))
            to = TileSet.tile(*divmod(end, cols))
            sends.append((int(rng.integers(8)), source, to, length))
        label = (
            f"{rows}x{cols}: {number}, {flits} flits from rows {goal.operands.rows}, columns "
            f"{goal.operands.cols} to {goal.root}, {len(sends) - len(goal.operands)} unicasts"
        )
        return Scene(size, label, tuple(sends))
