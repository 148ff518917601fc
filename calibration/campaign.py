"""All experiments in order, each stored as soon as it is done."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from calibration.experiment import Experiment, RtlModel, misses, run
from calibration.memory.experiments import MemoryBandwidth, MemoryLatency
from calibration.routers.listed import experiments
from calibration.routers.project import ProjectSubject
from calibration.store import is_stored, save
from calibration.tiles.engines import TileEngines
from calibration.tiles.queues import TileQueues
from calibration.tiles.relay import Relay
from calibration.tiles.streams import TileStreams
from calibration.tiles.systolic import SystolicExperiment
from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import CalibrationResult, forget, hold, stored_result
from tlm.errors import InputError

*_ROUTERS, _COLLECTIVES = experiments(ProjectSubject())
#: Later experiments rest on parameters of earlier ones.
EXPERIMENTS: tuple[Experiment[Any], ...] = (
    *_ROUTERS,
    SystolicExperiment(),
    TileEngines(),
    TileStreams(),
    TileQueues(),
    _COLLECTIVES,
    Relay(),
    MemoryLatency(),
    MemoryBandwidth(),
)

Progress = Callable[[str], None]


def calibrate(
    *,
    quick: bool = False,
    force: bool = False,
    workers: int = 1,
    progress: Progress = lambda message: None,
    building: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> list[CalibrationResult]:
    """Run every experiment whose stored result no longer holds.

    A quick campaign keeps to the models that the fits build and stores nothing. One that was
    stopped goes on with the experiment that it was at.

    Args:
        quick: Fewer check cases, on fewer models.
        force: Also run what still holds.
        workers: Verilator models built at a time.
        progress: Told what is being done.
        building: Entered while models are compiled.

    Raises:
        SimulationError: if a model cannot be built or its data are wrong.
        LawContradictedError: if the RTL does not behave as any parameters would have it.
    """
    todo = [e for e in EXPERIMENTS if force or quick or not _holds(e)]
    if todo:
        progress("building the Verilated models")
        with building():
            _build(models(todo, quick=quick), workers)
    results = []
    for experiment in EXPERIMENTS:
        if experiment not in todo:
            progress(f"{experiment.name}: RTL and model unchanged, stored result holds")
            results.append(stored_result(experiment.name))
            continue
        progress(f"{experiment.name}: measuring on RTL")
        result = run(experiment, quick=quick)
        # What comes later rests on it.
        if quick:
            hold(result)
        else:
            save(result)
        results.append(result)
    forget()
    return results


def repeat(
    name: str,
    *,
    workers: int = 1,
    building: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> tuple[CalibrationResult, bool]:
    """Measure an experiment in full again and store nothing.

    Args:
        name: Its name; one that is stored.
        workers: Verilator models built at a time.
        building: Entered while models are compiled.

    Returns:
        The result, and whether the stored one is the same, byte for byte.

    Raises:
        SimulationError: if a model cannot be built or its data are wrong.
        LawContradictedError: if the RTL does not behave as any parameters would have it.
    """
    (experiment,) = (each for each in EXPERIMENTS if each.name == name)
    with building():
        _build(models([experiment], quick=False), workers)
    result = run(experiment, quick=False)
    return result, is_stored(result)


def _build(wanted: Iterable[RtlModel], workers: int) -> None:
    with ThreadPoolExecutor(max_workers=workers) as pool:
        list(pool.map(lambda model: model.build(), wanted))


def models(experiments: Iterable[Experiment[Any]], *, quick: bool) -> list[RtlModel]:
    """What has to be built for some experiments, each model once."""
    return list(dict.fromkeys(e.rtl(case) for e in experiments for case in _cases(e, quick=quick)))


def missed_targets(results: Iterable[CalibrationResult]) -> Iterator[str]:
    """Targets that results of a campaign miss, a line each."""
    found = {result.name: result for result in results}
    for experiment in EXPERIMENTS:
        yield from misses(experiment, found[experiment.name])


def _holds(experiment: Experiment[Any]) -> bool:
    """Whether the stored result is of this RTL, these tools, these cases and this model.

    Models say when packets of some cases start, so what they say now has to be what is stored.
    """
    try:
        stored = stored_result(experiment.name)
        planned = [experiment.label(case) for case in _cases(experiment, quick=False)]
        measured = [point.case for point in stored.fit] + [point.case for point in stored.check]
        if stored.tools != tool_versions() or measured != planned:
            return False
        predicted = experiment.predict(stored.parameters, experiment.check_cases(quick=False))
    except InputError:
        return False
    return list(predicted) == [point.model for point in stored.check]


def _cases(experiment: Experiment[Any], *, quick: bool) -> list[Any]:
    return [*experiment.fit_cases(), *experiment.check_cases(quick=quick)]
