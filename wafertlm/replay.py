"""A stored check case again, on RTL and on the model.

Scenes of one mesh are played in one run, and leave it to the next whose turn it is at the arbiters:
a case is replayed after those before it, as it was measured. Nothing that comes later matters.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.campaign import EXPERIMENTS
from calibration.experiment import Experiment
from calibration.memory.experiments import MemoryBandwidth, MemoryLatency
from calibration.routers.collective import OnMesh
from calibration.routers.experiment import RouterExperiment
from calibration.routers.hang import Hang
from calibration.routers.listed import experiments
from calibration.routers.load import LoadExperiment
from calibration.routers.project import ProjectSubject
from calibration.routers.rtl_mesh import FIT_MESH
from calibration.routers.scenes import Scene
from calibration.routers.stored import load_custom
from calibration.routers.subject import Subject
from cosim.spec.mesh import load_spec
from tlm.calibrated import CalibrationResult, CheckPoint, stored_result
from tlm.errors import InputError, check_range, choose
from tlm.interconnect.handshake import DeadlockError
from tlm.interconnect.packets import Deliveries
from wafertlm.custom import CustomRouters
from wafertlm.noc.networks import Network, custom_network, project_network, simulate_at
from wafertlm.stopwatch import Building
from wafertlm.watched import Watch, watched, watched_mesh

#: Their cases are runs of their own.
_ALONE = (LoadExperiment, MemoryLatency, MemoryBandwidth, Hang)


@dataclass(frozen=True, slots=True)
class Difference:
    """A flit that is delivered in another cycle than the model says.

    Attributes:
        packet: Number of its packet in the run, for a reduction of the first operand's.
        node: Where it is delivered.
        flit: "head" or "tail".
        rtl_cycle: When on RTL.
        model_cycle: When on the model.
    """

    packet: int
    node: int
    flit: str
    rtl_cycle: int
    model_cycle: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came out.

    Attributes:
        case: The case in words.
        rtl: Its figure on RTL.
        model: The model's figure.
        stored_rtl: As the calibration stored it.
        stored_model: The same of the model.
        cases_before: Cases that were played before it in its run.
        packets_compared: Packets whose deliveries were compared one by one; None where the figure
            alone can be.
        first_difference: The first of them in time that differs, if any does.
        first_cycle: Cycle of the run in which its first packet is due; None without packets.
    """

    case: str
    rtl: float
    model: float
    stored_rtl: float
    stored_model: float
    cases_before: int
    packets_compared: int | None
    first_difference: Difference | None
    first_cycle: int | None


@dataclass(frozen=True, slots=True)
class Stored:
    """An experiment whose result is stored, and the check cases that the result is of.

    Attributes:
        experiment: The experiment, of a mesh on harnesses that ``watch`` sees.
        result: Its stored result.
        cases: Its check cases, in the order of the result.
        watch: What its runs leave.
    """

    experiment: Experiment[Any]
    result: CalibrationResult
    cases: Sequence[Any]
    watch: Watch

    def number(self, asked: int | None) -> int:
        """A case's number, without one that of the largest error.

        Raises:
            InputError: if there is no such case.
        """
        if asked is None:
            return worst(self.result.check)
        check_range("--case", asked, 0, len(self.cases) - 1)
        return asked

    def replay(self, number: int, building: Building = nullcontext) -> Replayed:
        """Run a case, and what was played before it in its run.

        Args:
            number: The case's number among the check cases.
            building: Entered while the model is compiled.

        Raises:
            InputError: if a wave is wanted of a harness that leaves none.
            SimulationError: if the model cannot be built or its data are wrong.
            HangError: if a mesh stands still that the experiment does not expect to.
        """
        cases = self._run(number)
        self.watch.own_packets = _packets_of(cases[-1])
        experiment, seen = self.experiment, cases
        if not isinstance(experiment, RouterExperiment):
            experiment, seen = watched(experiment, cases, self.watch)
        with building():
            experiment.rtl(seen[-1]).build()
        rtl = experiment.measure(seen)[-1]
        model = experiment.predict(self.result.parameters, cases)[-1]
        compared, difference = _first_difference(self.watch)
        point = self.result.check[number]
        return Replayed(
            case=point.case,
            rtl=rtl,
            model=model,
            stored_rtl=point.rtl,
            stored_model=point.model,
            cases_before=len(cases) - 1,
            packets_compared=compared,
            first_difference=difference,
            first_cycle=self.watch.first_cycle,
        )

    def _run(self, number: int) -> list[Any]:
        """The case, after those before it in its run."""
        case = self.cases[number]
        if isinstance(self.experiment, _ALONE):
            return [case]
        rtl = self.experiment.rtl
        return [one for one in self.cases[: number + 1] if rtl(one) == rtl(case)]


def names(spec_file: str | None) -> list[str]:
    """Experiments that have a result: the project's, or those of a custom mesh.

    Raises:
        InputError: if the specification is wrong, or its calibration missing or stale.
    """
    if spec_file is None:
        return [experiment.name for experiment in EXPERIMENTS]
    return [result.name for result in load_custom(load_spec(Path(spec_file))).results]


def load(name: str, spec_file: str | None, watch: Watch) -> Stored:
    """An experiment by its name, with its stored result.

    Raises:
        InputError: if there is no such experiment, or its result is missing, stale or of others
            than its cases.
    """
    choose("experiment", name, names(spec_file))
    if spec_file is None:
        again, result = "wafertlm calibrate", stored_result(name)
        subject: Subject = ProjectSubject(watched_mesh(_project, watch))
    else:
        routers = CustomRouters.load(spec_file)
        again = f"wafertlm calibrate --force --rtl {spec_file}"
        results = {result.name: result for result in routers.found.results}
        result = results[name]

        def network(rows: int, cols: int) -> Network:
            return custom_network(rows, cols, routers)

        parameters = {each: results[each].parameters for each in results}
        subject = Subject(routers.spec, parameters, watched_mesh(network, watch))
    known: Mapping[str, Experiment[Any]] = {
        one.name: one for one in (*EXPERIMENTS, *experiments(subject))
    }
    experiment = known[name]
    quick = spec_file is not None and routers.found.quick
    cases = experiment.check_cases(quick=quick)
    if spec_file is not None and (routers.found.findings or routers.found.not_represented):
        # Those that went wrong, on RTL or on the model, have no figures.
        there = {point.case for point in result.check}
        cases = [case for case in cases if experiment.label(case) in there]
    if [experiment.label(case) for case in cases] != [point.case for point in result.check]:
        raise InputError(f"calibration '{name}' is of other cases than there are; run '{again}'")
    return Stored(experiment, result, cases, watch)


def _project(rows: int, cols: int) -> Network:
    """The project's mesh as it is calibrated."""
    return project_network(replace(FIT_MESH, rows=rows, cols=cols))


def worst(points: Sequence[CheckPoint]) -> int:
    """Number of the point with the largest error; of equal ones the first."""
    return max(range(len(points)), key=lambda number: abs(points[number].error_pct))


def _packets_of(case: Any) -> int | None:
    """Packets of a case that shares its run; None of another."""
    if isinstance(case, OnMesh):
        return case.collective.messages
    return len(case.sends) if isinstance(case, Scene) else None


def _first_difference(watch: Watch) -> tuple[int | None, Difference | None]:
    """How many of the case's packets were compared, and the first of them that differs."""
    if watch.network is None or watch.packets is None or watch.deliveries is None:
        return None, None
    try:
        model = simulate_at(watch.network, watch.packets)
    except DeadlockError:
        return None, None
    first = watch.first_packet(watch.packets)
    return len(watch.packets) - first, first_difference(watch.deliveries, model, first)


def first_difference(rtl: Deliveries, model: Deliveries, first_packet: int) -> Difference | None:
    """The first flit in time that is delivered in different cycles, from a packet on."""
    mine = rtl.packet >= first_packet
    seen, said = (np.stack([d.head_ejected, d.tail_ejected])[:, mine] for d in (rtl, model))
    earlier = np.where(seen != said, np.minimum(seen, said), np.iinfo(np.int64).max)
    if not (seen != said).any():
        return None
    flit, at = np.unravel_index(int(earlier.argmin()), earlier.shape)
    return Difference(
        packet=int(rtl.packet[mine][at]),
        node=int(rtl.node[mine][at]),
        flit=("head", "tail")[flit],
        rtl_cycle=int(seen[flit, at]),
        model_cycle=int(said[flit, at]),
    )
