"""Packets through the meshes of a subject, on RTL and on the model, and what goes wrong there."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from calibration.benches.mesh_bench import Log
from calibration.routers.findings import Findings
from calibration.routers.isolate import Failures, play_apart
from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.scenes import Scene, ScenesMixedError, Send, Size, model
from cosim.errors import HangError, SimulationError
from tlm.interconnect.handshake import DeadlockError
from tlm.interconnect.packets import Deliveries, Packets
from tlm.interconnect.zero_load import NocTiming


class Runs(ABC):
    """Runs of packets.

    Attributes:
        findings: Where scenes that go wrong are kept; None: they end the experiment.
    """

    def __init__(self) -> None:
        self.findings: Findings | None = None

    @property
    @abstractmethod
    def timing(self) -> NocTiming:
        """As far as it has been found out."""

    @property
    @abstractmethod
    def loopback(self) -> bool:
        """Whether a sender among the destinations of its multicast gets a copy."""

    @abstractmethod
    def mesh(self, size: Size) -> BlackBoxMesh:
        """The Verilated mesh."""

    @abstractmethod
    def note(self, line: str) -> None:
        """Note what no form of the model can be."""

    def simulate(self, size: Size, packets: Packets) -> Deliveries:
        """Deliveries on the Verilated mesh."""
        keep = self.findings is None
        return self.mesh(size).simulate(packets, loopback=self.loopback, keep_failures=keep)

    @property
    def failures(self) -> Failures:
        """What is raised of packets that go wrong, and is kept as a finding."""
        none = self.findings is None
        return () if none else (HangError, SimulationError, ScenesMixedError)

    def measure(self, scenes: list[Scene]) -> list[float]:
        """The figures of scenes on the Verilated meshes; NaN of one that goes wrong."""
        _ = self.loopback  # if this is to be tried, then not as a part of some scene
        return play_apart(scenes, self.simulate, self.failures, _OnRtl(self))

    def outcomes(
        self, runs: Sequence[tuple[Size, Packets]]
    ) -> list[Deliveries | HangError | SimulationError]:
        """Deliveries of runs of their own, or how they fail; as many at a time as there are CPUs.

        Most of a short run is its simulator's start, for which nothing else has to wait.
        """
        _ = self.loopback

        def outcome(run: tuple[Size, Packets]) -> Deliveries | HangError | SimulationError:
            try:
                return self.simulate(*run)
            except (HangError, SimulationError) as error:
                return error

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(outcome, runs))

    def delivered(
        self, labels: Sequence[str], runs: Sequence[tuple[Size, Packets]]
    ) -> list[Deliveries | None]:
        """Deliveries of runs of their own; None of one that goes wrong."""
        found: list[Deliveries | None] = []
        for label, run, outcome in zip(labels, runs, self.outcomes(runs), strict=True):
            if self.findings is not None and not self.findings.room:
                self.findings.unplayed += 1
                found.append(None)
            elif isinstance(outcome, Exception):
                if not isinstance(outcome, self.failures):
                    raise outcome
                self.failed(label, *run, outcome)
                found.append(None)
            else:
                found.append(outcome)
        return found

    def failed(self, label: str, size: Size, packets: Packets, error: Exception) -> None:
        """Keep a run that goes wrong, unless so many others have."""
        assert self.findings is not None, "without it nothing is caught"
        if self.findings.room:
            self.findings.run(label, size, packets, error, loopback=self.loopback)
        else:
            self.findings.unkept += 1

    def play_model(self, scenes: Sequence[Scene]) -> list[float]:
        """The figures of scenes on the model that was found; NaN of one that it cannot deliver."""

        def simulate(size: Size, packets: Packets) -> Deliveries:
            return model(size, self.timing, packets).simulate(packets)

        return play_apart(scenes, simulate, (DeadlockError, ScenesMixedError), _OnModel(self))

    def observe(
        self, label: str, size: Size, items: list[Send], held: tuple[int, ...] = ()
    ) -> Log | None:
        """Handshakes, judged by nobody; None if the mesh stops.

        Args:
            label: What is observed, in words.
            size: The mesh.
            items: What is sent.
            held: Nodes that never take a flit.
        """
        packets = Packets.of(items)
        try:
            return self.mesh(size).observe(packets, held, keep_failures=self.findings is None)
        except self.failures as error:
            assert self.findings is not None, "without it nothing is caught"
            self.findings.run(label, size, packets, error, held=held)
            return None


class _OnRtl:
    """Scenes that go wrong on RTL."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    @property
    def _findings(self) -> Findings:
        assert self._runs.findings is not None, "without it nothing is caught"
        return self._runs.findings

    @property
    def room(self) -> bool:
        return self._findings.room

    def failed(self, before: Sequence[Scene], scene: Scene, error: Exception) -> None:
        self._findings.scene(before, scene, error, loopback=self._runs.loopback)

    def left_out(self, count: int) -> None:
        self._findings.unplayed += count


class _OnModel:
    """Scenes that the model cannot deliver."""

    room = True

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def failed(self, before: Sequence[Scene], scene: Scene, error: Exception) -> None:
        self._runs.note(f"{scene.label}: the model does not deliver it: {error}")

    def left_out(self, count: int) -> None:
        """None is, as there is room."""
