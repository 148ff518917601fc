"""A network in Verilog under `wafertlm kernel`, in-process: the project's own, or somebody's."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from cosim.errors import HangError, SimulationError
from cosim.network.interconnect import RtlInterconnect
from cosim.network.model import LoopModel
from cosim.network.tiled import TiledRtlInterconnect
from cosim.spec.project import MeshParameters, project_spec
from tlm.calibrated import combined_hash, source_hashes
from tlm.engines.at import run_at
from tlm.engines.outcome import Outcome
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.system import OffChipMemory
from tlm.program import Program
from tlm.tiles.timing import FREE, QueueTiming, TileTiming
from tlm.trace import Recorder
from wafertlm.kernel_networks import cut, mesh_rows
from wafertlm.kernel_routers import OwnRouters
from wafertlm.output import CheckFailedError


def run_at_rtl(
    program: Program,
    timing: NocTiming,
    own: OwnRouters | None,
    waves: Path | None,
    building: Callable[[], AbstractContextManager[None]],
    recorder: Recorder | None = None,
    queues: QueueTiming = FREE,
    offchip: OffChipMemory | None = None,
    tile: TileTiming | None = None,
) -> tuple[Outcome, dict[str, Any]]:
    """Run a program packet by packet on the Verilated mesh, and say which one that was.

    With a tile, word by word in tiles.

    Raises:
        InputError: if the mesh cannot carry it.
        CheckFailedError: if the Verilog hangs, stops, or changes data; the message says where.
    """
    rows = mesh_rows(program, offchip)
    parameters = MeshParameters(rows, program.cols, timing.fifo_depth)
    spec = own.spec if own is not None else project_spec(parameters)
    if own is not None:
        own.check(program)
    model = LoopModel(spec, rows, program.cols, waves=waves is not None)
    try:
        with building():
            model.build()
        mesh: RtlInterconnect = (
            RtlInterconnect(model, loopback=timing.loopback, waves=waves)
            if tile is None
            else TiledRtlInterconnect(
                model, tile, edge_rows=rows - program.rows, loopback=timing.loopback, waves=waves
            )
        )
        with mesh:
            outcome = run_at(program, cut(timing, own), mesh, recorder, queues, offchip)
            clocked = mesh.clocked_cycles
    except HangError as error:
        raise CheckFailedError(f"deadlock: {error}") from error
    except SimulationError as error:
        raise CheckFailedError(str(error)) from error
    files = [*([] if own is None else [spec.file]), *spec.source_files()]
    hashes = source_hashes(files, spec.folder)
    network = {"mesh": model.name, "rtl_hash": combined_hash(hashes), "clocked_cycles": clocked}
    return outcome, network
