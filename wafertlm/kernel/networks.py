"""A kernel's program on its network at levels `lt`, `at` and, packet by packet, in Verilog."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tlm.engines.lt import run_lt
from tlm.engines.outcome import Outcome
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.lines import MeshPort
from tlm.on_routers import run_on_routers
from tlm.program import Program
from tlm.program.steps import ProgramDeadlockError
from wafertlm.asked.kernel import RTL
from wafertlm.kernel.memory import NO_MEMORY, KernelMemory, memory_at
from wafertlm.kernel.setup import PLAIN, Execution, Setup
from wafertlm.output import CheckFailedError


class Timed(NamedTuple):
    """A program with what its work costs.

    Attributes:
        program: Spread over the table of tiles, if there is one.
        alone: Whether jobs take as long as by themselves. So they do beside routers that share no
            banks (`can_have_tiles`), on tiles that are not alike, and with products in Verilog that
            do not take the cycles of their model.
    """

    program: Program
    alone: bool


def simulate(
    setup: Setup, timed: Timed, noc: str, memory: KernelMemory, execution: Execution
) -> tuple[Outcome, dict[str, Any] | None]:
    """What came of a program; of a network in Verilog which one that was; of a model its waits.

    Args:
        setup: Whose network.
        timed: What runs.
        noc: Level of the network.
        memory: The off-chip memory.
        execution: How.

    Raises:
        InputError: if the network cannot carry it.
        CheckFailedError: if it hangs, or its Verilog is at fault.
    """
    program, recorder = timed.program, execution.recorder
    if noc == "lt":
        outcome = run_lt(
            program,
            setup.cut_timing,
            threads=1 if execution.threads is None else execution.threads,
            recorder=recorder,
            progress=execution.progress,
            queues=setup.queues,
            offchip=memory.edge,
        )
        return outcome, None
    tile = None if timed.alone else setup.tile
    if noc == RTL:
        from wafertlm.kernel.cosim import run_at_rtl  # slow to import: only for Verilog

        with _told_hangs():
            return run_at_rtl(setup, program, tile, memory, execution)
    with _told_hangs():
        outcome, mesh = run_on_routers(
            program,
            setup.router,
            tile=tile,
            recorder=recorder,
            queues=setup.queues,
            offchip=memory.channels,
        )
    return outcome, waits(mesh) if tile is None else None


@contextmanager
def _told_hangs() -> Iterator[None]:
    """Fail the check where packets wait for each other for ever, or operations of a program do."""
    try:
        yield
    except (DeadlockError, ProgramDeadlockError) as error:
        raise CheckFailedError(f"deadlock: {error}") from error


def waits(mesh: HandshakeMesh) -> dict[str, Any]:
    """Cycles that packets stood in line for outputs: of all, and of the one with most of them."""
    waited = mesh.waited_cycles
    place = int(waited.argmax())
    most, where = int(waited.flat[place]), None
    if most:
        row, col, port = (int(each) for each in np.unravel_index(place, waited.shape))
        where = f"{row},{col} {MeshPort(port).name.lower()}"
    return {
        "waited_cycles": int(waited.sum()),
        "most_waited": where,
        "most_waited_cycles": most,
    }


def without_memory(setup: Setup, timed: Timed, threads: int | None = None) -> int:
    """Cycles of a program if off-chip memory cost nothing; a network in Verilog as its model."""
    noc = "at" if setup.levels.noc == RTL else setup.levels.noc
    execution = Execution(threads=threads)
    return simulate(setup, timed, noc, NO_MEMORY, execution)[0].cycles


def memory_cycles(setup: Setup, timed: Timed) -> int:
    """Cycles by which memory makes a program longer, as models have it."""
    with memory_at(setup.place.offchip, "at", "at") as memory:
        outcome, _ = simulate(setup, timed, "at", memory, PLAIN)
    return outcome.cycles - without_memory(setup, timed)
