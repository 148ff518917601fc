"""How the network combines: cycles of an addition, where operands wait, whom a unit takes."""

from collections.abc import Iterable, Sequence

import numpy as np

from calibration.routers.experiment import (
    SceneExperiment,
    beyond_unicast,
    bound,
    common,
    exact,
    kind,
)
from calibration.routers.found import unit_at
from calibration.routers.meetings import MEETING, meeting_scenes
from calibration.routers.operations import check_data, untimed
from calibration.routers.scenes import Scene, Send, Size, about, closest, forms, shortlist, span
from tlm.calibrated import Parameter
from tlm.interconnect.packets import ReductionGoal, TileSet, cut
from tlm.interconnect.zero_load import ARBITERS, UNIT_CHOICES, NocTiming

_ALONE, _AMONG = "a reduction alone", "a reduction among unicasts"
_FIT_ALONE = 6
_FIT_AMONG = 4
_FIT_CROWDED = 10
_FIT_IN_PACKETS = 6
_FIT_MEETINGS = 24
_CHECKS_IN_PACKETS, _CHECKS_A_MESH, _CHECKED_MEETINGS = 30, 30, 24
_LONGEST_FLITS, _MOST_FLITS = 24, 40
#: Slowest adder that is recognised.
_LONGEST_CYCLES = 16
#: Forms that are kept to the end where none explains everything; of these with each kind of unit.
_NEARLY, _NEAREST = 60, 4
#: So many more results may a unit hold than it has to.
_SPARE_PLACES = 6
#: Units of all kinds are tried on every fifth crowd and meeting first.
_SOME = 5
# A crowd: so often the same reduction, so many unicasts to its root.
_ROUNDS, _ROUND_CYCLES, _CROWD = 4, 12, 40


class Reduction(SceneExperiment):
    """A group of operands alone, among unicasts, in a crowd; and two groups that meet in a router.

    One that is alone takes as long as a unicast from the farthest tile, and more in each router,
    the root's among them. With cut-through a full packet waits until the buffer behind is empty.
    """

    name = "reduction"
    subject = "results of a reduction, alone and among unicasts"

    @property
    def untried(self) -> Sequence[str]:
        """Meetings where there are none, another operation, packets that a limit leaves out."""
        meet = () if self._meetings() else (f"{MEETING}: no two of this mesh can want its unit",)
        return (*meet, *untimed(self.mesh), *self.mesh.outgrown("reduction_flits"))

    def fit_cases(self) -> list[Scene]:
        """Pairs, then random groups and roots: alone, with unicasts in the way, crowded, meeting.

        Pairs come first: they must see arbiters as they are after reset. Every fifth crowd and
        meeting comes before the others: these tell most units apart, and arbiters go on from what
        has been played. The last are alone, in one packet and in several.
        """
        rng, size = np.random.default_rng(self.seed), self.mesh.fit
        kinds = [False] * _FIT_ALONE + [True] * _FIT_AMONG
        scenes = self._pairs() + [self._scene(size, rng, i, a) for i, a in enumerate(kinds)]
        crowds = [self._crowded(size, rng, len(kinds) + i) for i in range(_FIT_CROWDED)]
        crowds += self._meetings()
        scenes += crowds[::_SOME]
        scenes += [crowd for number, crowd in enumerate(crowds) if number % _SOME]
        full = min(self.mesh.reduction_flits, _LONGEST_FLITS)
        return scenes + [
            self._in_packets(size, self.mesh.random_reduction(size, rng), flits)
            for flits in (1, full, full, 2 * full, 4 * full, 3 * full)
        ]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Others; alone from random rectangles and strided sets, to roots inside and outside."""
        alone, among, meeting = (np.random.default_rng(self.seed + number) for number in (3, 1, 5))
        scenes = []
        for size in self.mesh.check_sizes(quick=quick):
            for _ in range(_CHECKS_IN_PACKETS):
                goal = self.mesh.any_reduction(size, alone)
                flits = int(alone.integers(1, _MOST_FLITS + 1))
                scenes.append(self._in_packets(size, goal, flits))
            scenes += [
                self._scene(size, among, i, i % 3 == 1)
                if i % 3 < 2
                else self._crowded(size, among, i)
                for i in range(_CHECKS_A_MESH)
            ]
            scenes += meeting_scenes(self.mesh, size, meeting, _CHECKED_MEETINGS)
        if (longest := self.mesh.reduction_flits) > _MOST_FLITS:
            goal = self.mesh.random_reduction(self.mesh.fit, alone)
            scenes.append(self._in_packets(self.mesh.fit, goal, longest))
        fitted = {scene.label for scene in self.fit_cases()}
        others = {scene.label: scene for scene in scenes}
        return [scene for label, scene in others.items() if label not in fitted]

    def find(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """From reductions that are alone the cycles; from the others who waits for whom."""
        check_data(self.mesh, self.seed + 6)
        known = self._narrowed(cases, values, most=1)
        units = self._units(known, cases, values, ARBITERS[:2])
        best, misfit = closest(units, cases, values)
        if misfit > 0:
            best, misfit = closest(self._units(known, cases, values, ARBITERS), cases, values)
        if misfit > 0:
            # What explains those that are alone not wholly may be the nearest on all.
            near = shortlist(self._narrowed(cases, values, _NEARLY), cases, values, _NEAREST)
            best += self._units(near, cases, values, ARBITERS)
        found = self.choose(best, cases, values, "reductions")
        return {
            **self._gap(cases[-_FIT_IN_PACKETS:], values[-_FIT_IN_PACKETS:], found[0]),
            "reduce_cycles": common(found, lambda f: f.reduce_cycles, "cycles/router"),
            "reduce_interval_cycles": common(
                found, lambda f: f.reduce_interval_cycles, "cycles/flit"
            ),
            "cut_through": common(
                found, lambda f: int(f.cut_through), "1: a result waits for a packet's room"
            ),
            "operand_limit": self._operand_limit(),
            "operands_share": common(
                found, lambda f: int(f.operands_share), "1: they wait in the input buffers"
            ),
            "place_reduction": common(found, lambda f: f.line.index(5), "in line"),
            **self._unit(found),
            "unit_places": common(found, lambda f: f.result_places, "flits/unit"),
            "unit_return_cycles": common(found, lambda f: f.unit_return_cycles, "cycles/flit"),
            "reduction_flits": bound(
                self.mesh.reduction_flits,
                self.mesh.spec.limits.reduction_flits,
                self.mesh.limited_by.get("reduction_flits"),
            ),
        }

    def _operand_limit(self) -> Parameter:
        limit, more = self.mesh.operand_limit, self.mesh.limited_by.get("operand_limit")
        return exact(limit, "operands/router" + (f", more {more}" if more else ""))

    def _unit(self, found: list[NocTiming]) -> dict[str, Parameter]:
        """Whom a unit takes, where two reductions can meet in a router and share no link."""
        if not self._meetings():
            return {}
        return {
            "unit_choice": kind(found, "unit_choice", UNIT_CHOICES),
            "unit_arbiter": kind(found, "unit_arbiter", ARBITERS),
            "unit_lock_on_transfer": common(
                found, lambda f: int(f.unit_lock_on_transfer), "1: held from the first result on"
            ),
        }

    def _meetings(self) -> list[Scene]:
        rng = np.random.default_rng(self.seed + 4)
        return meeting_scenes(self.mesh, self.mesh.fit, rng, _FIT_MEETINGS)

    def _gap(
        self, alone: Sequence[Scene], values: Sequence[float], timing: NocTiming
    ) -> dict[str, Parameter]:
        """What each full packet but the first waits, where one needs room for all of itself."""
        if not timing.cut_through:
            return {}
        beyond = beyond_unicast(alone, values, timing)
        rests = [
            value - timing.reduce_cycles * (scene.hops + 1)
            for scene, value in zip(alone, beyond, strict=True)
        ]
        full = [[max(sum(scene.parts) // self.mesh.reduction_flits - 1, 0)] for scene in alone]
        return self.law({"gap_cycles": "cycles/packet"}, full, rests)

    def _narrowed(
        self, cases: Sequence[Scene], values: Sequence[float], most: int
    ) -> list[NocTiming]:
        """The forms that explain reductions that are alone best, with the unit at any place."""
        # Where there are multicasts, these have told it.
        whole = (self.mesh.timing.cut_through,) if self.mesh.multicasts else (False, True)
        known = forms(
            [self.mesh.timing],
            cut_through=whole,
            operand_limit=[self.mesh.operand_limit],
            operands_share=(False, True),
            reduce_cycles=range(_LONGEST_CYCLES + 1),
        )
        first = len(self._pairs())
        alone = range(first, first + _FIT_ALONE)
        # One flit alone does not show the interval.
        short = [i for i in alone if cases[i].sends[0][3] == 1]
        if short:
            known = shortlist(known, [cases[i] for i in short], [values[i] for i in short], most)
        known = forms(known, reduce_interval_cycles=range(1, _LONGEST_CYCLES + 2))
        known = shortlist(known, [cases[i] for i in alone], [values[i] for i in alone], most)
        line = self.mesh.timing.line
        return forms(known, line=[unit_at(line, place) for place in reversed(range(6))])

    def _units(
        self,
        known: list[NocTiming],
        cases: Sequence[Scene],
        values: Sequence[float],
        arbiters: Sequence[str],
    ) -> list[NocTiming]:
        """These with units of these arbiters; those that explain some crowds and meetings best."""
        kinds: dict[str, Iterable[object]] = {}
        if self._meetings():
            kinds = {
                "unit_choice": UNIT_CHOICES,
                "unit_arbiter": arbiters,
                "unit_lock_on_transfer": (False, True),
            }
        units = [
            form
            for timing in known
            for form in forms(
                [timing],
                unit_return_cycles=(0, 1),
                unit_places=[timing.result_places + spare for spare in range(_SPARE_PLACES + 1)],
                **kinds,
            )
        ]
        before = len(self._pairs()) + _FIT_ALONE + _FIT_AMONG
        some = slice(before + -(-(len(cases) - _FIT_IN_PACKETS - before) // _SOME))
        return shortlist(units, cases[some], values[some], _NEARLY if len(known) > 1 else 1)

    def _pairs(self) -> list[Scene]:
        """At one tile after the other a sum and a unicast, which starts a cycle later each time.

        Where both come in the same cycle the output has not been used before.
        """
        rows, cols = self.mesh.fit
        scenes = []
        for late, node in enumerate(range(rows * cols)):
            row, col = divmod(node, cols)
            across = (row ^ 1 if row ^ 1 < rows else row - 1) * cols + col
            goal = self.mesh.reduce(
                TileSet(range(row, row + 1), range(col & ~1, (col & ~1) + 2)), node
            )
            if (col ^ 1) < cols and self.mesh.can_name(self.mesh.fit, goal):
                sends: list[Send] = [(0, beside, goal, 1) for beside in (node, node ^ 1)]
                sends.append((late, across, TileSet.tile(row, col), 1))
                label = f"{rows}x{cols}: sum at {node}, unicast {late} cycles later"
                scene = Scene(self.mesh.fit, label, tuple(sends))
                scenes += about("a sum and a unicast at one output", [scene])
        return scenes

    def _in_packets(self, size: Size, goal: ReductionGoal, flits: int) -> Scene:
        rows, cols = goal.operands.rows, goal.operands.cols
        row, col = divmod(goal.root, size[1])
        label = (
            f"{size[0]}x{size[1]}: rows {span(rows)} columns {span(cols)} to {row},{col}, "
            f"{flits} flits"
        )
        parts = cut(flits, self.mesh.reduction_flits)
        nodes = goal.operands.nodes(size[1])
        sends = tuple((0, node, goal, part) for node in nodes for part in parts)
        return Scene(size, label, sends, whole=True, situation=_ALONE)

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
            f"{rows}x{cols}: {number}, {flits} flits from rows {span(goal.operands.rows)}, columns "
            f"{span(goal.operands.cols)} to {goal.root}, {len(sends) - len(goal.operands)} unicasts"
        )
        return Scene(size, label, tuple(sends), situation=_AMONG if among else _ALONE)

    def _crowded(self, size: Size, rng: np.random.Generator, number: int) -> Scene:
        """Unicasts that go where the results go: at every router they want the same output.

        As all have one end, they can never wait in a circle, however operands wait.
        """
        cols = size[1]
        # Of many operands: most routers on the way then have results of their own.
        goals = [self.mesh.random_reduction(size, rng) for _ in range(6)]
        goal = max(goals, key=lambda goal: len(goal.operands))
        to = TileSet.tile(*divmod(goal.root, cols))
        flits = int(rng.integers(1, min(self.mesh.reduction_flits, 4) + 1))
        sends: list[Send] = [
            (turn * _ROUND_CYCLES, node, goal, flits)
            for turn in range(_ROUNDS)
            for node in goal.operands.nodes(cols)
        ]
        # Half of them from tiles that bring operands: these meet results at the first router.
        senders = [*rng.integers(size[0] * cols, size=_CROWD // 2)]
        senders += [*rng.choice(goal.operands.nodes(cols), size=_CROWD - len(senders))]
        for node in map(int, senders):
            cycle = int(rng.integers(_ROUNDS * _ROUND_CYCLES))
            length = int(rng.integers(1, min(2, self.mesh.packet_flits) + 1))
            if node != goal.root:
                sends.append((cycle, node, to, length))
        label = (
            f"{size[0]}x{cols}: {number}, {_ROUNDS} times {flits} flits from rows "
            f"{span(goal.operands.rows)}, columns {span(goal.operands.cols)} to {goal.root}, "
            f"{_CROWD} unicasts"
        )
        sends.sort(key=lambda send: send[0])
        return Scene(
            size, label, tuple(sends), situation="a group's reductions among unicasts to its root"
        )
