"""What `wafertlm kernel` runs packets on: the model of a network, or its Verilog, in-process."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from calibration.blackbox.campaign import OwnCalibration, calibration_file, load_own
from calibration.blackbox.header import FlitLayout
from calibration.blackbox.spec import MeshSpec, load_spec
from calibration.harness.mesh import HangError, RtlMesh
from calibration.harness.simulator import SimulationError
from calibration.loop.interconnect import RtlInterconnect
from calibration.loop.model import LoopModel
from calibration.loop.project import project_spec
from tlm.calibrated import combined_hash, measured_rtl_hash, source_hashes
from tlm.engines.at import run_at
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect import packets
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.system import OffChipMemory
from tlm.program import Multicast, Program, Reduce, Send, Work, root_tiles, segment_of
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.timing import FREE, QueueTiming, TileTiming
from tlm.trace import Recorder
from wafertlm.output import CheckFailedError


@dataclass(frozen=True, slots=True)
class OwnRouters:
    """A mesh of somebody else's routers, and what its calibration found."""

    spec: MeshSpec
    found: OwnCalibration

    @property
    def timing(self) -> NocTiming:
        """As identified."""
        return self.found.timing()

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

    def check(self, program: Program) -> None:
        """Hold that the mesh can carry what a program sends.

        Raises:
            InputError: naming the first transfer that it cannot.
        """
        layout = FlitLayout(self.spec, program.rows, program.cols)
        limit, name = self.spec.limits.packet_flits, self.spec.file.name
        for operation in program.within_tiles():
            if isinstance(operation, Send) and limit is not None and operation.flits > limit:
                raise InputError(
                    f"{name}: limits.packet_flits: found a transfer of {operation.flits} flits; "
                    f"allowed: {limit}"
                )
            if isinstance(operation, Send | Work):
                continue
            if isinstance(operation, Reduce):
                self._check_operation(operation)
            for root in root_tiles(operation):
                tiles = segment_of(operation, *root)
                if not layout.names(_goal(operation, root, tiles, program.cols)):
                    feature, allowed = _feature(operation, self.spec)
                    raise InputError(
                        f"{name}: features.{feature}: found a kernel with a {feature} of "
                        f"rows {tiles.rows}, columns {tiles.cols}; allowed: {allowed or 'none'}"
                    )

    def _check_operation(self, reduce: Reduce) -> None:
        known = self.spec.operations()
        if reduce.operation not in known:
            raise InputError(
                f"{self.spec.file.name}: operation: found a kernel that reduces to the "
                f"{reduce.operation}; allowed: {', '.join(known)}"
            )


def _goal(
    operation: Multicast | Reduce, root: tuple[int, int], tiles: TileSet, cols: int
) -> TileSet | packets.Reduce:
    if isinstance(operation, Multicast):
        return tiles
    maximum = operation.operation == "maximum"
    return packets.Reduce(tiles, root[0] * cols + root[1], maximum)


def _feature(operation: Multicast | Reduce, spec: MeshSpec) -> tuple[str, str | None]:
    if isinstance(operation, Multicast):
        return "multicast", spec.features.multicast
    return "reduction", spec.features.reduction


def own_routers(spec_file: str, *, allow_stale: bool) -> OwnRouters:
    """The routers of a specification, which has been calibrated.

    Raises:
        InputError: if the specification is wrong, or its calibration missing, or stale unless that
            is allowed.
    """
    spec = load_spec(Path(spec_file))
    if allow_stale and calibration_file(spec).is_file():
        try:
            text = calibration_file(spec).read_text(encoding="utf-8")
            return OwnRouters(spec, OwnCalibration.model_validate_json(text))
        except (UnicodeError, ValidationError):
            pass  # what is wrong with it says the strict reading
    return OwnRouters(spec, load_own(spec))


def run_at_model(
    program: Program,
    timing: NocTiming,
    own: OwnRouters | None,
    recorder: Recorder | None = None,
    queues: QueueTiming = FREE,
    offchip: OffChipMemory | None = None,
    tile: TileTiming | None = None,
) -> Outcome:
    """Run a program packet by packet on the handshake model; with a tile, word by word in tiles.

    Raises:
        InputError: if the mesh cannot carry it, or there is off-chip memory as well as a tile.
        CheckFailedError: if packets wait for each other for ever.
    """
    if own is not None:
        own.check(program)
    try:
        mesh = (
            HandshakeMesh(_mesh_rows(program, offchip), program.cols, timing)
            if tile is None
            else TiledMesh(program.rows, program.cols, timing, tile)
        )
        return run_at(program, _cut(timing, own), mesh, recorder, queues, offchip)
    except DeadlockError as error:
        raise CheckFailedError(f"deadlock: {error}") from error


def run_at_rtl(
    program: Program,
    timing: NocTiming,
    own: OwnRouters | None,
    waves: Path | None,
    building: Callable[[], AbstractContextManager[None]],
    recorder: Recorder | None = None,
    queues: QueueTiming = FREE,
    offchip: OffChipMemory | None = None,
) -> tuple[Outcome, dict[str, Any]]:
    """Run a program packet by packet on the Verilated mesh, and say which one that was.

    Raises:
        InputError: if the mesh cannot carry it.
        CheckFailedError: if the Verilog hangs, stops, or changes data; the message says where.
    """
    rows = _mesh_rows(program, offchip)
    mesh_rtl = RtlMesh(rows, program.cols, timing.fifo_depth)
    spec = own.spec if own is not None else project_spec(mesh_rtl)
    if own is not None:
        own.check(program)
    model = LoopModel(spec, rows, program.cols, waves=waves is not None)
    try:
        with building():
            model.build()
        with RtlInterconnect(model, loopback=timing.loopback, waves=waves) as mesh:
            outcome = run_at(program, _cut(timing, own), mesh, recorder, queues, offchip)
            clocked = mesh.clocked_cycles
    except HangError as error:
        raise CheckFailedError(f"deadlock: {error}") from error
    except SimulationError as error:
        raise CheckFailedError(str(error)) from error
    files = [*([] if own is None else [spec.file]), *spec.source_files()]
    hashes = source_hashes(files, spec.folder)
    network = {"mesh": model.name, "rtl_hash": combined_hash(hashes), "clocked_cycles": clocked}
    return outcome, network


def provenance_hash(own: OwnRouters | None) -> str:
    """Hash of the Verilog on which the network's timing rests."""
    return measured_rtl_hash() if own is None else own.rtl_hash


def _mesh_rows(program: Program, offchip: OffChipMemory | None) -> int:
    """Rows of routers: channels of off-chip memory stand at one more."""
    return program.rows + (offchip is not None)


def _cut(timing: NocTiming, own: OwnRouters | None) -> NocTiming:
    """The timing whose buffer is the longest multicast or operand: the engine cuts longer ones."""
    if own is None:
        return timing
    bounds = (timing.fifo_depth, own.found.multicast_flits, own.found.reduction_flits)
    return replace(timing, fifo_depth=min(bound for bound in bounds if bound is not None))
