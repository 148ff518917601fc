"""`lt` goes over the grid by blocks, in threads, and with rows for columns: no time changes."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tlm.engines.test_levels_agree import (
    ALONG,
    jitter,
    multicasts,
    pipelines,
    reductions,
    spaced,
)
from tests.tlm.programs import TIMING, program_of, run_mesh
from tlm.engines.lt import batch, run, run_lt
from tlm.engines.lt import compile as compiling
from tlm.engines.lt.contention import sends
from tlm.engines.lt.form import Scan, scan
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Multicast, Operation, Program, Reduce, Send, Work
from workloads.kernels.gemm.cannon import cannon
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.summa import summa

KERNELS = {"mesh-gemm": mesh_gemm, "cannon": cannon, "summa": summa}


def jittered(kernel: str, side: int) -> Program:
    """A kernel whose block products take from 20 to 60 cycles, with passes beside them."""
    plan = GemmPlan(side, side, (1, 1, 1), 1, 6, 6)
    program = KERNELS[kernel](plan)
    random = np.random.default_rng(side)
    cycles, passes = random.integers(20, 61, (side, side)), random.integers(10, 71, (side, side))
    everywhere = TileSet(range(side), range(side))

    def build() -> Iterator[Operation]:
        for operation in program.build():
            if isinstance(operation, Work) and operation.engine is Engine.MATRIX:
                yield replace(operation, cycles=cycles, task=None)
                yield Work(Engine.VECTOR, everywhere, passes)
            else:
                yield operation

    return replace(program, build=build)


def times(outcome: Outcome) -> list[bytes]:
    return [
        outcome.engine_end_cycle.tobytes(),
        outcome.last_arrival_cycle.tobytes(),
        outcome.matrix_busy_cycles.tobytes(),
        outcome.compute_busy_cycles.tobytes(),
    ]


def one_by_one(monkeypatch: pytest.MonkeyPatch, program: Program) -> Outcome:
    """A run that does each operation on the whole grid before the next."""
    with monkeypatch.context() as patch:
        patch.setattr(batch, "_MOST_STEPS", 1)
        patch.setattr(batch, "_BLOCK_ROWS", 10**6)
        return run_lt(program, TIMING)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 7])
def test_blocks_and_threads_change_nothing(
    monkeypatch: pytest.MonkeyPatch, kernel: str, threads: int, rows: int
) -> None:
    program = jittered(kernel, 80)
    wanted = times(one_by_one(monkeypatch, program))
    monkeypatch.setattr(batch, "_BLOCK_ROWS", rows)
    monkeypatch.setattr(batch, "_CACHE_BYTES", 40 * 4 * 20 * 80)
    assert times(run_lt(replace(program), TIMING, threads=threads)) == wanted


@pytest.mark.parametrize("threads", [1, 2])
def test_a_second_run_is_not_planned_again(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    tiles, columns = TileSet(range(8), range(8)), np.arange(8)
    wave: list[Operation] = [
        Work(Engine.MATRIX, tiles, 9, gives=("block",)),
        Send(tiles, np.roll(columns, 1), columns, 5, takes=("block",)),
    ]
    program = program_of(8, 8, wave * 4, block=(0, 1))
    first = times(run_lt(program, TIMING, threads=threads))
    monkeypatch.setattr(batch.Batch, "add", None)
    assert times(run_lt(program, TIMING, threads=threads)) == first


@st.composite
def contended(draw: st.DrawFn) -> Program:
    """Transfers of all kinds at once, which meet at interfaces and ejection ports."""
    rows, cols = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    tiles, kinds = TileSet(range(rows), range(cols)), st.sampled_from(ALONG)
    operations: list[Operation] = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            operations.append(Work(Engine.VECTOR, tiles, jitter(draw, rows, cols, 30)))
            operations.append(Work(Engine.VECTOR, tiles, 0, gives=("go",)))
            operations.append(Send(tiles, np.arange(rows), np.arange(cols), 1, takes=("go",)))
        flits = draw(st.integers(1, 30))
        kind = draw(st.sampled_from(["send", "multicast", "reduce"]))
        if kind == "send":
            to_rows, to_cols = (
                draw(st.permutations(range(rows))),
                draw(st.permutations(range(cols))),
            )
            operations.append(Send(tiles, np.array(to_rows), np.array(to_cols), flits))
        else:
            multicast = draw(multicasts(rows, cols, draw(kinds), flits))
            make = Multicast if kind == "multicast" else Reduce
            operations.append(make(multicast.roots, multicast.along, multicast.segment, flits))
    return program_of(rows, cols, operations, go=(0, 1))


def turned_and_not(program: Program, timing: NocTiming) -> list[list[bytes]]:
    outcomes = []
    for turned in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "scan", lambda p, t=turned: replace(scan(p), turned=t))
            # Another program: one that has run is not planned again.
            outcomes.append(times(run_lt(replace(program), timing)))
    return outcomes


@settings(max_examples=60)
@given(st.one_of(pipelines(), spaced(), reductions()))
def test_rows_for_columns_change_nothing(program: Program) -> None:
    outcomes = turned_and_not(program, TIMING)
    assert outcomes[0] == outcomes[1]


@settings(max_examples=100)
@given(contended(), st.sampled_from([2, 4, 9]), st.integers(1, 3))
def test_nor_do_they_where_transfers_meet(program: Program, depth: int, hop_cycles: int) -> None:
    timing = replace(TIMING, fifo_depth=depth, hop_cycles=hop_cycles)
    outcomes = turned_and_not(program, timing)
    assert outcomes[0] == outcomes[1]


def test_a_root_that_two_multicasts_reach_turned_or_not() -> None:
    operations = [
        Multicast(TileSet.tile(1, 0), "row", range(2), 6),
        Multicast(TileSet.tile(1, 1), "column", range(3), 1),
    ]
    program = program_of(3, 2, operations)
    outcomes = turned_and_not(program, TIMING)
    assert outcomes[0] == outcomes[1]
    assert run_lt(program, TIMING).last_arrival_cycle[1, 1] == 8
    assert run_mesh(program, TIMING).last_arrival_cycle[1, 1] == 8


@given(st.one_of(pipelines(), spaced(), reductions()))
def test_an_operation_turned_twice_is_itself(program: Program) -> None:
    for operation in program.operations():
        assert repr(operation.turned().turned()) == repr(operation)


@settings(max_examples=60)
@given(st.one_of(pipelines(), spaced(), reductions(), contended()))
def test_short_cuts_change_nothing(program: Program) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "any_order", lambda named: False)
        wanted = times(run_lt(replace(program), TIMING))
    for _ in range(2):  # the second time without planning it again
        assert times(run_lt(program, TIMING)) == wanted


@pytest.mark.parametrize("kernel", KERNELS)
def test_nor_do_they_in_kernels(monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    found = times(run_lt(jittered(kernel, 40), TIMING))
    monkeypatch.setattr(compiling, "any_order", lambda named: False)
    assert times(run_lt(jittered(kernel, 40), TIMING)) == found


@pytest.mark.parametrize("queues", [1, 2])
def test_nor_do_they_where_rows_take_turns(monkeypatch: pytest.MonkeyPatch, queues: int) -> None:
    # Every other row sends to the next one, whose tokens are queues of one unit or two.
    rows, cols = 8, 20
    upper, lower = (TileSet(range(first, rows, 2), range(cols)) for first in (0, 1))
    to = np.arange(1, rows, 2), np.arange(cols)
    cycles = np.random.default_rng(queues).integers(1, 60, (len(upper.rows), cols))
    names: dict[str, tuple[str, ...]] = {"takes": ("block",), "slots": ("place",)}
    names |= {"gives": ("gone", "left"), "arrivals": ("part", "come")}
    turn_of_rows: list[Operation] = [
        Work(Engine.VECTOR, upper, cycles, gives=("block",)),
        Send(upper, *to, 9, **names),
        Work(Engine.CONTROL, upper, 2, takes=("gone", "left")),
        Work(Engine.VECTOR, lower, 7, takes=("part", "come"), gives=("place",)),
    ]
    tokens = dict.fromkeys(("block", "gone", "left", "part", "come"), (0, queues))
    program = program_of(rows, cols, turn_of_rows * 3, **tokens, place=(1, queues))
    found = times(run_lt(program, TIMING))
    assert found == times(run_mesh(program, TIMING))
    monkeypatch.setattr(compiling, "any_order", lambda named: False)
    assert times(run_lt(replace(program), TIMING)) == found


@pytest.mark.parametrize("fields", ["takes", "slots", "gives", "arrivals"])
@pytest.mark.parametrize("plain", [True, False])
def test_both_ways_refuse_the_same_row(
    monkeypatch: pytest.MonkeyPatch, fields: str, plain: bool
) -> None:
    # Of two rows that send, one lacks the unit, or has one already.
    if not plain:
        monkeypatch.setattr(compiling, "any_order", lambda named: False)
    short = fields in ("takes", "slots")
    there = range(1, 2) if fields in ("takes", "gives") else range(4, 5)
    fill = Work(
        Engine.CONTROL, TileSet(there, range(20)), 0, **{"takes" if short else "gives": ("unit",)}
    )
    sends = Send(
        TileSet(range(2), range(20)), np.array([3, 4]), np.arange(20), 2, **{fields: ("unit",)}
    )
    program = program_of(5, 20, [fill, sends], unit=(int(short), 1))
    fault = "takes token 'unit', which no" if short else "gives token 'unit' beyond its depth of 1"
    with pytest.raises(InputError, match=re.escape(f"operation 1 (Send '') {fault}")):
        run_lt(program, TIMING)


@pytest.mark.parametrize(("fifo_depth", "held"), [(2**20, False), (4, True)])
def test_nor_do_they_where_long_sends_share_ports(
    monkeypatch: pytest.MonkeyPatch, fifo_depth: int, held: bool
) -> None:
    # 50,000 flits times as many cycles are no 32-bit number. Ports serve in program order here.
    monkeypatch.setattr(sends, "MOST_HOPS", 0)
    cols, flits = 40, 50_000
    ports = np.array([0]), np.roll(np.arange(cols), 1)
    sources = [TileSet(range(row, row + 1), range(cols)) for row in (1, 0)]
    program = program_of(2, cols, [Send(each, *ports, flits) for each in sources])
    timing = replace(TIMING, fifo_depth=fifo_depth)
    found = run_lt(program, timing)
    assert (found.engine_end_cycle[Engine.TRANSFER, 0] > flits).all() == held
    monkeypatch.setattr(compiling, "any_order", lambda named: False)
    assert times(run_lt(replace(program), timing)) == times(found)


def test_long_rows_are_updated_at_once() -> None:
    form: Scan = scan(jittered("mesh-gemm", 8))
    assert not form.turned
    assert form.operations == sum(1 for _ in jittered("mesh-gemm", 8).build())
