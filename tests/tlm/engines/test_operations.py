"""Operations of both engines, as whole timelines."""

from typing import Any

import numpy as np
import pytest

from tests.tlm.programs import (
    TIMING,
    Along,
    Run,
    both_levels,
    program_of,
    run_mesh,
    send,
    tile,
    timeline,
)
from tlm.engines.at import run_at
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Multicast, Program, Reduce, Roots, Send, Work
from tlm.tiles.timing import QueueTiming

# Operations


@both_levels
@pytest.mark.parametrize("kind", [np.int32, np.uint8, list], ids=["int32", "uint8", "list"])
def test_whole_numbers_of_any_kind_will_do(run: Run, kind: Any) -> None:
    def numbers(*values: int) -> Any:
        return list(values) if kind is list else np.array(values, dtype=kind)

    row = TileSet(range(1), range(3))
    cycles = [numbers(5, 9, 2)] if kind is list else numbers(5, 9, 2)[None]
    operations = [
        Work(Engine.VECTOR, row, cycles, gives=("block",)),
        # NumPy's whole numbers, and lists, are taken though the types do not say so.
        Send(row, numbers(0), numbers(2, 0, 1), np.int64(4), takes=("block",)),
        Work(Engine.CONTROL, row, np.int64(3)),
    ]
    wide = [
        Work(Engine.VECTOR, row, np.array([[5, 9, 2]]), gives=("block",)),
        Send(row, np.array([0]), np.array([2, 0, 1]), 4, takes=("block",)),
        Work(Engine.CONTROL, row, 3),
    ]
    outcomes = [run(program_of(1, 3, each, block=(0, 1)), TIMING) for each in (operations, wide)]
    assert outcomes[0].engine_end_cycle.tolist() == outcomes[1].engine_end_cycle.tolist()
    assert outcomes[0].last_arrival_cycle.tolist() == outcomes[1].last_arrival_cycle.tolist()


@both_levels
def test_engines_work_in_order_and_side_by_side(run: Run) -> None:
    program = program_of(
        1,
        2,
        [
            Work(Engine.MATRIX, TileSet(range(1), range(2)), np.array([[5, 7]])),
            Work(Engine.VECTOR, tile(0), 3),
            Work(Engine.MATRIX, tile(0), 0),
            Work(Engine.MATRIX, TileSet(range(1), range(2)), 2),
        ],
    )
    assert timeline(run, program) == [([5, 7], []), ([3], []), ([5], []), ([7, 9], [])]
    outcome = run(program, TIMING)
    assert outcome.matrix_busy_cycles.tolist() == [[7, 9]]
    assert outcome.finish_cycle.tolist() == [[7, 9]]
    assert outcome.last_tile == (0, 1)


@both_levels
def test_a_send_arrives_a_flit_a_cycle_behind_its_head(run: Run) -> None:
    # Start + one cycle at the port + a cycle a hop + the flits; the interface is free after them.
    program = program_of(1, 4, [send(0, 3, 5), send(0, 1, 2), send(2, 2, 6)])
    assert timeline(run, program) == [([5], [9]), ([7], [9]), ([6], [7])]


@both_levels
def test_every_tile_sends_to_its_own_destination(run: Run) -> None:
    # Two rows change places while their tiles move one to the right.
    swap = Send(TileSet(range(2), range(2)), np.array([1, 0]), np.array([1, 2]), 3)
    assert timeline(run, program_of(2, 3, [swap])) == [([3] * 4, [6] * 4)]


@both_levels
def test_two_arrivals_share_the_ejection_port(run: Run) -> None:
    program = program_of(1, 3, [send(0, 1, 5), send(2, 1, 5)])
    assert timeline(run, program) == [([5], [7]), ([5], [12])]


@both_levels
def test_a_port_takes_what_comes_first_though_the_program_names_it_last(run: Run) -> None:
    operations = [
        Work(Engine.VECTOR, tile(2), 100, gives=("ready",)),
        send(2, 1, 5, takes=("ready",)),
        send(0, 1, 5, arrivals=("early",)),
        Work(Engine.MATRIX, tile(1), 3, takes=("early",)),
    ]
    outcome = run(program_of(1, 3, operations, ready=(0, 1), early=(0, 1)), TIMING)
    assert outcome.engine_end_cycle[Engine.MATRIX, 0, 1] == 7 + 3
    assert outcome.last_arrival_cycle[0, 1] == 107


@both_levels
def test_a_source_is_held_while_its_transfer_waits_at_a_port(run: Run) -> None:
    # The port has taken the first at 62. Three buffers on the way hold four flits each, and take
    # one again a cycle after one has left: the tail goes in 3 x (4 - 1) before it comes out.
    program = program_of(1, 4, [send(0, 1, 60), send(3, 1, 32)])
    assert timeline(run, program)[1] == ([85], [94])


@both_levels
def test_ports_of_a_strided_set_are_shared_alike(run: Run) -> None:
    # From the left and from the right to the tiles 1 and 4.
    targets = np.array([1, 4])
    right = Send(TileSet(range(1), range(0, 4, 3)), np.array([0]), targets, 5)
    left = Send(TileSet(range(1), range(2, 6, 3)), np.array([0]), targets, 5)
    assert timeline(run, program_of(1, 6, [right, left])) == [([5, 5], [7, 7]), ([5, 5], [12, 12])]


@both_levels
@pytest.mark.parametrize("along", ["row", "column"])
@pytest.mark.parametrize(
    ("flits", "end", "arrivals"),
    [
        (3, 3, [4, 5, 6, 7]),
        (4, 4, [5, 6, 7, 8]),
        (6, 6, [7, 8, 9, 10]),  # 4 + 2: the rest finds room at once
        (8, 8, [9, 11, 12, 13]),  # 4 + 4: a wait, but not for the root's own copy
        (9, 9, [11, 12, 13, 14]),  # 4 + 4 + 1
        (32, 36, [39, 41, 42, 43]),  # 7 waits, of which the buffer hides 3
    ],
)
def test_a_multicast_reaches_its_root_and_the_farthest_tile(
    run: Run, along: Along, flits: int, end: int, arrivals: list[int]
) -> None:
    shape = (1, 4) if along == "row" else (4, 1)
    multicast = Multicast(tile(0), along, range(4), flits)
    assert timeline(run, program_of(*shape, [multicast])) == [([end], arrivals)]


@both_levels
def test_every_row_multicasts_at_once(run: Run) -> None:
    multicast = Multicast(TileSet(range(2), range(1, 2)), "row", range(0, 4, 2), 3)
    assert timeline(run, program_of(2, 4, [multicast])) == [([3, 3], [5, 5, 5, 5])]


@both_levels
def test_a_segment_of_one_tile_is_a_unicast(run: Run) -> None:
    multicasts = [
        Multicast(tile(0), "row", range(2, 3), 16),
        Multicast(tile(1), "row", range(1, 2), 9),
    ]
    program = program_of(1, 3, multicasts)
    assert timeline(run, program) == [([16], [19]), ([9], [10])]


def test_a_segment_of_one_tile_is_not_cut() -> None:
    # Two transfers of 8 flits to one port: one is through at 10, the other at 18.
    program = program_of(
        1,
        3,
        [
            Multicast(tile(2), "row", range(1, 2), 8, arrivals=("right",)),
            send(0, 1, 8, arrivals=("left",)),
            Work(Engine.VECTOR, tile(1), 0, takes=("left",)),
            Work(Engine.CONTROL, tile(1), 0, takes=("right",)),
        ],
        left=(0, 1),
        right=(0, 1),
    )
    ends = run_mesh(program, TIMING).engine_end_cycle[:, 0, 1]
    assert sorted(ends[[Engine.VECTOR, Engine.CONTROL]].tolist()) == [10, 18]


@both_levels
@pytest.mark.parametrize("along", ["row", "column"])
def test_roots_may_lie_at_places_of_their_own(run: Run, along: Along) -> None:
    # The diagonal to whole lines: every tile is as far from its root as from the diagonal.
    multicast = Multicast(Roots(range(3), np.arange(3)), along, range(3), 2)
    outcome = run(program_of(3, 3, [multicast]), TIMING)
    distance = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    assert outcome.last_arrival_cycle.tolist() == (3 + distance).tolist()
    assert outcome.engine_end_cycle[Engine.TRANSFER].tolist() == np.diag([2] * 3).tolist()


@both_levels
@pytest.mark.parametrize("along", ["row", "column"])
@pytest.mark.parametrize(
    ("flits", "ends", "arrival"),
    [
        # Two cycles a router and one at the port; the outermost operand has three links to go.
        (1, [1, 1, 1, 1], 9),
        (4, [4, 4, 4, 4], 12),
        # 4 + 1: the rest finds room at once. A fifth flit waits until the first has met the others,
        # two cycles later a router, and left its place.
        (5, [5, 5, 7, 9], 13),
    ],
)
def test_a_reduction_reaches_its_root(
    run: Run, along: Along, flits: int, ends: list[int], arrival: int
) -> None:
    shape = (1, 4) if along == "row" else (4, 1)
    reduce = Reduce(tile(0), along, range(4), flits)
    assert timeline(run, program_of(*shape, [reduce])) == [(ends[::-1], [arrival])]


@both_levels
def test_a_root_need_not_contribute(run: Run) -> None:
    reduce = Reduce(tile(0), "row", range(1, 4, 2), 2)
    assert timeline(run, program_of(1, 4, [reduce])) == [([2, 2], [10])]


@both_levels
def test_a_reduction_waits_for_its_last_contributor(run: Run) -> None:
    # Ready at 20 one hop away, or at 20 three hops away: the others' operands wait on the way.
    for late, arrival in ((1, 26), (3, 30)):
        program = program_of(
            1,
            4,
            [
                Work(Engine.VECTOR, TileSet(range(1), range(4)), 3, gives=("ready",)),
                Work(Engine.VECTOR, tile(late), 17, takes=("ready",), gives=("ready",)),
                Reduce(
                    tile(0),
                    "row",
                    range(4),
                    2,
                    takes=("ready",),
                    gives=("gone",),
                    arrivals=("sum",),
                ),
                Work(Engine.CONTROL, TileSet(range(1), range(4)), 0, takes=("gone",)),
                Work(Engine.MATRIX, tile(0), 5, takes=("sum",)),
            ],
            ready=(0, 1),
            gone=(0, 1),
            sum=(0, 1),
        )
        ends, arrived = timeline(run, program)[2]
        assert ends == [22 if contributor == late else 5 for contributor in range(4)]
        assert arrived == [arrival]
        assert run(program, TIMING).engine_end_cycle[Engine.MATRIX, 0, 0] == arrival + 5


@both_levels
def test_the_roots_slot_reaches_every_contributor(run: Run) -> None:
    # Free at 10: known 1, 2 and 3 hops away at 13, 14 and 15, and at the root itself at 12.
    program = program_of(
        1,
        4,
        [
            Work(Engine.MATRIX, tile(0), 10, gives=("free",)),
            Reduce(tile(0), "row", range(4), 2, slots=("free",)),
        ],
        free=(0, 1),
    )
    assert timeline(run, program)[1] == ([14, 15, 16, 17], [25])


@both_levels
def test_every_row_reduces_to_a_root_of_its_own(run: Run) -> None:
    reduce = Reduce(Roots(range(3), np.array([2, 1, 0])), "row", range(3), 1)
    outcome = run(program_of(3, 3, [reduce]), TIMING)
    assert outcome.last_arrival_cycle.tolist() == [[0, 0, 7], [0, 5, 0], [7, 0, 0]]


def test_an_interface_makes_transfers_ready_while_others_leave() -> None:
    # Three cycles before the first flit; two transfers at a time; the port passes a flit a cycle.
    program = program_of(1, 2, [send(0, 1, 5)] * 3)

    def issuing(outstanding: int) -> Run:
        def run(program: Program, timing: NocTiming) -> Outcome:
            mesh = HandshakeMesh(program.rows, program.cols, timing)
            queues = QueueTiming(launch_cycles=3, outstanding=outstanding)
            return run_at(program, timing, mesh, queues=queues)

        return run

    assert timeline(issuing(1), program) == [([8], [10]), ([16], [18]), ([24], [26])]
    assert timeline(issuing(2), program) == [([8], [10]), ([13], [15]), ([18], [20])]
    # With flits that are gone in a cycle the next one is not ready in time.
    short = program_of(1, 2, [send(0, 1, 1)] * 3)
    assert timeline(issuing(2), short) == [([4], [6]), ([5], [7]), ([8], [10])]


def test_an_interface_has_a_transfer_at_least() -> None:
    with pytest.raises(InputError) as caught:
        QueueTiming(outstanding=0)
    assert str(caught.value) == "outstanding: found 0; allowed: 1 or more"
