"""Parts that tiles pass on to each other: who gets which, over which links, how long it takes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.kernels.products import TIMING, computed, place
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.program.functional import TileBlocks
from workloads.kernels.parts.routes import link_flits, sends_of
from workloads.kernels.vector.exchange import (
    exchange,
    exchange_cycles,
    plan_exchange,
    plan_halves,
    plan_hand_over,
    plan_rows_to_columns,
)
from workloads.machine.moved import moved_by
from workloads.machine.order import PLACEMENTS


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_rows_become_columns(placement: str) -> None:
    """Tile i has rows i of a matrix, and in the end its columns i."""
    tiles = replace(place(2, 4), placement=placement)
    plan, order = plan_rows_to_columns((16, 24), tiles), tiles.order
    matrix = np.random.default_rng(0).integers(-(2**31), 2**31, (16, 24))
    parts = matrix.reshape(8, 2, 8, 3).swapaxes(1, 2)

    def put(memory: TileBlocks) -> None:
        for number, tile in enumerate(order):
            for turn in range(7):
                memory[f"out.{turn}"][tile] = parts[number, (number + turn + 1) % 8]

    memory = computed(exchange(plan), put)
    for number, tile in enumerate(order):
        got = {(number - turn - 1) % 8: memory[f"in.{turn}"][tile] for turn in range(7)}
        assert all((part == parts[source, number]).all() for source, part in got.items())


def test_groups_of_every_other_tile() -> None:
    """Two groups of two: tiles 0 and 2, and 1 and 3."""
    tiles = place(1, 4)
    (only,) = plan_exchange(tiles, tiles.order, (1, 1), 2, stride=2).rounds
    assert set(only.moves) == {
        ((0, 0), (0, 2)), ((0, 2), (0, 0)), ((0, 1), (0, 3)), ((0, 3), (0, 1))
    }  # fmt: skip


def test_half_the_tiles_hand_over() -> None:
    (only,) = plan_halves((8, 5), place(2, 3)).rounds
    assert only.moves == tuple(((0, col), (1, col)) for col in range(3))
    assert only.part == (3, 5)


@given(st.permutations([(row, col) for row in range(3) for col in range(4)]))
def test_sends_name_every_message_once(takers: list[tuple[int, int]]) -> None:
    tiles = [(row, col) for row in range(3) for col in range(4)]
    moves = tuple(zip(tiles, takers, strict=True))
    named = [
        ((row, col), (int(to_row), int(to_col)))
        for sources, to_rows, to_cols in sends_of(moves)
        for row, to_row in zip(sources.rows, to_rows, strict=True)
        for col, to_col in zip(sources.cols, to_cols, strict=True)
    ]
    assert Counter(named) == Counter(moves)


def test_flits_of_links() -> None:
    """A message goes along its row first; two share the last link."""
    loads = link_flits([((((0, 0), (1, 1)),), 5), ((((0, 1), (1, 1)),), 3)])
    assert loads == {((0, 0), (0, 1)): 5, ((0, 1), (1, 1)): 8}


@settings(max_examples=40)
@given(st.sampled_from([(1, 4), (2, 2), (2, 3)]), st.integers(1, 60), st.integers(1, 90))
def test_levels_agree(grid: tuple[int, int], rows: int, columns: int) -> None:
    """Of an exchange of small groups and a hand-over."""
    tiles = place(*grid)
    for plan in (plan_rows_to_columns((rows, columns), tiles), plan_halves((rows, columns), tiles)):
        program = exchange(plan)
        assert moved_by(program, TIMING.flit_bytes) == plan.moved
        at = run_at(program, TIMING, HandshakeMesh(*grid, TIMING)).cycles
        assert exchange_cycles(plan, TIMING) == pytest.approx(at, rel=0.15, abs=TIMING.fifo_depth)
        assert run_lt(program, TIMING).cycles <= at + TIMING.fifo_depth


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_messages_wait_for_links_as_at_lt(placement: str) -> None:
    tiles = replace(place(4, 6), placement=placement)
    plan = plan_rows_to_columns((200, 400), tiles)
    perf = exchange_cycles(plan, TIMING)
    assert perf == run_lt(exchange(plan), TIMING).cycles
    sent = [(each.moves, plan.flits(each.part)) for each in plan.rounds]
    assert perf > 1.1 * max(link_flits(sent).values())  # they hold links while they wait


def test_the_busiest_link_bounds_a_hand_over() -> None:
    """Three tiles of a row send over the same link."""
    tiles = place(2, 6)
    moves = tuple(((0, col), (1, col + 3)) for col in range(3))
    plan = plan_hand_over(tiles, moves, (1, 400))
    at = run_at(exchange(plan), TIMING, HandshakeMesh(2, 6, TIMING)).cycles
    perf = exchange_cycles(plan, TIMING)
    assert perf == pytest.approx(3 * 200, rel=0.02)
    assert perf == pytest.approx(at, rel=0.01)
    # Packets are not followed over slow links: the busiest one counts.
    slow = replace(TIMING, link_interval_cycles=2)
    assert exchange_cycles(plan, slow) == pytest.approx(2 * 3 * 200, rel=0.02)


def test_bad_input() -> None:
    tiles = place(2, 3)
    with pytest.raises(InputError) as error:
        plan_exchange(tiles, tiles.order, (1, 1), 4)
    assert str(error.value) == "exchange: found 6 tiles; allowed: 2 to 256 in groups of 4"
    with pytest.raises(InputError, match="found parts of 0x2; allowed: 1 or more"):
        plan_hand_over(tiles, (((0, 0), (1, 0)),), (0, 2))
    with pytest.raises(InputError, match="grid 1x1: this kernel needs two tiles or more"):
        plan_halves((4, 4), place(1, 1))
