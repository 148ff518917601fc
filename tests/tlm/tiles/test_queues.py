"""What descriptors cost at the level `at`: timelines small enough to write down."""

from dataclasses import replace

import numpy as np

from tests.tlm.programs import TIMING
from tlm.engines.at import run_at
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Operation, Program, Send, Token, Work
from tlm.tiles.timing import FREE, QueueTiming
from tlm.trace import EngineSpan, TransferSpan

QUEUES = QueueTiming(
    launch_cycles=3, outstanding=2, starts_take_turns=True, least_work_cycles=2,
    credit_interval_cycles=1, credits_at_end=2, credit_depth=2,
)  # fmt: skip
ORIGIN = TileSet.tile(0, 0)


class Spans:
    """Starts and ends of operations by their numbers, and arrivals."""

    def __init__(self) -> None:
        self.operations: list[tuple[int, int, int]] = []
        self.arrivals: list[tuple[int, int]] = []

    def operation(self, span: EngineSpan) -> None:
        """Note it."""
        self.operations.append((span.number, span.start_cycle, span.end_cycle))

    def transfer(self, span: TransferSpan) -> None:
        """Note its end."""
        self.arrivals.append((span.number, span.arrival_cycle))


def spans(
    operations: list[Operation], names: tuple[str, ...] = (), queues: QueueTiming = QUEUES
) -> Spans:
    """What a program does on four tiles in a row."""
    program = Program(1, 4, dict.fromkeys(names, Token()), lambda: operations)
    seen = Spans()
    run_at(program, TIMING, HandshakeMesh(1, 4, TIMING), seen, queues)
    seen.operations.sort()
    return seen


def send(to: int, flits: int) -> Send:
    return Send(ORIGIN, np.array([0]), np.array([to]), flits)


def test_launches_are_hidden_behind_the_transfer_before() -> None:
    seen = spans([send(1, 10), send(1, 10)])
    # The first flits leave at 3 and 13; a tail is written a hop and a router after it has left.
    assert seen.operations == [(0, 0, 13), (1, 10, 23)]
    assert seen.arrivals == [(0, 15), (1, 25)]
    free = spans([send(1, 10), send(1, 10)], queues=FREE)
    assert free.operations == [(0, 0, 10), (1, 10, 20)]


def test_an_interface_has_two_transfers_at_a_time() -> None:
    seen = spans([send(1, 1)] * 5)
    # A flit ends four cycles after its start; the third starts when the first has ended.
    assert [start for _, start, _ in seen.operations] == [0, 1, 4, 5, 8]


def test_one_engine_of_a_tile_starts_in_a_cycle_and_they_take_turns() -> None:
    engines = (Engine.CONTROL, Engine.VECTOR, Engine.MATRIX)
    work: list[Operation] = [Work(engine, ORIGIN, 5) for engine in (*engines, *engines)]
    # First the matrix engine, then the vector engine, then control; then all are free in turn.
    assert spans(work).operations == [
        (0, 2, 7), (1, 1, 6), (2, 0, 5), (3, 7, 12), (4, 6, 11), (5, 5, 10),
    ]  # fmt: skip
    assert spans(work, queues=FREE).operations[:3] == [(0, 0, 5), (1, 0, 5), (2, 0, 5)]


def test_credits_leave_one_after_the_other() -> None:
    names = ("free.1", "free.2")
    free = Work(Engine.CONTROL, ORIGIN, 5, gives=names)
    sends = [
        Send(TileSet.tile(0, tile), np.array([0]), np.array([0]), 1, slots=(f"free.{tile}",))
        for tile in (1, 2)
    ]
    # Given at 5, a credit is there after the flit's own way; the second one leaves a cycle later.
    assert spans([free, *sends], names).operations == [(0, 0, 5), (1, 8, 12), (2, 10, 14)]
    earlier = spans([free, *sends], names, queues=FREE).operations
    assert earlier == [(0, 0, 5), (1, 8, 9), (2, 9, 10)]


def taken(names: tuple[str, ...], at: int, by: int) -> list[Operation]:
    """Sends of a flit from a tile, each for a unit of another one's."""
    source, row, col = TileSet.tile(0, by), np.array([0]), np.array([at])
    return [Send(source, row, col, 1, slots=(name,)) for name in names]


def test_credits_that_meet_wait_for_each_other() -> None:
    free = [Work(Engine.CONTROL, TileSet.tile(0, tile), 5, gives=("free",)) for tile in (0, 2)]
    # Both come to tile 1's port in one cycle, and its turn is that of tile 2. So a send to tile 0
    # starts a cycle later than undisturbed, and one behind it, too.
    for first, second, starts in ((2, 0, [8, 9]), (0, 2, [9, 10])):
        sends = [*taken(("free",), first, by=1), *taken(("free",), second, by=1)]
        found = spans([*free, *sends], ("free",)).operations
        assert [start for _, start, _ in found[2:]] == starts


def test_an_end_waits_for_the_credits_of_the_one_before() -> None:
    names = tuple(f"free.{n}" for n in range(5))
    work: list[Operation] = [Work(Engine.CONTROL, ORIGIN, 5, gives=names)]
    work += [Work(Engine.CONTROL, ORIGIN, 2), *taken(names, 0, by=1)]
    # Five leave in cycles 5 to 9.
    together = replace(QUEUES, credits_at_end=8)
    assert spans(work, names, together).operations[:2] == [(0, 0, 5), (1, 5, 10)]
    # Two of them by the work's own end, the others by two waits of two cycles behind it.
    assert spans(work, names).operations[:2] == [(0, 0, 5), (1, 9, 11)]
