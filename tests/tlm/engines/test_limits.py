"""What `lt` says before and while it runs: memory, progress; and what an interrupt leaves."""

import numpy as np
import pytest

from tests.tlm.programs import TIMING, program_of
from tlm.engines.lt import run_lt
from tlm.engines.lt.memory import needed_bytes
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Operation, Program, Token, Work


def everywhere(program: Program) -> TileSet:
    return TileSet(range(program.rows), range(program.cols))


def test_a_run_that_does_not_fit_is_refused_before_it_begins() -> None:
    def build() -> list[Operation]:
        raise AssertionError("read before the memory was known to be there")

    program = Program(10_000, 10_000, {"block": Token(depth=20)}, build)
    with pytest.raises(InputError) as caught:
        run_lt(program, TIMING, memory_bytes=10**10)
    assert str(caught.value) == (
        "10000 x 10000 tiles with 1 tokens at level lt: takes 28.00 GB of memory; "
        "available: 10.00 GB"
    )


def test_there_is_a_thread_at_least() -> None:
    with pytest.raises(InputError, match="^threads is 0; allowed: 1 or more$"):
        run_lt(program_of(1, 1, []), TIMING, threads=0)


def test_what_is_needed_is_what_is_allocated() -> None:
    program = program_of(300, 300, [], block=(0, 20))
    outcome = run_lt(program, TIMING, memory_bytes=needed_bytes(program))
    with pytest.raises(InputError, match="takes 0.03 GB"):
        run_lt(program, TIMING, memory_bytes=needed_bytes(program) - 1)
    assert outcome.cycles == 0


def test_progress_counts_operations() -> None:
    program = program_of(2, 3, [Work(Engine.VECTOR, TileSet(range(2), range(3)), 1)] * 5)
    told: list[tuple[int, int]] = []
    run_lt(program, TIMING, progress=lambda done, of: told.append((done, of)))
    assert told == [(done, 5) for done in (1, 2, 3, 4, 5, 5)]


def test_what_is_held_is_not_done() -> None:
    meeting: list[Operation] = [
        Multicast(TileSet.tile(0, 0), "row", range(3), 4),
        Multicast(TileSet.tile(0, 2), "row", range(3), 4),
        Work(Engine.VECTOR, TileSet.tile(0, 1), 1),
    ]
    told: list[int] = []
    run_lt(program_of(1, 3, meeting), TIMING, progress=lambda done, _: told.append(done))
    assert told == [0, 0, 0, 3]


def test_a_table_that_may_change_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlm.program.program._SHORT", 0)  # short ones are built once
    cycles = np.zeros((2, 3), dtype=np.int64)
    program = program_of(2, 3, [])

    def build() -> Operation:
        cycles[:] += 1
        return Work(Engine.MATRIX, everywhere(program), cycles)

    changing = Program(2, 3, {}, lambda: (build() for _ in range(20)))
    outcome = run_lt(changing, TIMING)
    # The first reading is for the program's form.
    assert outcome.matrix_busy_cycles.tolist() == [[sum(range(21, 41))] * 3] * 2
    assert outcome.cycles == sum(range(21, 41))
