"""What descriptors cost at the level `at`: timelines small enough to write down."""

import numpy as np

from tests.tlm.programs import TIMING
from tlm.engines.at import run_at
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Operation, Program, Send, Token, Work
from tlm.tiles.timing import FREE, QueueTiming
from tlm.trace import EngineSpan, TransferSpan

QUEUES = QueueTiming(
    launch_cycles=3, outstanding=2, starts_take_turns=True, credit_interval_cycles=1
)
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
