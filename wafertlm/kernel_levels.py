"""A program at the levels chosen for network, memory and products."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlm.chips import Chip
from tlm.engines.lt import Progress, run_lt
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.program import Program
from tlm.program.data import Gemm
from tlm.program.operations import Work
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import FREE, TileTiming
from tlm.trace import Recorder
from wafertlm.kernel_memory import NO_MEMORY, KernelMemory, memory_of
from wafertlm.kernel_networks import run_at_model
from wafertlm.kernel_tiles import lone_tiles, rtl_products

if TYPE_CHECKING:
    from wafertlm.kernel_routers import OwnRouters
    from wafertlm.kernel_unequal import UnequalTiles

RTL = "rtl"
LEVELS = (RTL, "at", "lt", "perf")
Building = Callable[[], AbstractContextManager[None]]
_LARGEST_AT_TILES = 64 * 64
_LARGEST_RTL_SIDE = 8


@dataclass(frozen=True, slots=True)
class Networks:
    """What packets run on: levels, somebody's own routers, how Verilog is built and all watched."""

    noc: str
    memory: str | None
    compute: str
    own: "OwnRouters | None"
    waves: Path | None
    building: Building
    recorder: Recorder | None = None
    links: bool = False
    progress: Progress | None = None
    threads: int = 1
    unequal: "UnequalTiles | None" = None
    changed_products: bool = False

    @property
    def alone(self) -> bool:
        """Whether jobs take as long as by themselves.

        So they do beside others' routers, on tiles that are not alike, and with products in Verilog
        that do not take the cycles of their model.
        """
        return self.own is not None or self.unequal is not None or self.changed_products


def timed(
    program: Program, chip: Chip, tile: TileTiming | None, networks: Networks
) -> tuple[Program, Networks]:
    """A program with what its work costs on the project's own tiles, if it runs on such.

    Also the networks, which then know whether products in Verilog take other cycles than modelled.

    Raises:
        CheckFailedError: if products in Verilog are at fault.
    """
    if tile is None:
        return program, networks
    modelled = on_tiles(program, tile)
    if networks.compute != RTL:
        return modelled, networks
    products = {
        operation.task: operation.cycles
        for operation in modelled.operations()
        if isinstance(operation, Work) and isinstance(operation.task, Gemm)
    }
    with lone_tiles(chip, networks.building) as machine:
        run = rtl_products(program, machine)
        measured = {product: run(product) for product in products}
    changed = replace(networks, changed_products=measured != products)
    return on_tiles(program, tile, measured.__getitem__), changed


def check_rtl_side(program: Program, option: str, networks: Networks) -> None:
    """Refuse a grid that is too large for Verilog, in the name of the option that asks for it.

    Args:
        program: What is to run, not yet spread over a table of tiles.
        option: ``--level``, for whole tiles in Verilog, or ``--noc``.
        networks: With a table of tiles and off-chip memory, if there are.

    Raises:
        InputError: naming the grid found, and the largest.
    """
    unequal, side = networks.unequal, _LARGEST_RTL_SIDE
    rows, cols = (program.rows, program.cols) if unequal is None else unequal.grid
    if max(rows, cols) > side:
        raise InputError(
            f"--grid: {option} rtl goes up to {side}x{side} tiles, found {rows}x{cols}"
            f"{_counted_too(networks)}"
        )
    # Whole tiles in Verilog count without the channels' row, nodes of a network with it.
    with_channels = option == "--noc" and networks.memory is not None
    if with_channels and (rows + 1) * cols > side**2:
        raise InputError(
            f"--grid: --noc rtl with --memory goes up to {side**2} nodes, a row of them below the "
            f"tiles; found {rows}x{cols} tiles, {(rows + 1) * cols} nodes"
        )


def _counted_too(networks: Networks) -> str:
    """What a grid holds that is not asked for."""
    spans = networks.unequal is not None and networks.unequal.has_gaps
    return " with lines out of use between them" if spans else ""


def simulate(
    program: Program,
    timing: NocTiming,
    networks: Networks,
    tile: TileTiming | None,
    memory: KernelMemory,
) -> tuple[Outcome, dict[str, Any] | None]:
    """What came of a program, and of a network in Verilog which one that was."""
    rows, cols = program.rows, program.cols
    queues = FREE if tile is None else tile.queues
    shared = None if networks.alone else tile
    if networks.noc == "lt":
        outcome = run_lt(
            program,
            timing,
            threads=networks.threads,
            recorder=networks.recorder,
            progress=networks.progress,
            queues=queues,
            offchip=memory.edge,
        )
        return outcome, None
    if networks.noc == RTL:
        from wafertlm.kernel_cosim import run_at_rtl  # slow to import: only for networks in Verilog

        watched = (networks.waves, networks.building, networks.recorder)
        own, channels = networks.own, memory.channels
        return run_at_rtl(program, timing, own, *watched, queues, channels, shared)
    if rows * cols > _LARGEST_AT_TILES:
        raise InputError(
            f"--grid: level at goes up to {_LARGEST_AT_TILES} tiles, found {rows * cols}"
            f"{_counted_too(networks)}"
        )
    model = (program, timing, networks.own, networks.recorder, queues, memory.channels, shared)
    return run_at_model(*model), None


def memory_cycles(
    program: Program, timing: NocTiming, networks: Networks, tile: TileTiming, edge: Edge
) -> int:
    """Cycles by which memory makes a program longer, as models have it."""
    modelled = replace(networks, noc="at", memory="at", waves=None, recorder=None)
    with memory_of(edge, "at", "at", networks.building) as memory:
        outcome, _ = simulate(program, timing, modelled, tile, memory)
    return outcome.cycles - without_memory(program, timing, modelled, tile)


def without_memory(
    program: Program, timing: NocTiming, networks: Networks, tile: TileTiming | None
) -> int:
    """Cycles of a program if off-chip memory cost nothing; a network in Verilog as its model."""
    noc = "at" if networks.noc == RTL else networks.noc
    modelled = replace(networks, noc=noc, waves=None, recorder=None, progress=None)
    return simulate(program, timing, modelled, tile, NO_MEMORY)[0].cycles
