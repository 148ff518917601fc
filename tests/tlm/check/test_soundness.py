"""Random programs at level `at`: what passes the check ends, and what cannot end is found."""

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.tlm.programs import TIMING, Along, program_of
from tlm.check import check_program
from tlm.engines.at import run_at
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Operation, Program, Reduce, Roots, Send, Work
from tlm.program.steps import ProgramDeadlockError

ROWS, COLS = 2, 4
NAMES = ("a", "b", "c")


@st.composite
def tile_sets(draw: st.DrawFn) -> TileSet:
    row, col = draw(st.integers(0, ROWS - 1)), draw(st.integers(0, COLS - 1))
    rows = range(row, draw(st.integers(row, ROWS - 1)) + 1)
    return TileSet(rows, range(col, draw(st.integers(col, COLS - 1)) + 1))


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    """Half of them take a token, most give one."""
    takes, slots, gives, arrivals = (
        tuple(draw(st.sampled_from(choices)))
        for choices in (["", "", "a", "b"], ["", "", "c"], ["", "b", "c"], ["", "a", "c"])
    )
    if gives == arrivals:
        gives = ()
    kind = draw(st.sampled_from(["work", "send", "multicast", "reduce"]))
    if kind == "work":
        cycles = draw(st.integers(0, 40))
        return Work(Engine.MATRIX, draw(tile_sets()), cycles, takes=takes, gives=gives)
    flits = draw(st.integers(1, 9))
    tokens = {"takes": takes, "slots": slots, "gives": gives, "arrivals": arrivals}
    if kind == "send":
        tiles = draw(tile_sets())
        to_rows = draw(st.permutations(range(ROWS)))[: len(tiles.rows)]
        to_cols = draw(st.permutations(range(COLS)))[: len(tiles.cols)]
        return Send(tiles, np.array(to_rows), np.array(to_cols), flits, **tokens)
    along: Along = draw(st.sampled_from(["row", "column"]))
    lines, size = (ROWS, COLS) if along == "row" else (COLS, ROWS)
    places = np.array(draw(st.lists(st.integers(0, size - 1), min_size=lines, max_size=lines)))
    first = draw(st.integers(0, size - 1))
    segment = range(first, draw(st.integers(first, size - 1)) + 1)
    roots = Roots(range(lines), places)
    if kind == "multicast":
        return Multicast(roots, along, segment, flits, **tokens)
    return Reduce(roots, along, segment, flits, **tokens)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    initial = {name: draw(st.integers(0, 3)) for name in NAMES}
    chosen = draw(st.lists(operations(), min_size=1, max_size=7))
    return program_of(ROWS, COLS, chosen, **{name: (initial[name], 9) for name in NAMES})


def ends(program: Program) -> bool:
    try:
        run_at(program, TIMING, HandshakeMesh(ROWS, COLS, TIMING, reductions=True))
    except (DeadlockError, ProgramDeadlockError):
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(programs())
def test_what_passes_ends_and_what_hangs_is_found(program: Program) -> None:
    found = check_program(program).findings
    if not found:
        event("passes")
        assert ends(program)
    elif any(each.message.endswith("that no operation gives") for each in found):
        event("lacks a unit")
        assert not ends(program)
    elif {each.rule for each in found} == {"token"}:
        event("comes later")
        assert ends(program)
    else:
        event(f"warned, {'ends' if ends(program) else 'hangs'}")
