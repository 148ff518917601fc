"""Custom routers: what their calibration found of them, and what they can carry."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from calibration.routers.stored import CustomCalibration, calibration_file, load_custom
from cosim.spec.header import FlitLayout, check_names, check_operations
from cosim.spec.mesh import MeshSpec, load_spec
from cosim.spec.sets import allowed, in_words
from tlm.calibrated import combined_hash
from tlm.chips import Chip
from tlm.chips.profile import CalibratedNoc
from tlm.errors import InputError
from tlm.interconnect import packets as network
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.lines import MeshPort
from tlm.interconnect.packets import REDUCTIONS, PacketKind, Packets, TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Multicast, Program, Reduce, Send, Transfer
from tlm.program.operations import Way
from tlm.sealed import unsealed
from wafertlm.output import log
from wafertlm.unmodelled import unmodelled

#: Names of the bounds in a calibration.
_BOUNDS = {
    PacketKind.UNICAST: "packet_flits",
    PacketKind.MULTICAST: "multicast_flits",
    **dict.fromkeys(REDUCTIONS, "reduction_flits"),
}


@dataclass(frozen=True, slots=True)
class CustomRouters:
    """Routers that a user has specified and calibrated.

    Attributes:
        spec: Their specification.
        found: What the calibration found.
    """

    spec: MeshSpec
    found: CustomCalibration

    @classmethod
    def load(cls, spec_file: str, *, allow_stale: bool = False) -> Self:
        """The routers of a specification.

        Raises:
            InputError: if the specification is wrong, or its calibration missing, or stale unless
                that is allowed.
        """
        spec = load_spec(Path(spec_file))
        if allow_stale and calibration_file(spec).is_file():
            try:
                text = calibration_file(spec).read_text(encoding="utf-8")
                return cls(spec, _told(spec, unsealed(text, CustomCalibration)))
            except ValueError:
                pass  # what is wrong with it says the strict reading
        return cls(spec, _told(spec, load_custom(spec)))

    @property
    def timing(self) -> NocTiming:
        """As identified."""
        return self.found.timing()

    def timing_on(self, chip: Chip) -> NocTiming:
        """As identified; in place of the network of somebody's chip with flits as wide as its.

        Cycles of these routers do not depend on the width of what a flit carries.
        """
        if isinstance(chip.noc, CalibratedNoc):
            return self.timing
        return replace(self.timing, flit_bytes=chip.noc.flit_bytes)

    def cut(self, timing: NocTiming) -> NocTiming:
        """A timing whose buffer is the longest multicast or operand: engines cut by it."""
        bounds = (timing.fifo_depth, self.found.multicast_flits, self.found.reduction_flits)
        return replace(timing, fifo_depth=min(bound for bound in bounds if bound is not None))

    def check_closed_form(self, found: str) -> None:
        """Hold that levels `lt` and `perf` know these routers.

        Args:
            found: What asks for these levels.

        Raises:
            InputError: if they do not.
        """
        if self.timing.channel != "none" or not self._flows:
            raise InputError(
                f"--rtl: found {found} with {self.spec.file.name}; allowed: of routers without "
                "locked channels, whose flits follow each other a cycle apart; else levels rtl, at"
            )

    @property
    def follows_closed_form(self) -> bool:
        """Whether unicasts take `NocTiming.unicast_cycles`, rows first, a flit a cycle on links."""
        return self._flows and not self.timing.y_first

    @property
    def _flows(self) -> bool:
        """Whether flits and packets follow each other on links without a pause."""
        unicast = next(
            (each.parameters for each in self.found.results if each.name == "unicast"), {}
        )
        law, timing = unicast.get("serialisation_cycles"), self.timing
        regular = law is not None and round(law.value) == timing.link_interval_cycles == 1
        return regular and timing.turnaround_cycles == 0

    @property
    def combines(self) -> bool:
        """Whether they reduce."""
        return self.spec.features.reduction is not None

    @property
    def rtl_hash(self) -> str:
        """Hash of the specification and its sources, as calibrated."""
        return combined_hash(self.found.sources)

    @property
    def worst_error_pct(self) -> float:
        """The worst error of the calibration's blind checks."""
        return max(result.max_abs_error_pct for result in self.found.results)

    @property
    def bounds_times(self) -> bool:
        """Whether that error leaves a time of which no more can be: one of less than all of it."""
        return self.worst_error_pct < 100

    def why_unknown(self, level: str) -> str:
        """Why the stored errors of a level are not of these routers; empty where they are."""
        traits = unmodelled(self.timing) if level in ("lt", "perf") else []
        if not traits:
            return ""
        return (
            f"{self.spec.file.name} has {', '.join(traits)}: level {level} does not model that and "
            "was compared on routers without; level at models it"
        )

    def bound_flits(self, kind: PacketKind) -> int | None:
        """Longest packet of a kind: as found, of unicasts as specified; None: there is no bound."""
        if kind == PacketKind.UNICAST:
            return self.spec.limits.packet_flits
        if _BOUNDS[kind] in self.found.no_limit_found:
            return None
        multicast = kind == PacketKind.MULTICAST
        return self.found.multicast_flits if multicast else self.found.reduction_flits

    def check_packets(self, packets: Packets, rows: int, cols: int, longest_flits: int) -> None:
        """Hold the operations, the bounds that were found, and the sets that headers can name.

        Args:
            packets: What is to be sent.
            rows: Rows of a mesh of these routers.
            cols: Columns.
            longest_flits: Bound of packets that have no other.

        Raises:
            InputError: naming the first packet that the mesh cannot carry.
        """
        self.spec.check_size(rows, cols)
        check_operations(self.spec, packets)
        file = self.spec.file.name
        for kind in (PacketKind(value) for value in np.unique(packets.kind).tolist()):
            bound = self.bound_flits(kind) or longest_flits
            for number in np.nonzero((packets.kind == kind) & (packets.flits > bound))[0].tolist():
                raise InputError(
                    f"{file}: {_BOUNDS[kind]}: packet {number}: found {kind.name.lower()} of "
                    f"{packets.flits[number]} flits; allowed: 1 to {bound}"
                )
        packets.check_on(rows, cols)
        check_names(self.spec, packets, cols)

    def check_program(self, program: Program, *, headers: bool = True) -> None:
        """Hold that a mesh of these routers can carry what a program sends.

        Args:
            program: The program.
            headers: Whether their headers must name its sets of tiles. Routers of a larger mesh
                have wider ones.

        Raises:
            InputError: naming the first transfer that it cannot.
        """
        layout = FlitLayout(self.spec, program.rows, program.cols) if headers else None
        mesh: HandshakeMesh | None = None
        held: set[TileSet | network.ReductionGoal] = set()
        limit, name = self.spec.limits.packet_flits, self.spec.file.name
        for operation in program.within_tiles():
            if not isinstance(operation, Transfer):
                continue
            if isinstance(operation, Send) and limit is not None and operation.flits > limit:
                raise InputError(
                    f"{name}: limits.packet_flits: found a transfer of {operation.flits} flits; "
                    f"allowed: {limit}"
                )
            if isinstance(operation, Multicast) and self.spec.features.multicast is None:
                raise InputError(f"{name}: features.multicast: found none; the kernel multicasts")
            if isinstance(operation, Reduce):
                self._check_operation(operation)
            for way in operation.ways() if isinstance(operation, Multicast | Reduce) else ():
                self._check_own_copy(operation, way)
                goal = _goal(operation, way, program.cols)
                if goal in held:
                    continue
                held.add(goal)
                if layout is None or layout.names(goal):
                    if isinstance(goal, network.ReductionGoal) and not self._combines_all:
                        mesh = mesh or self._mesh(program)
                        with _naming(name):
                            mesh.check_meeting(goal)
                    continue
                raise InputError(
                    f"{name}: found a kernel with a {in_words(goal, program.cols)}; "
                    f"{allowed(self.spec, goal)}"
                )

    @property
    def _combines_all(self) -> bool:
        """Whether a router may combine what all of its inputs bring."""
        return self.timing.operand_limit >= len(MeshPort)

    def _mesh(self, program: Program) -> HandshakeMesh:
        """A mesh that knows which operands meet: one of half a million routers takes seconds."""
        # Depths bear on nothing that is held there.
        shallow = replace(self.timing, fifo_depth=2, output_depth=0, tile_depth=None)
        return HandshakeMesh(program.rows, program.cols, shallow)

    def _check_own_copy(self, operation: Transfer, way: Way) -> None:
        """Hold that a sender gets its copy: programs wait for it, and would for ever.

        At levels `lt` and `perf` nothing would show that it never comes.
        """
        if self.timing.loopback or not isinstance(operation, Multicast) or not operation.forks:
            return
        if way.tile in way.members:
            raise InputError(
                f"{self.spec.file.name}: multicast.loopback: found 0, so that tile "
                "{},{} gets no copy of its own multicast; the kernel waits for it".format(*way.tile)
            )

    def _check_operation(self, reduce: Reduce) -> None:
        known = [each for each in self.spec.operations() if each in ("sum", "maximum")]
        if reduce.operation not in known:
            raise InputError(
                f"{self.spec.file.name}: operation: found a kernel that reduces to the "
                f"{reduce.operation}; allowed for kernels: {', '.join(known) or 'none'}"
            )
        if self.spec.reduced_bits < self.spec.payload_bits:
            raise InputError(
                f"{self.spec.file.name}: features.reduced_bits: found {self.spec.reduced_bits}; "
                f"allowed for a kernel that reduces: {self.spec.payload_bits}, all of a payload"
            )


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Name a file in what is refused."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


def _told(spec: MeshSpec, found: CustomCalibration) -> CustomCalibration:
    """Say what a user of a calibration should know of it."""
    if found.quick:
        log(f"{spec.name}: a quick calibration, checked on the size of the fit alone")
    if count := len(found.findings):
        scenes = "1 scene" if count == 1 else f"{count} scenes"
        log(f"{spec.name}: {scenes} went wrong as it was calibrated")
    return found


def _goal(operation: Transfer, way: Way, cols: int) -> TileSet | network.ReductionGoal:
    if not isinstance(operation, Reduce):
        return way.members
    kind = PacketKind[operation.operation.upper()]
    return network.ReductionGoal(way.members, way.tile[0] * cols + way.tile[1], kind)
