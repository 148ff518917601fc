"""What a loosely-timed run tells is what happens packet by packet where nothing contends."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.tlm.programs import TIMING, program_of, send, tile
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Operation, Program, Reduce, Send, Work
from tlm.trace import EngineSpan, TransferSpan


class Notes:
    """A recorder that writes down all it is told of."""

    region = TileSet(range(8), range(8))

    def __init__(self) -> None:
        self.operations: set[EngineSpan] = set()
        self.transfers: set[TransferSpan] = set()

    def operation(self, span: EngineSpan) -> None:
        self.operations.add(span)

    def transfer(self, span: TransferSpan) -> None:
        self.transfers.add(span)


def pipeline() -> Program:
    operations: list[Operation] = []
    for _ in range(3):
        operations.append(send(0, 2, 8, slots=("free",), arrivals=("block",)))
        work = Work(Engine.MATRIX, tile(2), 20, takes=("block",), gives=("free",), label="C")
        operations.append(work)
    return program_of(1, 3, operations, free=(2, 2), block=(0, 2))


def multicasts() -> Program:
    """Longer than a buffer, so that the root is held; then each tile works for its own time."""
    row, cycles = TileSet(range(1), range(5)), np.array([[3, 1, 4, 1, 5]])
    return program_of(
        1,
        5,
        [
            Multicast(tile(1), "row", range(5), 11, arrivals=("x",)),
            Work(Engine.VECTOR, row, cycles, takes=("x",)),
            Multicast(tile(1), "row", range(3, 4), 6),
        ],
        x=(0, 1),
    )


def shifts() -> Program:
    tiles = TileSet(range(2), range(4))
    there, back = np.array([1, 2, 3, 0]), np.array([3, 0, 1, 2])
    stay = np.arange(2)
    return program_of(
        2,
        4,
        [
            Send(tiles, stay, there, 3, arrivals=("a",)),
            Send(tiles, stay, back, 3, takes=("a",)),
        ],
        a=(0, 1),
    )


def reductions() -> Program:
    return program_of(1, 5, [Reduce(tile(2), "row", range(5), 4, label="S")])


@pytest.mark.parametrize("program", [pipeline, multicasts, shifts, reductions])
def test_both_engines_tell_the_same(program: Callable[[], Program]) -> None:
    at, lt = Notes(), Notes()
    mesh = HandshakeMesh(program().rows, program().cols, TIMING, reductions=True)
    packets = run_at(program(), TIMING, mesh, at)
    clocks = run_lt(program(), TIMING, recorder=lt)
    assert lt.operations == at.operations
    assert lt.transfers == at.transfers
    assert (clocks.engine_end_cycle == packets.engine_end_cycle).all()


def test_only_the_region_is_told_of() -> None:
    notes = Notes()
    notes.region = TileSet(range(1), range(2, 3))
    run_lt(pipeline(), TIMING, recorder=notes)
    assert {told.tile for told in notes.operations} == {(0, 2)}
    assert len(notes.transfers) == 3
