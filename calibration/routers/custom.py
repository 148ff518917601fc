"""Calibration of a custom mesh: all experiments in order, and what they found, stored."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile

from calibration.experiment import misses, run
from calibration.routers.listed import experiments
from calibration.routers.stored import (
    CustomCalibration,
    calibration_file,
    load_custom,
    model_hash,
)
from calibration.routers.subject import Subject
from cosim.spec.mesh import MeshSpec
from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import source_hashes
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.sealed import sealed


def calibrate_custom(
    spec: MeshSpec,
    *,
    quick: bool = False,
    force: bool = False,
    workers: int = 1,
    progress: Callable[[str], None] = lambda message: None,
    building: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> CustomCalibration:
    """Find out what a mesh is like, and check it blind, unless what is stored still holds.

    A quick campaign keeps to the size of the fit, and stores nothing.

    Raises:
        SimulationError: if a model cannot be built or its data are wrong.
        LawContradictedError: if the mesh follows no law that is known.
        InputError: if the folder of the specification cannot be written.
    """
    if not (quick or force):
        with suppress(InputError):
            found = load_custom(spec)
            if found.tools == tool_versions():
                progress("sources unchanged, the stored result holds")
                return found
    if not quick:
        _hold_writable(spec.folder)
    subject = Subject(spec)
    progress("building the Verilated meshes")
    with building(), ThreadPoolExecutor(max_workers=workers) as pool:
        sizes = dict.fromkeys(subject.check_sizes(quick=quick))
        built = list(pool.map(lambda size: subject.mesh(size).build(), sizes))
    subject.read = sorted({path for each in built for path in each.read_unnamed()})
    results = []
    for experiment in experiments(subject):
        progress(f"{experiment.name}: measuring on RTL")
        result = run(experiment, quick=quick, folder=spec.folder)
        subject.not_represented += misses(experiment, result)
        results.append(result)
    found = CustomCalibration(
        sources=source_hashes(subject.sources(), spec.folder),
        tools=tool_versions(),
        model=model_hash(),
        network=asdict(subject.timing),
        packet_flits=subject.packet_flits,
        multicast_flits=subject.multicast_flits if subject.multicasts else None,
        reduction_flits=subject.reduction_flits if subject.reductions else None,
        not_represented=subject.not_represented,
        results=results,
    )
    if not quick:
        with whole_file(calibration_file(spec)) as scratch:
            scratch.write_text(sealed(found), encoding="utf-8")
    return found


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
