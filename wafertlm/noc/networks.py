"""The networks that traffic runs on: the project's mesh in its forms, and a custom one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibration.routers.rtl_mesh import RtlMesh
from cosim.spec.project import mesh_timing
from tlm.calibrated import measured_rtl_hash
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, PacketKind, Packets
from tlm.interconnect.zero_load import NocTiming
from wafertlm.stopwatch import Building

if TYPE_CHECKING:  # reading specifications takes a third of a second to import
    from wafertlm.custom import CustomRouters

_LONGEST_PACKET = 2**16 - 1  # the bench counts a packet's flits in 16 bits


@dataclass(frozen=True, slots=True)
class ProjectNetwork:
    """A mesh of rtl/noc.

    Attributes:
        rows: Rows of the mesh.
        cols: Columns.
        mesh: Its parameters.
    """

    rows: int
    cols: int
    mesh: RtlMesh

    @property
    def calibration(self) -> str:
        """Name of the calibration on which the timing rests: that of rtl/."""
        return "rtl"

    @property
    def rtl_hash(self) -> str:
        """Hash of all the Verilog that was measured."""
        return measured_rtl_hash()

    @property
    def timing(self) -> NocTiming:
        """As measured, and as its parameters say."""
        return mesh_timing(self.mesh)

    def bound_flits(self, kind: PacketKind) -> int:
        """The depth of the buffers; of unicasts, and without cut-through, there is no bound."""
        bounded = self.mesh.cut_through and kind != PacketKind.UNICAST
        return self.mesh.fifo_depth if bounded else _LONGEST_PACKET

    def simulate_rtl(self, packets: Packets, building: Building) -> Deliveries:
        """Deliveries on the Verilated mesh, which is built in the context."""
        with building():
            self.mesh.build()
        return self.mesh.simulate(packets)

    def check(self, packets: Packets) -> None:
        """All kinds are known; bounds are held where packets are read and cut."""


@dataclass(frozen=True, slots=True)
class CustomNetwork:
    """A mesh of custom routers, as far as its calibration knows them.

    Attributes:
        rows: Rows of the mesh.
        cols: Columns.
        routers: Their specification and calibration.
    """

    rows: int
    cols: int
    routers: "CustomRouters"

    @property
    def calibration(self) -> str:
        """The specification's name."""
        return self.routers.spec.name

    @property
    def rtl_hash(self) -> str:
        """Hash of the specification and its sources."""
        return self.routers.rtl_hash

    @property
    def timing(self) -> NocTiming:
        """As identified."""
        return self.routers.timing

    def bound_flits(self, kind: PacketKind) -> int:
        """Longest packet of a kind; where there is no bound, what the bench can count."""
        return self.routers.bound_flits(kind) or _LONGEST_PACKET

    def simulate_rtl(self, packets: Packets, building: Building) -> Deliveries:
        """Deliveries on the Verilated mesh, which is built in the context."""
        from calibration.routers.mesh import BlackBoxMesh  # slow to import: only for a custom mesh

        mesh = BlackBoxMesh(self.routers.spec, self.rows, self.cols)
        with building():
            mesh.build()
        return mesh.simulate(packets, loopback=self.timing.loopback)

    def check(self, packets: Packets) -> None:
        """Hold that the network can carry packets, before anything is built.

        Raises:
            InputError: naming the first that it cannot.
        """
        self.routers.check_packets(packets, self.rows, self.cols, _LONGEST_PACKET)


Network = ProjectNetwork | CustomNetwork


def simulate_at(network: Network, packets: Packets) -> Deliveries:
    """Deliveries on the handshake model.

    Raises:
        DeadlockError: if packets wait for each other for ever.
    """
    reductions = bool(packets.reduces.any())
    return HandshakeMesh(
        network.rows, network.cols, network.timing, reductions=reductions
    ).simulate(packets)
