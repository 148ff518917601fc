"""What `wafertlm kernel` runs packets on at level `at`: the handshake model, or that of tiles."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tlm.calibrated import measured_rtl_hash
from tlm.engines.at import run_at
from tlm.engines.outcome import Outcome
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.system import OffChipMemory
from tlm.program import Program
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.timing import FREE, QueueTiming, TileTiming
from tlm.trace import Recorder
from wafertlm.output import CheckFailedError

if TYPE_CHECKING:  # reading specifications and building Verilog takes a third of a second to import
    from wafertlm.kernel_routers import OwnRouters


def run_at_model(
    program: Program,
    timing: NocTiming,
    own: "OwnRouters | None",
    recorder: Recorder | None = None,
    queues: QueueTiming = FREE,
    offchip: OffChipMemory | None = None,
    tile: TileTiming | None = None,
) -> Outcome:
    """Run a program packet by packet on the handshake model; with a tile, word by word in tiles.

    Raises:
        InputError: if the mesh cannot carry it.
        CheckFailedError: if packets wait for each other for ever.
    """
    if own is not None:
        own.check(program)
    try:
        mesh = (
            HandshakeMesh(mesh_rows(program, offchip), program.cols, timing)
            if tile is None
            else TiledMesh(
                program.rows, program.cols, timing, tile, edge_rows=int(offchip is not None)
            )
        )
        return run_at(program, cut(timing, own), mesh, recorder, queues, offchip)
    except DeadlockError as error:
        raise CheckFailedError(f"deadlock: {error}") from error


def provenance_hash(own: "OwnRouters | None") -> str:
    """Hash of the Verilog on which the network's timing rests."""
    return measured_rtl_hash() if own is None else own.rtl_hash


def mesh_rows(program: Program, offchip: OffChipMemory | None) -> int:
    """Rows of routers: channels of off-chip memory stand at one more."""
    return program.rows + (offchip is not None)


def cut(timing: NocTiming, own: "OwnRouters | None") -> NocTiming:
    """The timing whose buffer is the longest multicast or operand: the engine cuts longer ones."""
    if own is None:
        return timing
    bounds = (timing.fifo_depth, own.found.multicast_flits, own.found.reduction_flits)
    return replace(timing, fifo_depth=min(bound for bound in bounds if bound is not None))
