"""Harnesses of the calibration whose runs can be looked at: packets, deliveries and a wave.

They build and run what the calibration does. A model with waves is one build more; it does the same
in every cycle.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from calibration.benches.mesh_bench import Log
from calibration.experiment import Experiment
from calibration.memory.channel import RtlMemory
from calibration.memory.experiments import Stream
from calibration.routers.mesh import BlackBoxMesh
from calibration.simulator import Simulation
from calibration.tiles.systolic import RtlArray, SystolicCase, SystolicExperiment
from tlm.errors import InputError
from tlm.interconnect.packets import Deliveries, Packets
from tlm.scratch import run_folder
from wafertlm.noc.networks import Network


@dataclass(slots=True)
class Watch:
    """What is wanted of a run, and what the last one left.

    Attributes:
        wave: Where its wave goes; None: none is recorded.
        own_packets: So many packets, the last of the run, are the case's; None: all.
        first_cycle: When the first of them is due; None if no packets ran.
        network: The mesh that delivered the packets, at all levels.
        packets: What was sent; None if no packets ran, or not to tiles that take all at once.
        deliveries: When they were delivered.
    """

    wave: Path | None = None
    own_packets: int | None = None
    first_cycle: int | None = None
    network: Network | None = None
    packets: Packets | None = None
    deliveries: Deliveries | None = None

    def first_packet(self, packets: Packets) -> int:
        """Number of the case's first packet."""
        return 0 if self.own_packets is None else len(packets) - self.own_packets

    def due(self, packets: Packets) -> int:
        """Note and return in which cycle the case's first packet is due."""
        self.first_cycle = int(packets.cycle[self.first_packet(packets) :].min())
        return self.first_cycle

    def keep(self, folder: Path) -> None:
        """Take the wave out of a run's folder."""
        if self.wave is not None and (folder / "dump.vcd").is_file():
            shutil.move(folder / "dump.vcd", self.wave)

    def saw(self, network: Network, packets: Packets, deliveries: Deliveries) -> None:
        """Note what was delivered."""
        self.network, self.packets, self.deliveries = network, packets, deliveries


def watched(
    experiment: Experiment[Any], cases: list[Any], watch: Watch
) -> tuple[Experiment[Any], list[Any]]:
    """An experiment on other harnesses than a mesh, and its cases, on ones that are watched.

    Raises:
        InputError: if a wave is wanted of a harness that leaves none.
    """
    if watch.wave is None:
        return experiment, cases
    if isinstance(experiment, SystolicExperiment):
        return _watched_systolic(watch), cases
    if not all(isinstance(case, Stream) for case in cases):
        raise InputError(
            "--wave: found with cases whose harness leaves no wave; allowed: with cases on a mesh, "
            "a memory channel or an array"
        )
    return experiment, [replace(c, memory=_watched_memory(c.memory, watch)) for c in cases]


def watched_mesh(network: Callable[[int, int], Network], watch: Watch) -> type[BlackBoxMesh]:
    """The harness of a mesh, watched.

    Args:
        network: The mesh of so many rows and columns at all levels.
        watch: What is wanted of a run, and what it leaves.
    """

    class WatchedMesh(BlackBoxMesh):
        def build(self, waves: bool = False) -> Simulation:
            return super().build(waves=watch.wave is not None)

        def simulate(self, packets: Packets, **how: Any) -> Deliveries:
            deliveries = super().simulate(packets, **how)
            watch.saw(network(self.rows, self.cols), packets, deliveries)
            return deliveries

        def wave_from(self, packets: Packets) -> int:
            return watch.due(packets)

        def _run(self, *arguments: Any) -> tuple[Log, Any]:
            *_, folder = arguments
            try:
                return super()._run(*arguments)
            finally:
                watch.keep(folder)

    return WatchedMesh


def _watched_memory(memory: RtlMemory, watch: Watch) -> RtlMemory:
    class WatchedMemory(RtlMemory):
        def build(self) -> Simulation:
            return _watched_simulation(super().build(), watch)

    return WatchedMemory(**_values(memory) | {"waves": True})


def _watched_systolic(watch: Watch) -> SystolicExperiment:
    class WatchedArray(RtlArray):
        def build(self) -> Simulation:
            return _watched_simulation(super().build(), watch)

    class WatchedSystolic(SystolicExperiment):
        def rtl(self, case: SystolicCase) -> RtlArray:
            return WatchedArray(case.rows, case.cols, waves=True)

    return WatchedSystolic()


def _watched_simulation(simulation: Simulation, watch: Watch) -> Simulation:
    class WatchedSimulation(Simulation):
        def run(self, module: str, plan: object, *, folder: Path | None = None, **how: Any) -> Any:
            with _folder(watch) as own:
                return super().run(module, plan, folder=own, **how)

    return WatchedSimulation(**_values(simulation))


@contextmanager
def _folder(watch: Watch) -> Iterator[Path]:
    """Where a run leaves its files; it stays if the run fails, whose message names it."""
    folder = run_folder()
    try:
        yield folder
    finally:
        watch.keep(folder)
    shutil.rmtree(folder)


def _values(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}
