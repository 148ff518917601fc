"""Calibration of a custom mesh: all experiments in order, and what they found, stored."""

import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from calibration.experiment import Experiment, LawContradictedError, misses, run
from calibration.routers.findings import MOST_FINDINGS, Findings
from calibration.routers.found import IDENTIFIED
from calibration.routers.listed import experiments
from calibration.routers.part import PROBING, Made, Part, resumed
from calibration.routers.scenes import NoFormError, ScenesMixedError
from calibration.routers.stored import (
    CustomCalibration,
    NotMade,
    calibration_file,
    findings_folder,
    load_custom,
    part_file,
)
from calibration.routers.subject import Subject
from cosim.spec.mesh import MeshSpec
from cosim.verilated.toolchain import tool_versions
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.interconnect.handshake import DeadlockError
from tlm.sealed import sealed

#: What tells that a mesh is not like the model.
NOT_FOUND_OUT = (LawContradictedError, NoFormError, ScenesMixedError, DeadlockError)
_LONE = ("buffering", "unicast")
_UNICASTS = (*_LONE, "contention")
#: What has to be identified before, of what the mesh knows.
_NEEDS = {
    "unicast": _LONE[:1],
    "contention": _LONE,
    "multicast": _UNICASTS,
    "reduction": (*_UNICASTS, "multicast"),
    "traffic": _UNICASTS,
    "mix": IDENTIFIED,
    "hang": IDENTIFIED,
    "collective": _UNICASTS,
}


def calibrate_custom(
    spec: MeshSpec,
    *,
    quick: bool = False,
    store_quick: bool = False,
    force: bool = False,
    workers: int = 1,
    progress: Callable[[str], None] = lambda message: None,
    building: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> CustomCalibration:
    """Find out what a mesh is like, and check it blind, unless what is stored still holds.

    A campaign stores each experiment as it ends. Scenes that go wrong are findings; experiments go
    on without them, and those that need what was not identified are not made. Nothing is stored for
    use, then.

    Args:
        spec: The mesh.
        quick: Keep to the size of the fit, and store nothing.
        store_quick: Keep to that size, and store it, marked as quick; a whole one does as well.
        force: Measure again what holds.
        workers: Verilator models built at a time.
        progress: Told what is being done.
        building: Entered while models are compiled.

    Raises:
        SimulationError: if a model cannot be built.
        InputError: if the folder of the specification cannot be written.
    """
    stores = store_quick or not quick
    quick = quick or store_quick
    if stores and not force:
        with suppress(InputError):
            found = load_custom(spec)
            if found.tools == tool_versions() and (quick or not found.quick):
                progress("sources unchanged, the stored result holds")
                return found
    if stores:
        _hold_writable(spec.folder)
    subject = Subject(spec)
    progress("building the Verilated meshes")
    with building(), ThreadPoolExecutor(max_workers=workers) as pool:
        sizes = dict.fromkeys(subject.check_sizes(quick=quick))
        built = list(pool.map(lambda size: subject.mesh(size).build(), sizes))
    subject.read = sorted({path for each in built for path in each.read})
    campaign = _Campaign(subject, quick=quick, stores=stores, force=force, progress=progress)
    campaign.go()
    found = campaign.found()
    if stores and found.identified:
        with whole_file(calibration_file(spec)) as scratch:
            scratch.write_text(sealed(found), encoding="utf-8")
        part_file(spec).unlink(missing_ok=True)
    return found


class _Campaign:
    """The experiments on a mesh, one after the other.

    Args:
        subject: The mesh.
        quick: Fewer check cases.
        stores: Each experiment is stored as it ends.
        force: Nothing counts that was found before.
        progress: Told what is being done.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        quick: bool,
        stores: bool,
        force: bool,
        progress: Callable[[str], None],
    ) -> None:
        self._subject, self._quick, self._progress = subject, quick, progress
        self._file = part_file(subject.spec) if stores else None
        self._part = Part.begin(subject, quick=quick)
        folder = findings_folder(subject.spec)
        if not stores:
            folder = Path(tempfile.gettempdir()) / f"wafertlm-{os.getpid()}" / folder.name
        elif not force:
            self._part = resumed(self._part, part_file(subject.spec), progress)
        if not self._part.made:
            shutil.rmtree(folder, ignore_errors=True)
        subject.found = {
            each.experiment: each.result.parameters for each in self._part.made if each.result
        }
        subject.findings = self._findings = Findings(subject.spec, folder, subject.mesh_type)
        self._listed = self._probed()

    def go(self) -> None:
        """Make what has not been made."""
        made = {each.experiment for each in self._part.made}
        for experiment in self._listed:
            if experiment.name not in made:
                self._part.made.append(self._made(experiment))
                if self._file is not None:
                    self._part.store(self._file)

    def _probed(self) -> list[Experiment[Any]]:
        """The experiments, by what the mesh shows before them; what goes wrong then is kept."""
        self._findings.begin(PROBING)
        self._subject.try_neighbours()
        listed = experiments(self._subject)
        if found := self._findings.found:
            self._tell(PROBING)
            others = [each for each in self._part.made if each.experiment != PROBING]
            self._part.made = [Made(experiment=PROBING, findings=found), *others]
        return listed

    def found(self) -> CustomCalibration:
        """What has been found."""
        subject, part = self._subject, self._part
        return CustomCalibration(
            sources=part.sources,
            tools=part.tools,
            model=part.model,
            network=asdict(subject.timing),
            packet_flits=subject.packet_flits,
            multicast_flits=subject.multicast_flits if subject.multicasts else None,
            reduction_flits=subject.reduction_flits if subject.reductions else None,
            no_limit_found=subject.no_limit_found,
            not_represented=[line for each in part.made for line in each.not_represented],
            findings=[finding for each in part.made for finding in each.findings],
            not_made=[NotMade(experiment=e.experiment, why=e.why) for e in part.made if e.why],
            results=[each.result for each in part.made if each.result is not None],
            quick=self._quick,
            identified={each.name for each in self._listed} & {*IDENTIFIED} <= {*subject.found},
        )

    def _made(self, experiment: Experiment[Any]) -> Made:
        """Make an experiment, unless what it needs is not known."""
        name, subject = experiment.name, self._subject
        known = {each.name for each in self._listed}
        missing = [n for n in _NEEDS.get(name, ()) if n in known and n not in subject.found]
        if missing:
            why = f"not made: it needs what {' and '.join(missing)} did not identify"
            self._progress(f"{name}: {why}")
            return Made(experiment=name, why=why)
        self._progress(f"{name}: measuring on RTL")
        self._findings.begin(name)
        subject.not_represented = []
        result, why = None, ""
        try:
            result = run(experiment, quick=self._quick, folder=subject.spec.folder)
            subject.not_represented += misses(experiment, result)
        except (
            *NOT_FOUND_OUT,
            InputError,  # of the project's tiles, on which collectives in software rest
        ) as error:
            why = f"no result: {why_no_result(error)}"
            self._progress(f"{name}: {why}")
        if self._findings.unkept:
            more = f"{self._findings.unkept} more went wrong than the {MOST_FINDINGS} that are kept"
            why = "; ".join(filter(None, (why, more)))
        if self._findings.unplayed:
            left_out = f"{self._findings.unplayed} scenes left out after {MOST_FINDINGS} findings"
            why = "; ".join(filter(None, (why, left_out)))
        self._tell(name)
        return Made(
            experiment=name,
            result=result,
            why=why,
            not_represented=subject.not_represented,
            findings=self._findings.found,
        )

    def _tell(self, name: str) -> None:
        """Say what went wrong in an experiment."""
        for finding in self._findings.found:
            self._progress(f"{name}: {finding.scene}: {finding.what}")
            self._progress(f"  again: {finding.shown(self._subject.spec)['command']}")


def why_no_result(error: Exception) -> str:
    """Why an experiment has no result."""
    if isinstance(error, NoFormError):
        return f"the mesh is like no form of the model: {error}"
    if isinstance(error, ScenesMixedError):
        return f"packets are slower than any mesh is taken to be: {error}"
    if isinstance(error, DeadlockError):
        return f"the model that was found hangs where the mesh does not: {error}"
    return str(error)


def _hold_writable(folder: Path) -> None:
    """Hold that the result can be stored, before the measurements are made."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written: {error.strerror}; allowed: a folder in which the "
            "calibration can be stored"
        ) from error
