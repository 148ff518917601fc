"""Programs on tiles in Verilog, held against the functional interpreter bit for bit."""

import numpy as np

from cosim.errors import SimulationError
from cosim.tiles.lowering import LoweredProgram, run_lowered
from cosim.tiles.machine import TileMachine, TileRun
from tlm.program import Program
from tlm.program.functional import TileBlocks, run_functional


def held_equal(
    program: Program, lowered: LoweredProgram, memory: TileBlocks, machine: TileMachine
) -> TileRun:
    """Run a program both ways on the same blocks; ``memory`` then holds the result.

    Raises:
        HangError: if it stands still.
        SimulationError: if the Verilog stops, or an element differs; names the first one.
    """
    wanted = TileBlocks(program)
    for name in program.buffers:
        wanted[name][:] = memory[name]
    run_functional(program, wanted)
    run = run_lowered(lowered, memory, machine)
    for name in program.buffers:
        places = np.argwhere(memory[name] != wanted[name])
        if len(places):
            row, col, *element = map(int, places[0])
            at = (row, col, *element)
            raise SimulationError(
                f"{machine.model.name}: tile ({row}, {col}): buffer '{name}' at {tuple(element)}: "
                f"found {memory[name][at]}; expected: {wanted[name][at]}"
            )
    return run
