"""Multicasts that are under way together at level `lt`: against `at`, and what holds of any."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tlm.engines.test_levels_agree import ALONG, assert_equal, jitter, multicasts, timings
from tests.tlm.programs import TIMING, program_of, run_mesh
from tlm.engines.lt import run, run_lt
from tlm.engines.lt.memory import needed_bytes
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Multicast, Operation, Program, Send, Work

sizes = st.integers(2, 8)


@st.composite
def together(draw: st.DrawFn, apart: int) -> Program:
    """Multicasts of any lines, one right behind the other in the program.

    Their roots start them ``apart`` cycles from each other, some earlier, some later.
    """
    rows, cols = draw(sizes), draw(sizes)
    everywhere = TileSet(range(rows), range(cols))
    waits: list[Operation] = []
    sent: list[Operation] = []
    spent = np.zeros((rows, cols), dtype=np.int64)
    for phase in range(draw(st.integers(2, 5))):
        until = apart * (phase + 1) + jitter(draw, rows, cols, 30)
        waits += [
            Work(Engine.CONTROL, everywhere, np.maximum(until - spent, 0)),
            Work(Engine.CONTROL, everywhere, 0, gives=(f"go.{phase}",)),
        ]
        spent = np.maximum(until, spent)
        multicast = draw(multicasts(rows, cols, draw(st.sampled_from(ALONG)), 1))
        if len(multicast.segment) == 1 and not multicast.returns:  # a unicast
            multicast = replace(multicast, segment=range(2))
        flits = draw(st.integers(1, 40))
        sent.append(replace(multicast, flits=flits, takes=(f"go.{phase}",), gives=("gone",)))
    tokens = {f"go.{phase}": (0, 1) for phase in range(len(sent))}
    return program_of(rows, cols, waits + sent, **tokens, gone=(0, 5), come=(0, 5))


@settings(max_examples=100)
@given(together(1000), timings())
def test_those_far_apart_are_equal_at_both_levels(program: Program, timing: NocTiming) -> None:
    assert_equal(program, timing)


def waves(rows: int, cols: int, flits: int) -> list[Operation]:
    """A multicast along all rows from the first column, and one down all columns."""
    return [
        Multicast(TileSet(range(1, rows), range(1)), "row", range(1, cols), flits, arrivals=("a",)),
        Multicast(
            TileSet(range(1), range(1, cols)), "column", range(1, rows), flits, arrivals=("b",)
        ),
    ]


@pytest.mark.parametrize("side", [3, 6])
def test_two_that_share_ports_take_turns_packet_by_packet(side: int) -> None:
    # Ports are never idle: a packet of the one goes while the next of the other comes up.
    packets = 50
    program = program_of(
        side, side, waves(side, side, packets * TIMING.fifo_depth), a=(0, 1), b=(0, 1)
    )
    outcome = run_lt(program, TIMING)
    pairs = packets * 2 * TIMING.fifo_depth
    assert pairs <= outcome.cycles <= pairs + 2 * side + TIMING.fifo_depth
    # It is the first buffers that make the roots wait, not the last ones.
    ends = outcome.engine_end_cycle[Engine.TRANSFER]
    assert (ends[1:, 0] >= pairs - 8 * side).all()
    assert run_mesh(program, TIMING).cycles == outcome.cycles


@pytest.mark.parametrize(("count", "flits"), [(7, 1), (7, 2), (10, 4), (5, 11)])
def test_short_multicasts_wait_behind_each_other_in_a_buffer(count: int, flits: int) -> None:
    # They find a port busy. Their root is free as soon as the buffers on the way have taken them.
    timing, busy = replace(TIMING, fifo_depth=16), 64
    long = Multicast(TileSet(range(3, 4), range(1, 2)), "column", range(4), busy, arrivals=("b",))
    short = Multicast(
        TileSet(range(1), range(1)), "row", range(1, 4), flits, gives=("gone",), arrivals=("a",)
    )
    tokens = {"a": (0, count), "b": (0, 1), "gone": (0, count)}
    program = program_of(4, 4, [long, *[short] * count], **tokens)
    at, lt = run_mesh(program, timing), run_lt(program, timing)
    assert (
        lt.engine_end_cycle[Engine.TRANSFER].tolist()
        == at.engine_end_cycle[Engine.TRANSFER].tolist()
    )


@pytest.mark.parametrize("side", [3, 8, 12])
def test_an_all_gather_of_rows_keeps_the_middle_links_busy(side: int) -> None:
    # Whichever way, links next to the ends carry what all the other tiles send.
    flits = 32
    gather: list[Operation] = [
        Multicast(
            TileSet(range(1), range(root, root + 1)), "row", range(side), flits, arrivals=("come",)
        )
        for root in range(side)
    ]
    program = program_of(1, side, gather, come=(0, side))
    cycles = run_lt(program, TIMING).cycles
    assert cycles >= side * flits
    assert abs(cycles - run_mesh(program, TIMING).cycles) <= 0.02 * cycles


@settings(max_examples=60)
@given(together(10))
def test_those_that_meet_are_close_at_both_levels(program: Program) -> None:
    at, lt_cycles = run_mesh(program, TIMING).cycles, run_lt(program, TIMING).cycles
    assert abs(lt_cycles - at) <= max(2 * TIMING.fifo_depth, 0.06 * at)


@settings(max_examples=30)
@given(together(20), st.integers(0, 2**31 - 1))
def test_work_between_them_is_done_in_its_turn(program: Program, seed: int) -> None:
    # Of units that multicasts under way give, those who take them hear in program order.
    random = np.random.default_rng(seed)
    operations: list[Operation] = []
    everywhere = TileSet(range(program.rows), range(program.cols))
    for operation in program.build():
        operations.append(operation)
        if random.integers(2):
            operations.append(Work(Engine.VECTOR, everywhere, int(random.integers(9))))
    longer = replace(program, build=lambda: operations)
    for engine in (Engine.TRANSFER, Engine.CONTROL):
        ends = [run_lt(each, TIMING).engine_end_cycle[engine] for each in (program, longer)]
        np.testing.assert_array_equal(*ends)


def test_a_network_that_does_not_fit_is_refused() -> None:
    program = program_of(8, 8, waves(8, 8, 4), a=(0, 1), b=(0, 1))
    with pytest.raises(InputError, match="^8 x 8 tiles whose multicasts meet at level lt: takes "):
        run_lt(program, TIMING, memory_bytes=needed_bytes(program))
    run_lt(program, TIMING, memory_bytes=needed_bytes(program) + 4 * 2**20)


def test_where_following_packets_would_take_minutes_ports_alone_contend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = TileSet(range(1, 4), range(1, 4))
    product = Work(Engine.MATRIX, inner, 20, takes=("a", "b"))
    program = program_of(4, 4, [*waves(4, 4, 40), product], a=(0, 1), b=(0, 1))
    # Two blocks come to nine tiles: ten packets, or one more if the last is shorter.
    monkeypatch.setattr(run, "_MOST_PACKETS", 2 * 9 * 11)
    assert run_lt(program, TIMING).cycles == run_mesh(program, TIMING).cycles
    monkeypatch.setattr(run, "_MOST_PACKETS", 2 * 9 * 11 - 1)
    assert run_lt(replace(program), TIMING).cycles > run_mesh(program, TIMING).cycles


@pytest.mark.parametrize("own", [5, 40, 300])
def test_blocks_that_roots_send_to_themselves_hold_up_what_comes(own: int) -> None:
    """Each goes as one packet, so that packets of a multicast take turns with whole blocks."""
    operations = [
        Multicast(TileSet(range(1), range(1)), "row", range(4), 30, arrivals=("come",)),
        *(
            Multicast(TileSet(range(1), range(4)), "column", range(1), flits, arrivals=("kept",))
            for flits in (own, 3 * own, own)
        ),
    ]
    program = program_of(1, 4, operations, come=(0, 1), kept=(0, 3))
    outcome, expected = run_lt(program, TIMING), run_mesh(program, TIMING)
    assert outcome.cycles == expected.cycles
    assert (outcome.last_arrival_cycle == expected.last_arrival_cycle).all()


def test_sends_of_a_row_to_itself_meet_multicasts_too() -> None:
    everywhere = TileSet(range(1), range(4))
    own = Send(everywhere, np.arange(1), np.arange(4), 140, arrivals=("kept",))
    multicast = Multicast(TileSet(range(1), range(1)), "row", range(4), 70, arrivals=("come",))
    program = program_of(1, 4, [own, multicast, own], come=(0, 1), kept=(0, 2))
    outcome, expected = run_lt(program, TIMING), run_mesh(program, TIMING)
    assert (outcome.last_arrival_cycle == expected.last_arrival_cycle).all()
    assert outcome.cycles == expected.cycles


@pytest.mark.parametrize("shape", [(4, 4), (2, 6), (6, 2)])
def test_so_do_sends_of_a_rectangle_to_itself(shape: tuple[int, int]) -> None:
    """A block that a tile sends itself and one that comes take the port as they ask for it."""
    rows, cols = (range(side) for side in shape)
    own = Send(
        TileSet(rows, cols), np.array(rows), np.array(cols), 44, slots=("free",), arrivals=("kept",)
    )
    half = len(cols) // 2
    others = [
        Multicast(
            TileSet(rows, range(first, first + 1)), "row", range(first, first + half), 88,
            arrivals=("come",),
        )
        for first in (0, half)
    ]  # fmt: skip
    product = Work(Engine.MATRIX, TileSet(rows, cols), 50, ("come", "kept"), ("free",))
    operations = [own, *others, *[own, product, *others] * 2, product]
    program = program_of(*shape, operations, come=(0, 2), kept=(0, 2), free=(2, 2))
    outcome, expected = run_lt(program, TIMING), run_mesh(program, TIMING)
    assert (outcome.last_arrival_cycle == expected.last_arrival_cycle).all()
    assert outcome.cycles == expected.cycles
