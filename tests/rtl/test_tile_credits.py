"""Credits in each other's way: every start and end of a program, in Verilog and at level at."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.tiles.lowering import lower
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tlm.engines.at import run_at
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Operation, Program, Send, Token, Work
from tlm.program.operations import Tile
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import rtl_tile
from tlm.trace import EngineSpan, TransferSpan

pytestmark = pytest.mark.rtl

Spans = list[tuple[int, Tile, int, int]]
ROWS = COLS = 2
TILES = st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLS - 1))
#: A tile gives that many units, and as many sends of so many flits from another one take them.
Given = tuple[Tile, Tile, Engine, int, int, int]


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(TileModel(ROWS, COLS)) as machine:
        yield machine


class Seen:
    """Operations by number and tile, from start to end."""

    def __init__(self) -> None:
        self.spans: Spans = []

    def operation(self, span: EngineSpan) -> None:
        """Note it."""
        self.spans.append((span.number, span.tile, span.start_cycle, span.end_cycle))

    def transfer(self, span: TransferSpan) -> None:
        """Its end is noted with the operation."""


def both(
    machine: TileMachine, operations: list[Operation], names: tuple[str, ...]
) -> tuple[int, Spans, int, Spans]:
    """Cycles and operations of a program in Verilog, then at level at."""
    model, timing = machine.model, rtl_timing()
    program = Program(ROWS, COLS, dict.fromkeys(names, Token()), lambda: operations)
    lowered = lower(program, model)
    run = machine.run(lowered.images)
    first: dict[tuple[int, Tile], tuple[int, int]] = {}  # an operation's waits come behind it
    for span in run.spans:
        number = lowered.operations[span.tile, span.engine][span.number]
        key = number, divmod(span.tile, COLS)
        first.setdefault(key, (span.start_cycle, span.end_cycle + 1))
    tile, seen = rtl_tile(model.array_size, model.banks), Seen()
    mesh = TiledMesh(ROWS, COLS, timing, tile)
    at = run_at(on_tiles(program, tile), timing, mesh, seen, tile.queues)
    in_verilog = sorted((*key, *times) for key, times in first.items())
    return run.cycles, in_verilog, at.cycles, sorted(seen.spans)


def program_of(all_given: list[Given]) -> tuple[list[Operation], tuple[str, ...]]:
    works: list[Operation] = []
    sends: list[Operation] = []
    names: list[str] = []
    for number, (giver, taker, engine, cycles, units, flits) in enumerate(all_given):
        new = [f"{number}.{unit}" for unit in range(units)]
        names += new
        works.append(Work(engine, TileSet.tile(*giver), cycles, gives=tuple(new)))
        row, col = np.array([giver[0]]), np.array([giver[1]])
        sends += [Send(TileSet.tile(*taker), row, col, flits, slots=(name,)) for name in new]
    return [*works, *sends], tuple(names)


def test_credits_that_come_to_a_port_together(machine: TileMachine) -> None:
    """The one that comes second is there a cycle later, and its transfer starts a cycle later."""
    giving = [((0, 0), (1, 0), Engine.CONTROL, 5, 1, 1), ((1, 1), (1, 0), Engine.CONTROL, 5, 1, 1)]
    for order in (giving, giving[::-1]):
        cycles, in_verilog, at_cycles, at = both(machine, *program_of(order))
        assert at == in_verilog
        assert at_cycles == cycles
        starts = [start for number, _, start, _ in at if number >= len(giving)]
        assert starts == ([8, 9] if order is giving else [9, 10])


@given(
    st.lists(
        st.tuples(
            TILES, TILES, st.sampled_from([Engine.MATRIX, Engine.VECTOR, Engine.CONTROL]),
            st.integers(2, 20), st.integers(1, 10), st.integers(1, 4),
        ),
        min_size=1,
        max_size=8,
    )
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_programs_whose_credits_meet(machine: TileMachine, all_given: list[Given]) -> None:
    """Units for other tiles, and for the giver's own; more than a descriptor's credits, too."""
    cycles, in_verilog, at_cycles, at = both(machine, *program_of(all_given))
    assert at == in_verilog
    assert at_cycles == cycles
