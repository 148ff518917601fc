"""Random matrices, and kernels run on them."""

from collections.abc import Callable

import numpy as np

from tlm.compute.vector_mac import VectorMac
from tlm.compute.vector_unit import VectorUnit
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks, run_functional
from workloads.machine.place import Place

#: Routers like the project's, with 8-byte flits.
TIMING = NocTiming(1, 1, 4, 1, 8)


def place(rows: int, cols: int) -> Place:
    """A machine of int8 with 8-byte flits."""
    return Place(rows, cols, TIMING, 8, 32, VectorMac(1.0, 1.0, 0.0), VectorUnit(2, 3))


def operands(*shapes: tuple[int, int], seed: int = 0) -> list[Integers]:
    """Random int8 matrices."""
    rng = np.random.default_rng([seed, *np.ravel(shapes).tolist()])
    return [rng.integers(-128, 128, shape) for shape in shapes]


def computed(program: Program, put: Callable[[TileBlocks], None], seed: int = 0) -> TileBlocks:
    """Memory after a program ran on what was placed in it."""
    memory = TileBlocks(program, seed)
    put(memory)
    run_functional(program, memory, seed)
    return memory
