"""Forms are found in made-up measurements, also where one of them is a little off."""

from dataclasses import replace
from typing import Any

import pytest

from calibration.blackbox.experiments.contention import Contention
from calibration.blackbox.experiments.multicast import Multicast
from calibration.blackbox.experiments.reduction import Reduction
from calibration.blackbox.scenes import NoFormError, Scene, closest, play_model, shortlist
from calibration.blackbox.subject import Subject
from calibration.experiment import LawContradictedError
from cosim.spec.mesh import MeshSpec
from tlm.interconnect.packets import TileSet
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


@pytest.fixture
def subject(mesh_spec: MeshSpec, monkeypatch: pytest.MonkeyPatch) -> Subject:
    made = Subject(mesh_spec)
    made.timing = KNOWN
    for name, value in (("flits_mix", False), ("loopback", True), ("operand_limit", 5)):
        monkeypatch.setitem(made.__dict__, name, value)
    return made


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"arbiter": "fixed", "line": (4, 3, 0, 2, 1, 5), "lock_on_transfer": True},
        {"line": (1, 2, 3, 4, 0, 5), "turnaround_cycles": 1, "return_cycles": 2},
        {"y_first": True, "lock_on_transfer": True},
    ],
)
@pytest.mark.parametrize("off_cycles", [0.0, 0.3])
def test_arbiters(subject: Subject, form: dict[str, Any], off_cycles: float) -> None:
    true = replace(TRUE, **form)
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


def test_adders(subject: Subject) -> None:
    true = replace(
        TRUE,
        reduce_cycles=4,
        reduce_interval_cycles=5,
        operands_share=True,
        line=(5, 0, 1, 2, 3, 4),
    )
    experiment = Reduction(subject)
    cases = experiment.fit_cases()
    values = play_model(cases, true)
    found = experiment.identify(cases, values)
    assert subject.timing == true
    assert found["reduce_cycles"].ci95 == (4, 4)


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
