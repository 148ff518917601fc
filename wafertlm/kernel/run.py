"""A kernel on a chip at any level: what the command, the demo and notebooks run."""

from typing import Any

from tlm.calibrated import stale_allowed
from tlm.engines.at.cost import Cost
from tlm.engines.outcome import Outcome
from tlm.program import Program
from tlm.program.data import Gemm
from tlm.program.operations import Work
from tlm.tiles.mesh import can_have_tiles
from tlm.tiles.programs import on_tiles
from tlm.trace import link_flits
from wafertlm.asked.kernel import RTL, KernelOptions
from wafertlm.kernel.custom import custom_name
from wafertlm.kernel.memory import KernelMemory, memory_at
from wafertlm.kernel.networks import Timed, memory_cycles, simulate, without_memory
from wafertlm.kernel.result import KernelResult
from wafertlm.kernel.setup import PLAIN, Execution, Setup, resolve
from wafertlm.kernel.units import hold_units
from workloads.kernels.tile_jobs import on_own_tiles
from workloads.machine.spent import Spent


def run_kernel(options: KernelOptions, execution: Execution = PLAIN) -> KernelResult:
    """Run a kernel.

    Args:
        options: What is run.
        execution: How; changes no figure.

    Raises:
        InputError: for options that do not fit together, a problem that does not fit the chip, or
            stale measurements, unless they are allowed; those of errors when one is asked for.
        CheckFailedError: if the network hangs, or its Verilog is at fault.
    """
    return run_setup(resolve(options), execution)


def run_setup(setup: Setup, execution: Execution = PLAIN) -> KernelResult:
    """Run what options were resolved to; else as `run_kernel`."""
    levels = setup.levels
    execution.check(levels.noc)
    with stale_allowed(setup.options.allow_stale):
        setup.check_size()
        hold_cost(setup.cost, levels.noc, execution)
        if levels.noc == "perf":
            return _closed_form(setup)
        if levels.noc != "lt" and custom_name(setup.options.kernel) is not None:
            hold_units(setup.program)
        return _whole_tiles(setup, execution) if levels.whole_tiles else _parts(setup, execution)


def hold_cost(cost: Cost, noc: str, execution: Execution) -> None:
    """Tell what the network at level `at` will cost, and hold that it is not too much.

    Raises:
        InputError: if it is.
    """
    if noc != "at":
        return
    cost.check("--level lt, or a smaller --grid or --shape")
    if execution.cost is not None:
        execution.cost(cost)


def _closed_form(setup: Setup) -> KernelResult:
    kernel, plan, edge = setup.kernel, setup.plan, setup.place.offchip
    timing = setup.cut_timing
    if setup.tile is not None:
        plan, timing = on_own_tiles(plan, setup.program, timing, setup.tile)
    cycles = without = kernel.closed_form(plan, timing)
    if edge is not None:
        without = kernel.closed_form(kernel.without_memory(plan), timing)
    memory = KernelMemory("perf", edge).figures(setup.moved)
    matrix, vector = plan.tile_matrix_cycles, plan.tile_vector_cycles
    spent = Spent.in_closed_form(cycles, matrix, vector, without)
    return KernelResult(setup=setup, ran=spent, memory=memory)


def _whole_tiles(setup: Setup, execution: Execution) -> KernelResult:
    """Network, engines and off-chip memory in one piece of Verilog."""
    from wafertlm.kernel.tiles import run_on_tiles  # slow to import: only for Verilog

    outcome, network = run_on_tiles(setup, execution)
    edge, waited = setup.place.offchip, 0
    if edge is not None and setup.tile is not None:
        waited = memory_cycles(setup, Timed(on_tiles(setup.program, setup.tile), alone=False))
    return KernelResult(
        setup=setup,
        ran=Spent.of(outcome, waited),
        network=network,
        memory=KernelMemory(RTL, edge).figures(setup.moved),
        maps=_maps(setup, outcome, setup.program, execution),
    )


def _parts(setup: Setup, execution: Execution) -> KernelResult:
    """Network, engines and off-chip memory each at its level."""
    timed, edge, levels = _timed(setup, execution), setup.place.offchip, setup.levels
    with memory_at(edge, levels.memory, levels.noc, execution.building) as memory:
        outcome, network = simulate(setup, timed, levels.noc, memory, execution)
    cycles = outcome.cycles

    def waited() -> int:
        return cycles - without_memory(setup, timed, execution.threads)

    if setup.unequal is not None:
        outcome = setup.unequal.used(outcome)
    return KernelResult(
        setup=setup,
        ran=Spent.of(outcome),
        waited=None if edge is None else waited,
        alone=timed.alone,
        network=network,
        memory=memory.figures(setup.moved),
        maps=_maps(setup, outcome, timed.program, execution),
    )


def _maps(setup: Setup, outcome: Outcome, program: Program, execution: Execution) -> dict[str, Any]:
    """Times of each tile, and the flits over its links if they are wanted."""
    maps = {
        "finish_cycle": outcome.finish_cycle,
        "matrix_busy_cycles": outcome.matrix_busy_cycles,
        "wait_cycles": outcome.wait_cycles,
    }
    if execution.links:
        flits = link_flits(program, y_first=setup.timing.y_first)
        maps |= {f"link_flits_{direction}": each for direction, each in flits.items()}
    return maps


def _timed(setup: Setup, execution: Execution) -> Timed:
    """The program with what its work costs, on the table's tiles if there is one."""
    program, tile = setup.program, setup.tile
    alone = setup.unequal is not None or not can_have_tiles(setup.timing)
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
