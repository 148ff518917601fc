"""The networks that traffic runs on: the project's mesh in its forms, and a custom one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosim.errors import HangError
from cosim.spec.header import check_operations
from cosim.spec.mesh import MeshSpec
from cosim.spec.project import MeshParameters, mesh_timing, project_spec
from tlm.calibrated import load_result, measured_rtl_hash
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, PacketKind, Packets
from tlm.interconnect.zero_load import NocTiming
from wafertlm.stopwatch import Building

if TYPE_CHECKING:  # reading calibrations takes a third of a second to import
    from wafertlm.custom import CustomRouters

_LONGEST_PACKET = 2**16 - 1
#: Experiments that check the model of the project's mesh.
_CHECKS = ("unicast", "contention", "multicast", "reduction", "traffic", "mix", "collective")


@dataclass(frozen=True, slots=True)
class Network:
    """A mesh at all levels of detail.

    Attributes:
        rows: Rows of the mesh.
        cols: Columns.
        spec: Its Verilog.
        timing: As measured, and as its parameters say; of custom routers as identified.
        bounds_flits: Longest packet of each kind.
        mesh: Parameters of a mesh of rtl/noc; None of custom routers.
        custom: Custom routers, with their calibration; None: those of rtl/noc.
    """

    rows: int
    cols: int
    spec: MeshSpec
    timing: NocTiming
    bounds_flits: Mapping[PacketKind, int]
    mesh: MeshParameters | None = None
    custom: "CustomRouters | None" = None

    @property
    def calibration(self) -> str:
        """Name of the calibration on which the timing rests: that of rtl/, or of custom routers."""
        return "rtl" if self.custom is None else self.custom.found.told_name(self.spec)

    @property
    def rtl_hash(self) -> str:
        """Hash of all the Verilog that was measured, of custom routers with the specification."""
        return measured_rtl_hash() if self.custom is None else self.custom.rtl_hash

    @property
    def worst_error_pct(self) -> float:
        """The worst error of its model at level `at` in the calibration's blind checks."""
        if self.custom is not None:
            return self.custom.worst_error_pct
        return max(load_result(name).max_abs_error_pct for name in _CHECKS)

    @property
    def credit_timing(self) -> NocTiming:
        """Of the mesh on which tiles tell each other what is free.

        That of the project's tiles has routers of one stage, whatever those of data are like.
        Beside custom routers credits take as long as one of their flits.
        """
        return self.timing if self.custom is not None else rtl_timing()

    def check(self, packets: Packets) -> None:
        """Hold that the network can carry packets, before anything is built.

        Routers of rtl/noc name all sets; bounds are held where packets are read and cut.

        Raises:
            InputError: naming the first that it cannot.
        """
        if self.custom is None:
            check_operations(self.spec, packets)
        else:
            self.custom.check_packets(packets, self.rows, self.cols, _LONGEST_PACKET)

    def simulate_rtl(self, packets: Packets, building: Building) -> Deliveries:
        """Deliveries on the Verilated mesh, which is built in the context.

        Raises:
            InputError: for packets that the mesh cannot carry.
            HangError: if the mesh stands still.
            SimulationError: if it cannot be built or stops, or its data are wrong.
        """
        # Slow to import: only for Verilog.
        from cosim.network.deliveries import StandstillError, simulate
        from cosim.network.model import LoopModel
        from cosim.network.waiting import told_waiting

        # What the model of the network refuses, the Verilog would stumble over minutes later.
        reductions = bool(packets.reduces.any())
        HandshakeMesh(self.rows, self.cols, self.timing, reductions=reductions).check(packets)
        model = LoopModel(self.spec, self.rows, self.cols)
        with building():
            model.build()
        try:
            return simulate(model, packets, loopback=self.timing.loopback)
        except StandstillError as still:
            waiting = told_waiting(self.rows, self.cols, self.timing, packets)
            shown = f"{self.rows}x{self.cols} mesh stands still since cycle {still.since_cycle}"
            told = shown if self.custom is None else still
            raise HangError(f"{told}; {waiting}") from still


def project_network(mesh: MeshParameters) -> Network:
    """A mesh of rtl/noc."""
    # Without cut-through a packet need not fit into a buffer.
    bound = mesh.fifo_depth if mesh.cut_through else _LONGEST_PACKET
    bounds = dict.fromkeys(PacketKind, bound) | {PacketKind.UNICAST: _LONGEST_PACKET}
    return Network(mesh.rows, mesh.cols, project_spec(mesh), mesh_timing(mesh), bounds, mesh)


def custom_network(rows: int, cols: int, routers: "CustomRouters") -> Network:
    """A mesh of custom routers, as far as their calibration knows them."""
    bounds = {kind: routers.bound_flits(kind) or _LONGEST_PACKET for kind in PacketKind}
    return Network(rows, cols, routers.spec, routers.timing, bounds, custom=routers)


def simulate_at(network: Network, packets: Packets) -> Deliveries:
    """Deliveries on the handshake model.

    Raises:
        DeadlockError: if packets wait for each other for ever.
    """
    reductions = bool(packets.reduces.any())
    return HandshakeMesh(
        network.rows, network.cols, network.timing, reductions=reductions
    ).simulate(packets)
