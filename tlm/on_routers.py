"""A program at level `at` on models of a chip's routers."""

from dataclasses import replace
from functools import lru_cache

from tlm.chips.parts import PacketRouter
from tlm.engines.at import run_at
from tlm.engines.outcome import Outcome
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory
from tlm.offchip.edge import Edge
from tlm.offchip.system import OffChipMemory
from tlm.program import Program
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.timing import FREE, QueueTiming, TileTiming
from tlm.trace import Recorder


def run_on_routers(
    program: Program,
    router: PacketRouter,
    *,
    tile: TileTiming | None = None,
    recorder: Recorder | None = None,
    queues: QueueTiming = FREE,
    offchip: OffChipMemory | None = None,
) -> tuple[Outcome, HandshakeMesh]:
    """What came of a program as `run_at` runs it, and the mesh, which knows what waited where.

    With a ``tile`` work and transfers wait for each other at its banks.
    """
    rows, cols, timing = program.rows, program.cols, router.timing
    below = 0 if offchip is None else offchip.edge.edge_rows
    mesh = (
        HandshakeMesh(rows + below, cols, timing)
        if tile is None
        else TiledMesh(rows, cols, timing, tile, edge_rows=below)
    )
    return run_at(program, _cut(router), mesh, recorder, queues, offchip), mesh


@lru_cache(16)  # small programs run many times
def _cut(router: PacketRouter) -> NocTiming:
    """A router whose buffer is the longest packet of a multicast or a reduction."""
    return replace(router.timing, fifo_depth=router.packet_flits)


def formula_memory(edge: Edge | None) -> OffChipMemory | None:
    """Off-chip memory of a latency and a bandwidth, which is all that a foreign profile says."""
    if edge is None:
        return None
    return OffChipMemory(edge, lambda env: BandwidthLatencyMemory(env, edge.timing))
