"""Forms are found in made-up measurements, also where one of them is a little off."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibration.experiment import LawContradictedError
from calibration.routers import contention
from calibration.routers.buffering import Buffering
from calibration.routers.contention import Contention
from calibration.routers.multicast import Multicast
from calibration.routers.project import ProjectSubject
from calibration.routers.reduction import Reduction
from calibration.routers.scenes import NoFormError, Scene, closest, play_model, shortlist
from calibration.routers.subject import Subject
from calibration.routers.unicast import Unicast
from cosim.spec.mesh import MeshSpec
from tests.specifications import Changed
from tlm.interconnect.packets import PacketKind, TileSet
from tlm.interconnect.zero_load import NocTiming

TRUE = NocTiming(
    hop_cycles=2,
    ejection_cycles=2,
    fifo_depth=2,
    multicast_gap_cycles=0,
    flit_bytes=8,
    output_depth=2,
    cut_through=False,
)
#: What the experiments before have found: nothing of arbiters, forks and adders.
KNOWN = replace(TRUE)


class MadeUp(Subject):
    """A mesh of which all is known that its Verilog would have to be built for."""

    def __init__(self, spec: MeshSpec, known: NocTiming) -> None:
        super().__init__(spec)
        self.unknown = known
        self.channel, self.flits_mix = "none", False
        self.tried_loopback, self.operand_limit = True, 5
        #: What would have been played.
        self.played: list[Scene] = []

    def measure(self, cases: Sequence[Scene]) -> list[float]:
        """A cycle for each."""
        self.played += cases
        return [1.0] * len(cases)


@pytest.fixture
def subject(mesh_spec: MeshSpec) -> MadeUp:
    return MadeUp(mesh_spec, KNOWN)


@pytest.mark.parametrize(
    ("form", "off_cycles"),
    [
        ({}, 0.0),
        ({"arbiter": "fixed", "line": (4, 3, 0, 2, 1, 5), "lock_on_transfer": True}, 0.0),
        ({"line": (1, 2, 3, 4, 0, 5), "turnaround_cycles": 1, "return_cycles": 2}, 0.0),
        ({"y_first": True, "lock_on_transfer": True}, 0.0),
        # Where a measurement is a little off, the nearest form is kept.
        ({"y_first": True, "lock_on_transfer": True}, 0.3),
    ],
)
def test_arbiters(
    subject: Subject, form: dict[str, Any], off_cycles: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = replace(TRUE, **form)
    if off_cycles:  # all forms are tried, trees among them
        monkeypatch.setattr(contention, "LONGEST_TURNAROUND_CYCLES", 1)
        monkeypatch.setattr(contention, "LONGEST_RETURN_CYCLES", 1)
    experiment = Contention(subject)
    cases = experiment.fit_cases()
    values = play_model(cases, true)
    values[0] += off_cycles
    found = experiment.identify(cases, values)
    for field in ("arbiter", "y_first", "lock_on_transfer", "turnaround_cycles", "return_cycles"):
        assert getattr(subject.timing, field) == getattr(true, field), field
    assert [found[f"place_{name}"].value for name in ("north", "west", "local")] == [
        true.line.index(port) for port in (1, 4, 0)
    ]
    assert bool(subject.not_represented) == bool(off_cycles)


@pytest.mark.parametrize("fork", ["own-pace", "flit-by-flit", "lockstep"])
def test_forks(subject: Subject, fork: str) -> None:
    true = replace(TRUE, fork=fork)
    experiment = Multicast(subject)
    cases = experiment.fit_cases()
    found = experiment.identify(cases, play_model(cases, true))
    assert subject.timing == true
    assert found["fork"].unit == fork
    assert subject.not_represented == []


_SLOW = {"reduce_cycles": 4, "reduce_interval_cycles": 5, "line": (5, 0, 1, 2, 3, 4)}


@pytest.mark.parametrize(
    "form",
    [
        {"operands_share": True},
        {"unit_choice": "first"},
        {"unit_choice": "first", "unit_arbiter": "fixed", "operands_share": True},
        {"unit_choice": "first", "unit_lock_on_transfer": True, "unit_places": 2},
        {"unit_arbiter": "fixed", "unit_lock_on_transfer": True, "reduce_interval_cycles": 1},
        {"unit_places": 3, "unit_return_cycles": 1},
    ],
)
def test_adders(subject: MadeUp, form: dict[str, Any]) -> None:
    true = replace(TRUE, **(_SLOW | form))
    experiment = Reduction(subject)
    cases = experiment.fit_cases()
    values = play_model(cases, true)
    found = experiment.identify(cases, values)
    assert subject.timing == true
    # Of the other operation the data are held, on Verilog.
    kinds = {goal.kind for scene in subject.played for *_, goal, _ in scene.sends}
    assert kinds == {PacketKind.MAXIMUM}
    for name in ("reduce_cycles", "unit_choice", "unit_arbiter"):
        assert found[name].ci95 == (found[name].value, found[name].value)


PROJECT = NocTiming(1, 1, 4, 1, 8)


def test_depths(subject: Subject) -> None:
    experiment = Buffering(subject)
    cases = experiment.fit_cases()
    values = [float(np.dot(case.places, (7, 2, 3))) for case in cases]
    found = experiment.identify(cases, values)
    assert {name: parameter.value for name, parameter in found.items()} == {
        "fifo_depth": 7,
        "output_depth": 2,
        "tile_depth": 3,
    }
    assert (subject.timing.fifo_depth, subject.timing.tile_places) == (7, 3)


@pytest.mark.parametrize("wrong", [0, 1])
def test_flits_that_no_depths_explain(subject: Subject, wrong: int) -> None:
    experiment = Buffering(subject)
    cases = experiment.fit_cases()
    values = [
        float(np.dot(case.places, (7, 0, 0))) - (at == wrong) for at, case in enumerate(cases)
    ]
    with pytest.raises(LawContradictedError, match=r"no router is such|no whole constants fit"):
        experiment.identify(cases, values)


def test_a_network_that_takes_everything_has_no_known_depth(subject: Subject) -> None:
    cases = Buffering(subject).fit_cases()
    with pytest.raises(LawContradictedError, match="the path took every flit that was offered"):
        Buffering(subject).identify(cases, [80.0 * case.places[0] for case in cases])


def test_cycles_of_hops_and_flits(subject: Subject) -> None:
    experiment = Unicast(subject)
    cases = experiment.fit_cases()
    values = [5.0 + 3 * scene.hops + 2 * (sum(scene.parts) - 1) for scene in cases]
    found = experiment.identify(cases, values)
    assert {name: parameter.value for name, parameter in found.items()} == {
        "ejection_cycles": 5,
        "hop_cycles": 3,
        "link_interval_cycles": 2,
        # Over hops of three cycles so few places keep pace only if they are free at once.
        "return_cycles": 0,
        "serialisation_cycles": 2,
    }
    for wrong in range(len(cases)):
        off = [value + (at == wrong) for at, value in enumerate(values)]
        with pytest.raises(LawContradictedError):
            experiment.identify(cases, off)


def test_a_mesh_whose_places_return_late_has_no_constant_serialisation(subject: Subject) -> None:
    # Two flits, then a wait: the model explains it, the closed form does not.
    late = replace(TRUE, output_depth=0, return_cycles=4)
    subject.unknown = replace(KNOWN, output_depth=0)
    experiment = Unicast(subject)
    cases = experiment.fit_cases()
    found = experiment.identify(cases, play_model(cases, late))
    assert found["link_interval_cycles"].value == 1
    assert "serialisation_cycles" not in found
    assert subject.not_represented == []


def test_a_loopback_that_is_stored_is_measured_all_the_same() -> None:
    subject = ProjectSubject()
    assert subject.loopback
    subject.tried_loopback = False
    experiment = Multicast(subject)
    cases = experiment.fit_cases()
    found = experiment.identify(cases, play_model(cases, replace(subject.timing, loopback=False)))
    assert found["loopback"].value == 0


@pytest.mark.parametrize(
    ("hop_cycles", "fifo_depth"),
    [
        (2, 4),
        (3, 8),
        # The others, each of which tries as many forms.
        *[pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 4), (3, 4), (1, 8), (2, 8))],
    ],
)
def test_gaps_between_packets_that_need_room_for_all_of_themselves(
    changed_mesh: Changed, hop_cycles: int, fifo_depth: int
) -> None:
    spec = changed_mesh(("FifoDepth = 4", f"FifoDepth = {fifo_depth}"))
    true = replace(
        PROJECT, hop_cycles=hop_cycles, ejection_cycles=hop_cycles, fifo_depth=fifo_depth
    )
    subject = MadeUp(spec, replace(true, multicast_gap_cycles=0))
    gaps = []
    for experiment in (Multicast(subject), Reduction(subject)):
        cases = experiment.fit_cases()
        found = experiment.identify(cases, play_model(cases, true))
        gaps.append(found["gap_cycles"].value)
    # A place is free a cycle after its flit has left, and is filled a hop later.
    assert gaps == [hop_cycles, hop_cycles + true.reduce_cycles]
    assert subject.timing.multicast_gap_cycles == hop_cycles


@pytest.mark.parametrize(("depth", "cut_through"), [(4, True), (8, True), (8, False)])
def test_limits_that_buffers_have_outgrown_are_told(
    mesh_spec: MeshSpec, depth: int, cut_through: bool
) -> None:
    """The specification says 4 flits."""
    subject = Subject(mesh_spec)
    subject.unknown = replace(PROJECT, fifo_depth=depth, cut_through=cut_through)
    vars(subject)["operand_limit"] = 5
    told = depth == 8 and cut_through
    for experiment, limit in ((Multicast(subject), "multicast"), (Reduction(subject), "reduction")):
        line = f"more flits than limits.{limit}_flits = 4: buffers hold packets of 8"
        assert (line in experiment.untried) == told


def test_the_nearest_are_kept_where_none_is_exact() -> None:
    scenes = [Scene((3, 4), "one", ((0, 0, TileSet.tile(0, 3), 5),))]
    candidates = [replace(TRUE, hop_cycles=cycles) for cycles in (2, 3, 4, 5)]
    values = [figure + 0.5 for figure in play_model(scenes, candidates[1])]
    best, misfit = closest(candidates, scenes, values)
    assert (best, misfit) == ([candidates[1]], 0.5)
    assert shortlist(candidates, scenes, values, 2) == [candidates[1], candidates[2]]


def test_scenes_that_no_form_can_play_are_named() -> None:
    ring = [(0, 1, TileSet(range(1), range(1, 3)), 40), (0, 2, TileSet(range(1), range(1, 3)), 40)]
    scenes = [Scene((3, 4), "a ring of waits", tuple(ring))]
    with pytest.raises(NoFormError, match="'a ring of waits'"):
        closest([replace(TRUE, fork="flit-by-flit", fifo_depth=2)], scenes, [0.0])


def test_sets_that_headers_cannot_name_end_the_search(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Subject, "can_name", lambda self, size, goal: False)
    with pytest.raises(LawContradictedError, match="headers name no set of tiles on 4x4"):
        Multicast(subject).fit_cases()


def test_scenes_do_not_see_each_other(subject: Subject) -> None:
    # Only who is first in line at an arbiter stays behind, which decides nothing in these.
    lone = [Unicast(subject).check_cases(quick=True), Multicast(subject).check_cases(quick=True)]
    scenes = [scene for cases in lone for scene in cases if scene.whole]
    alone = [play_model([scene], PROJECT)[0] for scene in scenes]
    assert play_model(scenes, PROJECT) == alone
