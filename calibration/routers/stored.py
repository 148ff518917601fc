"""What was found out of a custom mesh, as it lies beside the specification: NAME.calibration.json.

It goes stale with the sources, and with the model and the experiments that it rests on. While a
campaign goes on, what it has found so far lies in NAME.part.calibration.json.
"""

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from cosim.spec.mesh import MeshSpec
from cosim.verilated.cache import included_files
from cosim.verilog import TILE_SOURCES
from tlm.calibrated import REPOSITORY, CalibrationResult, combined_hash, file_hash, source_hashes
from tlm.errors import InputError
from tlm.imported import imported_files
from tlm.interconnect.zero_load import NocTiming
from tlm.sealed import unsealed
from tlm.tables import Table

#: What finds a mesh out: the campaign, the bench that a simulator loads, and all they import.
_CAMPAIGN = ("calibration.routers.custom", "calibration.benches.blackbox_bench")
#: What they read: the bench's Verilog, and the project's tiles, which start collectives.
_READ = (
    "calibration/results/tile*.json",
    "rtl/bench/blackbox*.*",
    "rtl/bench/flit_replayer.sv",
    "tlm/chips/rtl.toml",
)
_TIMING = TypeAdapter(NocTiming)


def model_hash() -> str:
    """Hash of all of the project that a calibration rests on, as it is now, wherever it stands."""
    read = {path for pattern in _READ for path in REPOSITORY.glob(pattern)}
    files = {*imported_files(_CAMPAIGN, REPOSITORY), *read, *TILE_SOURCES}
    hashes = sorted(map(file_hash, files))
    return combined_hash({str(number): each for number, each in enumerate(hashes)})


class Finding(Table):
    """What went wrong in a scene.

    Attributes:
        experiment: Whose scene it is.
        scene: The scene in words.
        what: "hang", "assertion", "timeout" or "wrong data", and the first sign of it.
        packets: The file from which the scene is run again, as seen from the specification.
        wave: The wave of such a run; None if it did not go wrong there.
    """

    experiment: str
    scene: str
    what: str
    packets: str
    wave: str | None

    def shown(self, spec: MeshSpec) -> dict[str, str | None]:
        """As a command tells it: paths from anywhere, and how the scene is run again."""
        packets = shlex.quote(str(spec.folder / self.packets))
        again = f"wafertlm replay --rtl {shlex.quote(str(spec.file))} --finding {packets}"
        wave = None if self.wave is None else str(spec.folder / self.wave)
        told = self.model_dump(include={"experiment", "scene", "what"})
        return {**told, "wave": wave, "command": again}


class NotMade(Table):
    """An experiment without a result, or of which scenes were left out, and why."""

    experiment: str
    why: str


class CustomCalibration(Table):
    """What was found out of a mesh.

    Attributes:
        sources: Hash of the specification, of each source, of each file that may be included and of
            each that Verilator read, by name beside the specification.
        tools: Versions of the tools.
        model: Hash of the model and the experiments it was found with.
        network: The fields of `NocTiming`.
        packet_flits: Longest packet that was tried, or is allowed.
        multicast_flits: Longest multicast that was tried, or is allowed; None without multicasts.
        reduction_flits: Longest operand alike; None without reductions.
        no_limit_found: Which of these two are no limits: packets may be longer.
        not_represented: What the model cannot be like, and how far it is off, a line each.
        findings: Scenes that went wrong.
        not_made: Experiments without a result, or of which scenes were left out.
        results: Of each experiment.
        identified: Every experiment that identifies something has; else this is not stored.
        quick: Of fewer check cases, all on the size of the fit.
    """

    sources: dict[str, str]
    tools: dict[str, str]
    model: str = Field(default_factory=model_hash)
    network: dict[str, Any]
    packet_flits: int
    multicast_flits: int | None
    reduction_flits: int | None
    no_limit_found: list[str] = []
    not_represented: list[str]
    findings: list[Finding] = []
    not_made: list[NotMade] = []
    results: list[CalibrationResult]
    identified: bool = True
    quick: bool = False

    def told_name(self, spec: MeshSpec) -> str:
        """The calibration's name wherever it is shown."""
        return f"{spec.name} (quick)" if self.quick else spec.name

    def timing(self) -> NocTiming:
        """The mesh as the model takes it."""
        return _TIMING.validate_python(self.network)

    @field_validator("network")
    @classmethod
    def _is_a_timing(cls, network: dict[str, Any]) -> dict[str, Any]:
        known = {field.name for field in fields(NocTiming)}
        if wrong := sorted(known ^ network.keys()):
            problem = "not there" if wrong[0] in known else "not known"
            raise ValueError(f"{wrong[0]}: {problem}; allowed: the fields of NocTiming")
        try:
            _TIMING.validate_python(network)
        except InputError as error:
            raise ValueError(str(error)) from error
        return network


def calibration_file(spec: MeshSpec) -> Path:
    """Where the calibration of a mesh lies."""
    return spec.folder / f"{spec.name}.calibration.json"


def part_file(spec: MeshSpec) -> Path:
    """Where a campaign that goes on keeps what it has found; no file of the mesh (`cache.py`)."""
    return spec.folder / f"{spec.name}.part.calibration.json"


def findings_folder(spec: MeshSpec) -> Path:
    """Where packets and waves of scenes that went wrong lie; no file of the mesh either."""
    return spec.folder / f"{spec.name}.findings"


def load_custom(spec: MeshSpec) -> CustomCalibration:
    """The stored calibration of a mesh, whose sources must still be those at hand.

    Raises:
        InputError: if it is missing, cannot be read, its content is not what was stored, or is
            stale; names the files that changed.
    """
    path = calibration_file(spec)
    again = f"run 'wafertlm calibrate --rtl {spec.file}'"
    try:
        found = unsealed(path.read_text(encoding="utf-8"), CustomCalibration)
    except OSError as error:
        raise InputError(f"no calibration of '{spec.name}' ({path}); {again}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{path}: {first['loc']}: {first['msg']}; {again}") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}; {again}") from error
    now = hashes_of(spec)
    # What Verilator found by itself is known by the calibration alone.
    for name in found.sources.keys() - now.keys():
        now[name] = file_hash(spec.folder / name)
    changed = sorted(
        name for name in {**now, **found.sources} if now.get(name) != found.sources.get(name)
    )
    # A result that does not say on which model it rests is older than the one there is.
    if "model" not in found.model_fields_set or found.model != model_hash():
        changed.append("the model")
    if changed:
        raise InputError(
            f"calibration of '{spec.name}' is stale: {', '.join(changed)} changed since it was "
            f"measured; {again}"
        )
    return found


def hashes_of(spec: MeshSpec) -> dict[str, str]:
    """Hash of every file of the user's on which a calibration rests."""
    included = included_files(spec.include_folders())
    return source_hashes([spec.file, *spec.source_files(), *included], spec.folder)
