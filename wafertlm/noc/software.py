"""Collectives in software on a mesh: tiles that send, add and send on, at each level of detail.

At all levels the same program runs (`SoftwareCollective.program`), as a kernel's does. The tiles
are the project's own, beside custom routers, too: there they are modelled.
"""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from tlm.chips.parts import own_tile
from tlm.chips.profile import Chip, load_chip
from tlm.engines.at import run_at
from tlm.errors import InputError
from tlm.interconnect.base import Interconnect
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Program, Work
from tlm.tiles.mesh import TiledMesh, can_have_tiles
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import TileTiming
from tlm.trace import TransferLog
from wafertlm.noc.networks import Network
from wafertlm.stopwatch import Building
from workloads.kernels.parts.software import BLOCK, SoftwareCollective

_SEED = 1


def software_cycles(
    collective: SoftwareCollective,
    level: str,
    network: Network,
    building: Building = nullcontext,
) -> int:
    """From the handshake of the first flit that goes in to that of the last one that comes out.

    Raises:
        InputError: for what the network or the tiles cannot carry.
        HangError, DeadlockError: if anything waits for ever.
        SimulationError: if Verilog cannot be built or stops, or its data are wrong.
    """
    tile = project_tile()
    if level == "perf":
        last = collective.last_arrival(
            addition_cycles(collective), network.timing, network.credit_timing, tile.queues
        )
        return last - 1 - tile.queues.launch_cycles
    if network.custom is not None:
        return _beside_custom_routers(collective, level, network, building)
    if level == "rtl":
        return _on_verilog(collective, network, building)
    collective = collective.cropped()
    mesh = TiledMesh(collective.rows, collective.cols, network.timing, tile)
    return _modelled(collective, network, mesh)


def addition_cycles(collective: SoftwareCollective) -> int:
    """Cycles of one addition on a tile that does nothing else; 0 where nothing is added."""
    cycles = (
        int(np.max(operation.cycles))
        for operation in _timed(collective.shortest()).operations()
        if isinstance(operation, Work) and operation.engine is Engine.VECTOR
    )
    return next(cycles, 0)


def project_tile() -> TileTiming:
    """The project's own tile.

    Raises:
        InputError: if the calibration is missing or stale.
    """
    tile = own_tile(_chip())
    assert tile is not None
    return tile


def _chip() -> Chip:
    return load_chip("rtl-2x2")  # any size has the same tiles


def _timed(collective: SoftwareCollective) -> Program:
    return on_tiles(collective.program(), project_tile())


def _modelled(collective: SoftwareCollective, network: Network, mesh: Interconnect) -> int:
    """The program's cycles on a network, modelled or in Verilog, among modelled tiles."""
    queues = project_tile().queues
    seen = TransferLog(TileSet(range(collective.rows), range(collective.cols)))
    run_at(_timed(collective), network.credit_timing, mesh, seen, queues)
    # An arrival is told a cycle after its handshake.
    return seen.arrival_cycle - 1 - (seen.start_cycle + queues.launch_cycles)


def _beside_custom_routers(
    collective: SoftwareCollective, level: str, network: Network, building: Building
) -> int:
    assert network.custom is not None
    network.custom.check_program(_timed(collective))
    rows, cols, timing = collective.rows, collective.cols, network.timing
    tile = project_tile() if can_have_tiles(timing) else None
    if level == "at":
        if tile is not None:
            return _modelled(collective, network, TiledMesh(rows, cols, timing, tile))
        mesh = HandshakeMesh(rows, cols, timing, reductions=False)
        return _modelled(collective, network, mesh)
    # Slow to import: only for Verilog.
    from cosim.network.interconnect import RtlInterconnect
    from cosim.network.model import LoopModel
    from cosim.network.tiled import TiledRtlInterconnect

    model = LoopModel(network.spec, rows, cols)
    with building():
        model.build()
    loopback = timing.loopback
    with (
        RtlInterconnect(model, loopback=loopback, timing=timing)
        if tile is None
        else TiledRtlInterconnect(model, tile, loopback=loopback, timing=timing)
    ) as verilog:
        return _modelled(collective, network, verilog)


def _on_verilog(collective: SoftwareCollective, network: Network, building: Building) -> int:
    """Routers and tiles in Verilog, on random blocks, which are held at the end."""
    # Slow to import: only for Verilog.
    from cosim.tiles.functional import held_equal
    from cosim.tiles.lowering import lower
    from cosim.tiles.machine import TileMachine
    from cosim.tiles.model import tile_model
    from tlm.program.functional import TileBlocks

    assert network.mesh is not None
    program = collective.program()
    model = replace(
        tile_model(_chip(), (network.rows, network.cols)),
        fifo_depth=network.mesh.fifo_depth,
        stages=network.mesh.stages,
    )
    try:
        lowered = lower(program, model)  # refuses what does not fit before anything is built
    except InputError as error:
        raise InputError(f"--flits: found {collective.flits}: {error}") from error
    blocks = TileBlocks(program, _SEED)
    if collective.reduces and collective.root not in list(collective.group):
        blocks[BLOCK][collective.root] = 0
    with building():
        model.build()
    with TileMachine(model) as machine:
        run = held_equal(program, lowered, blocks, machine)
    starts = [span.start_cycle for span in run.spans if span.engine is Engine.TRANSFER]
    first = min(starts) + project_tile().queues.launch_cycles
    return max(cycle for _, cycle in run.arrivals) - first
