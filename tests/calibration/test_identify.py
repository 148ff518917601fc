"""What the experiments make of measurements: the constants, or that there are none."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from calibration.campaign import EXPERIMENTS
from calibration.experiment import Experiment, LawContradictedError
from calibration.experiments.buffering import Buffering
from calibration.experiments.contention import Contention
from calibration.experiments.mesh_cases import Scene, play_model
from calibration.experiments.multicast import Multicast
from calibration.experiments.unicast import Unicast
from calibration.solve import solve_exactly
from tlm.calibrated import CalibrationResult, Parameter
from tlm.interconnect.zero_load import NocTiming

UNICAST = {
    name: Parameter.exact(value, unit)
    for name, value, unit in (
        ("ejection_cycles", 3, "cycles"),
        ("hop_cycles", 2, "cycles/hop"),
        ("serialisation_cycles", 1, "cycles/flit"),
    )
}


@pytest.fixture
def other_router(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored unicast result of a router that is not the project's: 3 cycles out, 2 a hop."""
    stored = CalibrationResult.model_construct(name="unicast", parameters=UNICAST)
    for module in ("contention", "multicast"):
        monkeypatch.setattr(f"calibration.experiments.{module}.load_result", lambda name: stored)


def unicast_cycles(scene: Scene) -> float:
    return 3.0 + 2 * scene.hops + scene.flits - 1


def mean_of_turns(scene: Scene, turnaround: int) -> float:
    """Mean finish of packets that leave one after the other."""
    flits = scene.sends[0][3]
    ends = [3 + 2 + flits - 1 + i * (flits + turnaround) for i in range(len(scene.sends))]
    return sum(ends) / len(ends)


Law = Callable[[Any], float]
LAWS: list[tuple[Experiment[Any], Law, dict[str, float]]] = [
    (Unicast(), unicast_cycles, {name: p.value for name, p in UNICAST.items()}),
    (Buffering(), lambda path: 7.0 * (path.hops + 1), {"fifo_depth": 7}),
    (Contention(), lambda scene: mean_of_turns(scene, 2), {"turnaround_cycles": 2}),
    (
        Multicast(),
        lambda scene: unicast_cycles(scene) + 5 + 3 * max(scene.flits // 4 - 1, 0),
        {"fork_cycles": 5, "gap_cycles": 3},
    ),
]
NAMES = [experiment.name for experiment, _, _ in LAWS]


@pytest.mark.usefixtures("other_router")
@pytest.mark.parametrize(("experiment", "law", "truth"), LAWS, ids=NAMES)
def test_constants_of_another_router_are_recovered(
    experiment: Experiment[Any], law: Law, truth: dict[str, float]
) -> None:
    cases = experiment.fit_cases()
    found = experiment.identify(cases, [law(case) for case in cases])
    assert {name: parameter.value for name, parameter in found.items()} == truth
    assert all(p.ci95 == (p.value, p.value) for p in found.values())


@pytest.mark.usefixtures("other_router")
@pytest.mark.parametrize(("experiment", "law", "truth"), LAWS, ids=NAMES)
def test_one_measurement_off_contradicts_the_law(
    experiment: Experiment[Any], law: Law, truth: dict[str, float]
) -> None:
    cases = experiment.fit_cases()
    for wrong in range(len(cases)):
        values = [law(case) + (index == wrong) for index, case in enumerate(cases)]
        with pytest.raises(LawContradictedError, match="no whole constants fit: nearest "):
            experiment.identify(cases, values)


@pytest.mark.usefixtures("other_router")
def test_flits_that_take_turns_contradict_the_law_of_contention() -> None:
    # All packets end with the last flits: what a router does that arbitrates flit by flit.
    def interleaved(scene: Scene) -> float:
        packets, flits = len(scene.sends), scene.sends[0][3]
        return 3 + 2 + packets * (flits - 1) + (packets - 1) / 2

    cases = Contention().fit_cases()
    with pytest.raises(LawContradictedError):
        Contention().identify(cases, [interleaved(case) for case in cases])


def test_a_network_that_takes_everything_has_no_known_depth() -> None:
    cases = Buffering().fit_cases()
    with pytest.raises(LawContradictedError, match="the path took every flit that was offered"):
        Buffering().identify(cases, [25.0 * (case.hops + 1) for case in cases])


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ([[1, 1], [2, 2]], [3, 6]),  # one equation twice
        ([[2], [4]], [1, 2]),  # a half
        ([[1], [1]], [4, 5]),  # two truths
    ],
)
def test_only_whole_and_only_constants_solve_exactly(
    rows: list[list[int]], values: list[float]
) -> None:
    with pytest.raises(LawContradictedError):
        solve_exactly(rows, values)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: str(experiment.name))
def test_checks_are_blind(experiment: Experiment[Any]) -> None:
    def labels(cases: Sequence[Any]) -> list[str]:
        return [experiment.label(case) for case in cases]

    fitted = labels(experiment.fit_cases())
    quick, full = (labels(experiment.check_cases(quick=quick)) for quick in (True, False))
    for cases in (fitted, quick, full):
        assert len(set(cases)) == len(cases)
    assert not set(fitted) & set(full)
    assert full[: len(quick)] == quick
    assert len(full) > len(quick) > 0
    assert full == labels(experiment.check_cases(quick=False))


def test_scenes_do_not_see_each_other() -> None:
    # Only who is first in line at an arbiter stays behind, which decides nothing in these.
    timing = NocTiming(1, 1, 4, 1, 8)
    scenes = [*Unicast().check_cases(quick=True), *Multicast().check_cases(quick=True)]
    alone = [play_model([scene], timing)[0] for scene in scenes]
    assert play_model(scenes, timing) == alone
