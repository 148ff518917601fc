"""A kernel's packets through Verilog in this process: the project's mesh, or a custom one."""

from typing import Any

from cosim.network.interconnect import RtlInterconnect
from cosim.network.model import LoopModel
from cosim.network.tiled import TiledRtlInterconnect
from cosim.spec.project import MeshParameters, project_spec
from tlm.calibrated import combined_hash, source_hashes
from tlm.engines.at import run_at
from tlm.engines.outcome import Outcome
from tlm.program import Program
from tlm.tiles.timing import TileTiming
from wafertlm.kernel.memory import KernelMemory
from wafertlm.kernel.setup import Execution, Setup
from wafertlm.verilog import failing_checks


def run_at_rtl(
    setup: Setup,
    program: Program,
    tile: TileTiming | None,
    memory: KernelMemory,
    execution: Execution,
) -> tuple[Outcome, dict[str, Any]]:
    """Run a program packet by packet on the Verilated mesh, and say which one that was.

    With a tile, word by word in tiles.

    Raises:
        InputError: if the mesh cannot carry it.
        CheckFailedError: if the Verilog hangs, stops, or changes data; the message says where.
    """
    timing, routers, waves = setup.timing, setup.router.timing, execution.waves
    rows, cols = program.rows + memory.edge_rows, program.cols
    files = []
    if setup.custom is None:
        spec = project_spec(MeshParameters(rows, cols, timing.fifo_depth))
    else:
        spec = setup.custom.spec
        files.append(spec.file)
    model = LoopModel(spec, rows, cols, waves=waves is not None)
    with failing_checks():
        with execution.building():
            model.build()
        mesh: RtlInterconnect = (
            RtlInterconnect(model, loopback=timing.loopback, waves=waves, timing=routers)
            if tile is None
            else TiledRtlInterconnect(
                model,
                tile,
                edge_rows=memory.edge_rows,
                loopback=timing.loopback,
                waves=waves,
                timing=routers,
            )
        )
        with mesh:
            outcome = run_at(
                program,
                setup.cut_timing,
                mesh,
                execution.recorder,
                setup.queues,
                memory.channels,
            )
            clocked = mesh.clocked_cycles
    hashes = source_hashes([*files, *spec.source_files()], spec.folder)
    network = {"mesh": model.name, "rtl_hash": combined_hash(hashes), "clocked_cycles": clocked}
    return outcome, network
