"""A kernel on a chip at any level: what the command, the demo and notebooks run."""

from tlm.calibrated import stale_allowed
from tlm.program.data import Gemm
from tlm.program.operations import Work
from tlm.tiles.programs import on_tiles
from tlm.trace import link_flits
from wafertlm.kernel.memory import KernelMemory, memory_at
from wafertlm.kernel.networks import Timed, memory_cycles, simulate, without_memory
from wafertlm.kernel.options import RTL, KernelOptions
from wafertlm.kernel.result import KernelResult, Ran
from wafertlm.kernel.setup import PLAIN, Execution, Setup, resolve


def run_kernel(options: KernelOptions, execution: Execution = PLAIN) -> KernelResult:
    """Run a kernel.

    Args:
        options: What is run.
        execution: How; changes no figure.

    Raises:
        InputError: for options that do not fit together, a problem that does not fit the chip, or
            stale measurements, unless they are allowed.
        CheckFailedError: if the network hangs, or its Verilog is at fault.
    """
    return run_setup(resolve(options), execution)


def run_setup(setup: Setup, execution: Execution = PLAIN) -> KernelResult:
    """Run what options were resolved to; else as `run_kernel`."""
    levels = setup.levels
    execution.check(levels.noc)
    setup.check_size()
    with stale_allowed(setup.options.allow_stale):
        if levels.noc == "perf":
            ran = _closed_form(setup)
        elif levels.whole_tiles:
            ran = _whole_tiles(setup, execution)
        else:
            ran = _parts(setup, execution)
        return KernelResult.of(setup, ran)


def _closed_form(setup: Setup) -> Ran:
    kernel, plan, edge = setup.kernel, setup.plan, setup.target.offchip
    cycles, matrix = kernel.closed_form(plan, setup.timing), plan.tile_matrix_cycles
    waited = 0
    if edge is not None:
        waited = cycles - kernel.closed_form(kernel.without_memory(plan), setup.timing)
    return Ran(
        cycles=cycles,
        matrix_cycles=matrix,
        # A closed form does not say when engines work: as little at the same time as can be.
        computed_cycles=min(matrix + plan.tile_vector_cycles, cycles),
        memory_cycles=waited,
        memory=KernelMemory("perf", edge).figures(setup.program),
    )


def _whole_tiles(setup: Setup, execution: Execution) -> Ran:
    """Network, engines and off-chip memory in one piece of Verilog."""
    from wafertlm.kernel.tiles import run_on_tiles  # slow to import: only for Verilog

    outcome, network = run_on_tiles(setup, execution)
    edge, waited = setup.target.offchip, 0
    if edge is not None and setup.tile is not None:
        waited = memory_cycles(setup, Timed(on_tiles(setup.program, setup.tile), alone=False))
    return Ran.of(
        outcome,
        link_flits(setup.program, y_first=setup.timing.y_first) if execution.links else {},
        memory_cycles=waited,
        network=network,
        memory=KernelMemory(RTL, edge).figures(setup.program),
    )


def _parts(setup: Setup, execution: Execution) -> Ran:
    """Network, engines and off-chip memory each at its level."""
    timed, edge, levels, waited = _timed(setup, execution), setup.target.offchip, setup.levels, 0
    with memory_at(edge, levels.memory, levels.noc, execution.building) as memory:
        outcome, network = simulate(setup, timed, levels.noc, memory, execution)
        if edge is not None:
            waited = outcome.cycles - without_memory(setup, timed, execution.threads)
    if setup.unequal is not None:
        outcome = setup.unequal.used(outcome)
    return Ran.of(
        outcome,
        link_flits(timed.program, y_first=setup.timing.y_first) if execution.links else {},
        memory_cycles=waited,
        alone=timed.alone,
        network=network,
        memory=memory.figures(setup.program),
    )


def _timed(setup: Setup, execution: Execution) -> Timed:
    """The program with what its work costs, on the table's tiles if there is one."""
    program, tile = setup.program, setup.tile
    alone = setup.custom is not None or setup.unequal is not None
    if tile is not None:
        modelled = program = on_tiles(setup.program, tile)
        if setup.levels.compute == RTL:
            from wafertlm.kernel.tiles import lone_tiles, rtl_products  # slow to import

            products = {
                operation.task: operation.cycles
                for operation in modelled.operations()
                if isinstance(operation, Work) and isinstance(operation.task, Gemm)
            }
            with lone_tiles(setup.chip, execution) as machine:
                run = rtl_products(setup.program, machine)
                measured = {product: run(product) for product in products}
            alone |= measured != products
            program = on_tiles(setup.program, tile, measured.__getitem__)
    if setup.unequal is not None:
        program = setup.unequal.program(program)
    return Timed(program, alone)
