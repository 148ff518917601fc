"""Relays: streams of words that the tiles of a line add up on the way."""

from collections.abc import Iterator

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
from tlm.program import Buffer, Engine, Operation, Program, Roots, Token, Work
from tlm.program.functional import TileBlocks, run_functional
from tlm.program.operations import Relay
from tlm.program.remap import on_lines
from tlm.trace.maps import link_flits

TIMING = NocTiming(
    hop_cycles=1, ejection_cycles=1, fifo_depth=4, multicast_gap_cycles=1, flit_bytes=8
)
LAST = TileSet.tile(0, 3)


def test_words_follow_each_other_through_the_stages() -> None:
    # A word needs 1 + 1 + 1 cycles to the next tile, and 2 there; the root adds the last of 5 words
    # 4 cycles after the first.
    program = program_of(1, 4, [Relay(LAST, "row", range(4), 5, stage_cycles=2)])
    for run in (run_lt, run_mesh):
        ends = run(program, TIMING).engine_end_cycle[Engine.TRANSFER, 0].tolist()
        assert ends == [5, 5 + 5, 10 + 5, 15 + 4]


def test_a_tile_that_begins_late_holds_up_those_behind_it() -> None:
    late = Work(Engine.VECTOR, TileSet.tile(0, 1), 40, gives=("ready",))
    early = Work(Engine.VECTOR, TileSet(range(1), range(0, 4)), 0, gives=("ready",))

    def operations() -> Iterator[Operation]:
        yield late
        yield Work(Engine.VECTOR, TileSet.tile(0, 1), 0, takes=("ready",))
        yield early
        yield Relay(LAST, "row", range(4), 3, takes=("ready",), stage_cycles=1)

    program = Program(1, 4, {"ready": Token()}, operations)
    for run in (run_lt, run_mesh):
        ends = run(program, TIMING).engine_end_cycle[Engine.TRANSFER, 0].tolist()
        assert ends == [3, 40 + 3, 44 + 3, 48 + 2]


def test_the_length_counts_once_however_many_tiles() -> None:
    def cycles(flits: int) -> int:
        relay = Relay(TileSet.tile(0, 15), "row", range(16), flits)
        return run_lt(program_of(1, 16, [relay]), TIMING).cycles

    assert [cycles(flits) - cycles(1) for flits in (2, 10, 100)] == [1, 9, 99]


@st.composite
def relays(draw: st.DrawFn) -> Program:
    """A relay along rows or columns to one end of a segment; its tiles begin when they like."""
    rows, cols = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    by_row = draw(st.booleans())
    size, lines = (cols, rows) if by_row else (rows, cols)
    first = draw(st.integers(0, size - 1))
    segment = range(first, draw(st.integers(first + 1, size)), draw(st.integers(1, 2)))
    ends = st.sampled_from([segment[0], segment[-1]])
    places = draw(st.lists(ends, min_size=lines, max_size=lines))
    roots = Roots(range(lines), np.array(places))
    starts = draw(st.lists(st.integers(0, 50), min_size=rows * cols, max_size=rows * cols))
    begin = Work(
        Engine.VECTOR,
        TileSet(range(rows), range(cols)),
        np.array(starts).reshape(rows, cols),
        gives=("ready",),
    )
    relay = Relay(
        roots,
        "row" if by_row else "column",
        segment,
        draw(st.integers(1, 20)),
        takes=("ready",),
        gives=("left",),
        arrivals=("done",),
        stage_cycles=draw(st.integers(1, 4)),
    )
    tokens = {"ready": Token(), "left": Token(), "done": Token()}
    return Program(rows, cols, tokens, lambda: [begin, relay])


@settings(max_examples=30, deadline=None)
@given(relays())
def test_levels_agree_where_all_come_from_one_side(program: Program) -> None:
    lt, at = run_lt(program, TIMING), run_mesh(program, TIMING)
    assert lt.engine_end_cycle.tolist() == at.engine_end_cycle.tolist()
    assert check_program(program).holds


def test_two_sides_share_the_port_of_the_root() -> None:
    relay = Relay(TileSet.tile(0, 2), "row", range(5), 8)
    program = program_of(1, 5, [relay])
    lt, at = run_lt(program, TIMING).cycles, run_mesh(program, TIMING).cycles
    assert abs(lt - at) <= 2
    assert at >= 16  # a flit a cycle comes through the port


def test_what_a_relay_computes_moves_and_depends_on() -> None:
    roots = TileSet(range(2), range(2, 3))
    relay = Relay(roots, "row", range(5), 8, source="own", target="sum")
    buffers = {"own": Buffer(1, 2, 32), "sum": Buffer(1, 2, 32)}
    program = Program(2, 5, {}, lambda: [relay], buffers)
    memory = TileBlocks(program)
    memory["own"][:] = np.arange(5)[None, :, None, None]
    run_functional(program, memory)
    assert memory["sum"][:, 2].tolist() == [[[10, 10]], [[10, 10]]]
    loads = link_flits(program)
    assert loads["east"].tolist() == [[8, 8, 0, 0, 0]] * 2
    assert loads["west"].tolist() == [[0, 0, 0, 8, 8]] * 2
    report = check_program(program)
    assert report.holds
    assert (report.latency.longest_hops, report.latency.chain_hops) == (1, 2)
    upright = Relay(TileSet(range(2, 3), range(2)), "column", range(5), 8)
    assert check_program(program_of(5, 2, [upright])).latency.chain_hops == 2


@pytest.mark.parametrize(
    ("relay", "fault"),
    [
        (
            Relay(LAST, "row", range(3), 1),
            "a root lies at 3; allowed: members of the segment",
        ),
        (
            Relay(LAST, "row", range(4), 1, stage_cycles=0),
            "stage_cycles is 0; allowed: 1 or more",
        ),
    ],
)
def test_what_is_refused(relay: Relay, fault: str) -> None:
    with pytest.raises(InputError) as error:
        run_lt(program_of(1, 4, [relay]), TIMING)
    assert str(error.value) == f"operation 0 (Relay ''): {fault}"


def test_lines_out_of_use_between_the_tiles_are_refused() -> None:
    program = on_lines(program_of(1, 4, [Relay(LAST, "row", range(4), 1)]), [0], [0, 1, 3, 4])
    with pytest.raises(InputError) as error:
        list(program.operations())
    assert str(error.value) == (
        "operation 0 (Relay ''): a relay passes lines out of use; allowed: none between its tiles"
    )
