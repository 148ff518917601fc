"""The networks that `wafertlm noc` runs on: the project's own mesh in its forms, and others'."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from calibration.blackbox.campaign import OwnCalibration, load_own
from calibration.blackbox.mesh import BlackBoxMesh
from calibration.experiments.mesh_cases import mesh_timing
from calibration.harness.mesh import RtlMesh
from cosim.spec.header import check_names
from cosim.spec.mesh import MeshSpec, load_spec
from tlm.calibrated import combined_hash, measured_rtl_hash
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, PacketKind, Packets
from tlm.interconnect.zero_load import NocTiming

LONGEST_PACKET = 2**16 - 1  # the bench counts a packet's flits in 16 bits
#: Names of the bounds in a calibration.
_BOUNDS = {
    PacketKind.UNICAST: "packet_flits",
    PacketKind.MULTICAST: "multicast_flits",
    PacketKind.SUM: "reduction_flits",
    PacketKind.MAXIMUM: "reduction_flits",
}


class Network(Protocol):
    """A mesh at two levels, and what is known of it."""

    @property
    def rows(self) -> int:
        """Rows of the mesh."""

    @property
    def cols(self) -> int:
        """Columns of the mesh."""

    @property
    def timing(self) -> NocTiming:
        """What its routers are like."""

    def bound_flits(self, kind: PacketKind) -> int:
        """Longest packet of a kind."""

    @property
    def calibration(self) -> str:
        """Name of the calibration on which the timing rests."""

    @property
    def rtl_hash(self) -> str:
        """Hash of the Verilog that was calibrated."""

    def simulate_rtl(
        self, packets: Packets, building: Callable[[], AbstractContextManager[None]]
    ) -> Deliveries:
        """Deliveries on the Verilated mesh, which is built in the context."""

    def check(self, packets: Packets) -> None:
        """Hold that the network can carry packets, before anything is built.

        Raises:
            InputError: naming the first that it cannot.
        """


@dataclass(frozen=True, slots=True)
class ProjectNetwork:
    """A mesh of rtl/noc."""

    rows: int
    cols: int
    mesh: RtlMesh

    @property
    def calibration(self) -> str:
        """That of rtl/."""
        return "rtl"

    @property
    def timing(self) -> NocTiming:
        """As measured, and as its parameters say."""
        return mesh_timing(self.mesh)

    def bound_flits(self, kind: PacketKind) -> int:
        """The depth of the buffers; of unicasts, and without cut-through, there is no bound."""
        bounded = self.mesh.cut_through and kind != PacketKind.UNICAST
        return self.mesh.fifo_depth if bounded else LONGEST_PACKET

    @property
    def rtl_hash(self) -> str:
        """Hash of all the Verilog that was measured."""
        return measured_rtl_hash()

    def simulate_rtl(
        self, packets: Packets, building: Callable[[], AbstractContextManager[None]]
    ) -> Deliveries:
        """Deliveries on the Verilated mesh."""
        with building():
            self.mesh.build()
        return self.mesh.simulate(packets)

    def check(self, packets: Packets) -> None:
        """All kinds are known; bounds are held where packets are read and cut."""


@dataclass(frozen=True, slots=True)
class OwnNetwork:
    """A mesh of somebody else's routers, as far as its calibration knows them."""

    rows: int
    cols: int
    spec: MeshSpec
    found: OwnCalibration

    @property
    def timing(self) -> NocTiming:
        """As identified."""
        return self.found.timing()

    def bound_flits(self, kind: PacketKind) -> int:
        """As found, of unicasts as specified; where there is none, what the bench can count."""
        bounds = {
            PacketKind.UNICAST: self.spec.limits.packet_flits,
            PacketKind.MULTICAST: self.found.multicast_flits,
            PacketKind.SUM: self.found.reduction_flits,
            PacketKind.MAXIMUM: self.found.reduction_flits,
        }
        return bounds[kind] or LONGEST_PACKET

    @property
    def calibration(self) -> str:
        """The specification's name."""
        return self.spec.name

    @property
    def rtl_hash(self) -> str:
        """Hash of the specification and its sources."""
        return combined_hash(self.found.sources)

    def simulate_rtl(
        self, packets: Packets, building: Callable[[], AbstractContextManager[None]]
    ) -> Deliveries:
        """Deliveries on the Verilated mesh."""
        mesh = BlackBoxMesh(self.spec, self.rows, self.cols)
        with building():
            mesh.build()
        return mesh.simulate(packets, loopback=self.timing.loopback)

    def check(self, packets: Packets) -> None:
        """Hold the operations, the sets that headers can name, and the bounds that were found."""
        known, file = {name.upper() for name in self.spec.operations()}, self.spec.file.name
        for kind in (PacketKind(value) for value in np.unique(packets.kind).tolist()):
            if kind.name not in known:
                raise InputError(
                    f"{file}: features: found a packet of kind "
                    f"{kind.name.lower()}; allowed: {', '.join(sorted(known)).lower()}"
                )
            bound, name = self.bound_flits(kind), _BOUNDS[kind]
            for number in np.nonzero((packets.kind == kind) & (packets.flits > bound))[0].tolist():
                raise InputError(
                    f"{file}: {name}: packet {number}: found {kind.name.lower()} of "
                    f"{packets.flits[number]} flits; allowed: 1 to {bound}"
                )
        packets.check_on(self.rows, self.cols)
        check_names(self.spec, packets, self.cols)


def own_network(spec_file: str, rows: int, cols: int) -> OwnNetwork:
    """The network of a specification, which has been calibrated.

    Raises:
        InputError: if the specification is wrong, or its calibration missing or stale.
    """
    spec = load_spec(Path(spec_file))
    return OwnNetwork(rows, cols, spec, load_own(spec))


def simulate_at(network: Network, packets: Packets) -> Deliveries:
    """Deliveries on the handshake model.

    Raises:
        DeadlockError: if packets wait for each other for ever.
    """
    reductions = bool(packets.reduces.any())
    return HandshakeMesh(
        network.rows, network.cols, network.timing, reductions=reductions
    ).simulate(packets)
