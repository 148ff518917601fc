"""Relays as messages: what they compute, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tlm.programs import program_of, run_mesh
from tlm.check import check_program
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Buffer, Engine, Program, Roots, Token, Work
from tlm.program.functional import TileBlocks, run_functional
from tlm.program.operations import Relay
from tlm.program.relays import relays_as_messages

TIMING = NocTiming(1, 1, 4, 1, 8)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Two relays, one after the other, to roots anywhere on their lines."""
    rows, cols = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    by_row = draw(st.booleans())
    size, lines = (cols, rows) if by_row else (rows, cols)
    first = draw(st.integers(0, size - 1))
    segment = range(first, draw(st.integers(first + 1, size)), draw(st.integers(1, 2)))
    target = draw(st.sampled_from(["own", "sum"]))

    def relay(takes: str, arrives: str) -> Relay:
        at = st.lists(st.sampled_from(list(segment)), min_size=lines, max_size=lines)
        return Relay(
            Roots(range(lines), np.array(draw(at))),
            "row" if by_row else "column",
            segment,
            draw(st.integers(1, 12)),
            takes=(takes,),
            gives=("left",),
            arrivals=(arrives,),
            source="own",
            target=target,
        )

    everywhere = TileSet(range(rows), range(cols))
    begin = Work(Engine.CONTROL, everywhere, 1, gives=("ready", "again"))
    operations = [begin, relay("ready", "done"), relay("again", "over")]
    block = Buffer(draw(st.integers(1, 5)), draw(st.integers(1, 4)), 32)
    tokens = {name: Token(depth=2) for name in ("ready", "again", "left", "done", "over")}
    return Program(rows, cols, tokens, lambda: operations, {"own": block, "sum": block})


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(1, 5))
def test_the_roots_get_what_relays_bring_them(program: Program, part: int) -> None:
    """So also of a second relay whose parts run into those of the first one."""
    messages = relays_as_messages(program, part, 7)
    assert not any(isinstance(each, Relay) for each in messages.operations())
    wanted, found = TileBlocks(program, 3), TileBlocks(messages)
    for name in program.buffers:
        found[name][:] = wanted[name]
    run_functional(program, wanted)
    for seed in range(2):
        memory = TileBlocks(messages)
        for name in program.buffers:
            memory[name][:] = found[name]
        run_functional(messages, memory, seed)
        for name in program.buffers:
            np.testing.assert_array_equal(memory[name], wanted[name])
    assert not check_program(messages).findings


@settings(max_examples=25, deadline=None)
@given(programs(), st.integers(1, 5))
def test_levels_agree_on_parts_over_single_links(program: Program, part: int) -> None:
    messages = relays_as_messages(program, part, 7)
    lt, at = run_lt(messages, TIMING).cycles, run_mesh(messages, TIMING).cycles
    assert lt == pytest.approx(at, rel=0.1, abs=8)


def test_a_part_passes_a_stage_while_the_next_one_is_added() -> None:
    def cycles(parts: int, tiles: int) -> int:
        relay = Relay(TileSet.tile(0, 0), "row", range(tiles), 2 * parts, source="c", target="c")
        block = Buffer(1, 4 * parts, 32)
        program = Program(1, tiles, {}, lambda: [relay], {"c": block})
        return run_lt(relays_as_messages(program, 4, 9), TIMING).cycles

    assert cycles(5, 8) - cycles(4, 8) == cycles(4, 8) - cycles(3, 8) == 9
    assert cycles(5, 9) - cycles(5, 8) == cycles(5, 8) - cycles(5, 7)


def test_a_program_without_relays_stays_as_it_is() -> None:
    program = program_of(1, 2, [Work(Engine.CONTROL, TileSet.tile(0, 0), 3)])
    assert relays_as_messages(program, 1, 1) is program


@pytest.mark.parametrize(
    ("names", "part", "message"),
    [
        ({}, 1, "relay: found no block; allowed as messages: a source and a target"),
        ({"source": "a", "target": "a"}, 0, "part: found 0; allowed: 1 or more"),
        (
            {"source": "b", "target": "b"},
            1,
            "relays: found blocks of 1x4, 2x4; allowed as messages: of one shape",
        ),
    ],
)
def test_what_is_refused(names: dict[str, str], part: int, message: str) -> None:
    root = TileSet.tile(0, 0)
    first = Relay(root, "row", range(2), 2, **names)
    others = [Relay(root, "row", range(2), 2, source="a", target="a")] if names else []
    buffers = {"a": Buffer(1, 4, 32), "b": Buffer(2, 4, 32)}
    program = Program(1, 2, {}, lambda: [first, *others], buffers)
    with pytest.raises(InputError) as error:
        relays_as_messages(program, part, 1)
    assert str(error.value) == message
