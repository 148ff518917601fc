"""Scenes that go wrong on a mesh: kept with their packets and a wave, each to be run again."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import PositiveInt, ValidationError, model_validator

from calibration.benches.mesh_bench import Log
from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.rtl_mesh import WAVE_CYCLES, cycle_of
from calibration.routers.scenes import Scene, ScenesMixedError, Size, in_one_run
from calibration.routers.stored import Finding
from calibration.simulator import Simulation
from cosim.errors import HangError, SimulationError, UnfinishedError, WrongDataError
from cosim.spec.mesh import MeshSpec
from tlm.errors import InputError
from tlm.files import read_text, whole_file
from tlm.interconnect.handshake.records import LATEST
from tlm.interconnect.packets import PacketKind, Packets
from tlm.tables import Table

#: So many scenes of an experiment are looked into.
MOST_FINDINGS = 8
_KINDS: dict[type[Exception], str] = {
    HangError: "hang",
    WrongDataError: "wrong data",
    UnfinishedError: "timeout",
    ScenesMixedError: "timeout",
}


class StoredScene(Table):
    """Packets that go wrong on a mesh, as they lie in a file.

    Attributes:
        experiment: Whose scene it is.
        scene: The scene in words.
        what: What went wrong.
        size: Rows and columns of the mesh.
        first_cycle: When the scene begins; what is sent earlier belongs to those before it.
        within_cycles: Longer than such a scene may take; None: it may take as long as it likes.
        held: Nodes that never take a flit; the run is then judged by nobody.
        loopback: A sender among the destinations of its multicast gets a copy.
        fields: The fields of a packet (`Packets`).
        packets: Their values, a row a packet.
    """

    experiment: str
    scene: str
    what: str
    size: tuple[PositiveInt, PositiveInt]
    first_cycle: int = 0
    within_cycles: int | None = None
    held: tuple[int, ...] | None = None
    loopback: bool = True
    fields: tuple[str, ...] = Packets.__slots__
    packets: list[list[int]]

    @model_validator(mode="after")
    def _are_packets(self) -> Self:
        wrong = [row for row in self.packets if len(row) != len(Packets.__slots__)]
        if self.fields != Packets.__slots__ or not self.packets or wrong:
            raise ValueError(f"packets: allowed: rows of {', '.join(Packets.__slots__)}")
        return self

    def as_packets(self) -> Packets:
        """Its packets."""
        table = np.array(self.packets, dtype=np.int64)
        return Packets(*(np.ascontiguousarray(column) for column in table.T))

    def run(self, mesh_type: type[BlackBoxMesh], spec: MeshSpec) -> None:
        """Run the packets again.

        Raises:
            HangError: if the mesh stands still.
            SimulationError: if the model cannot be built or stops, anything comes out wrong, or it
                takes too long.
        """
        mesh, packets = mesh_type(spec, *self.size), self.as_packets()
        if self.held is not None:
            mesh.observe(packets, self.held, keep_failures=False)
            return
        deliveries = mesh.simulate(packets, loopback=self.loopback, keep_failures=False)
        took = int(deliveries.tail_ejected.max()) - self.first_cycle
        if self.within_cycles is not None and took >= self.within_cycles:
            raise UnfinishedError(
                f"{mesh.name}: delivered after {took} cycles; no mesh is taken to need more than "
                f"{self.within_cycles} for it"
            )


def load_scene(path: Path) -> StoredScene:
    """The scene of a finding.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        scene = StoredScene.model_validate_json(read_text(path, str(path)))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(
            f"{path}: {field}: found {str(first['input'])[:60]}: {first['msg']}; allowed: a scene "
            "of a finding"
        ) from error
    try:
        _hold_sound(scene)
    except OverflowError as error:
        raise InputError(f"{path}: packets: found {error}; allowed: 64 bits") from error
    except InputError as error:
        raise InputError(f"{path}: packets: {error}") from error
    return scene


def _hold_sound(scene: StoredScene) -> None:
    """Hold that a scene's numbers are those of packets on its mesh.

    Raises:
        InputError: naming the field.
        OverflowError: for a number that no packet can have.
    """
    packets, nodes = scene.as_packets(), scene.size[0] * scene.size[1]
    bounds = {
        "kind": (packets.kind, max(PacketKind)),
        "joint": (packets.joint, len(packets) - 1),
        "cycle": (packets.cycle, LATEST - 1),
        "held": (np.array(scene.held or (), dtype=np.int64), nodes - 1),
    }
    for name, (values, most) in bounds.items():
        wrong = values[(values < 0) | (values > most)]
        if len(wrong):
            raise InputError(f"{name}: found {wrong[0]}; allowed: 0 to {most}")
    packets.check_on(*scene.size)


def recording(base: type[BlackBoxMesh], wave: Path, first_cycle: int) -> type[BlackBoxMesh]:
    """The harness of a mesh whose runs leave a wave, from a cycle on."""

    class RecordedMesh(base):  # type: ignore[valid-type,misc]  # a harness as it is
        def build(self, waves: bool = False) -> Simulation:
            built: Simulation = super().build(waves=True)
            return built

        def wave_from(self, packets: Packets) -> int:
            return first_cycle

        def _run(self, *arguments: Any) -> tuple[Log, Any]:
            *_, folder = arguments
            try:
                ran: tuple[Log, Any] = super()._run(*arguments)
                return ran
            finally:
                if (folder / "dump.vcd").is_file():
                    shutil.move(folder / "dump.vcd", wave)

    return RecordedMesh


def in_words(error: Exception) -> str:
    """What went wrong, in a line."""
    text = re.sub(r"; see /\S+", "", str(error).strip())  # a folder that is not kept
    if type(error) in _KINDS:
        return f"{_KINDS[type(error)]}: {text.splitlines()[0]}"
    lines = [line for line in text.splitlines() if "%Error" in line or "%Fatal" in line]
    asserted = next((line for line in lines if "Assertion failed" in line), None)
    if asserted is not None:
        return f"assertion: {asserted}"
    return f"stopped: {[*lines, *text.splitlines()][0]}"


class Findings:
    """What goes wrong in a campaign.

    Args:
        spec: The mesh.
        folder: Where packets and waves are kept.
        mesh_type: The harness.

    Attributes:
        found: Of the experiment that is being made.
        unplayed: Scenes of it that were not looked into: too many others had gone wrong.
        unkept: Scenes of it that were, and went wrong, after as many as are kept.
    """

    def __init__(self, spec: MeshSpec, folder: Path, mesh_type: type[BlackBoxMesh]) -> None:
        self._spec, self._folder, self._mesh_type = spec, folder, mesh_type
        self.begin("")

    def begin(self, experiment: str) -> None:
        """Another experiment is being made."""
        self.found: list[Finding] = []
        self._experiment, self.unplayed, self.unkept = experiment, 0, 0

    @property
    def room(self) -> bool:
        """Whether another one of this experiment would be looked into."""
        return len(self.found) < MOST_FINDINGS

    def scene(
        self, before: Sequence[Scene], scene: Scene, error: Exception, *, loopback: bool
    ) -> None:
        """Keep a scene that goes wrong alone or, if it does not, after those before it."""
        ways = []
        for scenes in ([scene], [*before, scene]):
            packets, starts = in_one_run(scenes)
            stored = self._stored(scene.label, scene.size, packets, error, loopback)
            times = {"first_cycle": int(starts[-2]), "within_cycles": scene.span_cycles}
            ways.append(stored.model_copy(update=times))
        self._keep(ways)

    def run(
        self,
        label: str,
        size: Size,
        packets: Packets,
        error: Exception,
        *,
        loopback: bool = True,
        held: tuple[int, ...] | None = None,
    ) -> None:
        """Keep a run of its own that goes wrong; ``held`` nodes never take a flit."""
        stored = self._stored(label, size, packets, error, loopback)
        self._keep([stored.model_copy(update={"held": held})], cycle_of(str(error)) - WAVE_CYCLES)

    def _stored(
        self, label: str, size: Size, packets: Packets, error: Exception, loopback: bool
    ) -> StoredScene:
        return StoredScene(
            experiment=self._experiment,
            scene=label,
            what=in_words(error),
            size=size,
            loopback=loopback,
            packets=np.stack(packets.columns(), axis=1).tolist(),
        )

    def _keep(self, ways: Sequence[StoredScene], wave_from: int = 0) -> None:
        """Keep the first of some ways to show what goes wrong that does show it, else the last."""
        stem = self._folder / f"{self._experiment}-{len(self.found)}"
        wave, stored = stem.with_suffix(".vcd"), ways[-1]
        self._folder.mkdir(parents=True, exist_ok=True)
        wave.unlink(missing_ok=True)
        for way in ways:
            shown = self._shown(way, wave, max(way.first_cycle, wave_from))
            if shown is not None:
                stored = way.model_copy(update={"what": shown})
                break
        with whole_file(stem.with_suffix(".json")) as scratch:
            scratch.write_text(stored.model_dump_json(indent=1) + "\n", encoding="utf-8")
        self.found.append(
            Finding(
                experiment=stored.experiment,
                scene=stored.scene,
                what=stored.what,
                packets=self._named(stem.with_suffix(".json")),
                wave=self._named(wave) if wave.is_file() else None,
            )
        )

    def _shown(self, stored: StoredScene, wave: Path, wave_from: int) -> str | None:
        """What goes wrong when a scene is run with a wave; None, with none, if nothing does."""
        recorded = recording(self._mesh_type, wave, wave_from)
        try:
            recorded(self._spec, *stored.size).build()
        except SimulationError:
            return None  # the model without waves was built: the scene stays a finding
        try:
            stored.run(recorded, self._spec)
        except (HangError, SimulationError) as shown:
            return in_words(shown)
        wave.unlink(missing_ok=True)
        return None

    def _named(self, path: Path) -> str:
        inside = path.is_relative_to(self._spec.folder)
        return str(path.relative_to(self._spec.folder) if inside else path)
