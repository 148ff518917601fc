"""The loosely-timed engine: one local clock per tile, synchronised only where tiles communicate.

An operation is one max-plus update of arrays over the grid (`tlm.engines.lt_core`). The network is
its zero-load law plus the serialisation at interfaces and ejection ports; links do not contend.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.engines import lt_core as core
from tlm.engines.outcome import Outcome
from tlm.engines.transfer_times import arrival_cycles, credit_cycles, hold_cycles
from tlm.errors import InputError
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Multicast, Operation, Program, Send, Work

_LIMIT_CYCLES = 2**30
"""Times are 32-bit; a run may take this long, and no operation longer."""


def run_lt(program: Program, timing: NocTiming) -> Outcome:
    """Run a program on one local clock per tile.

    Memory is 4 bytes per tile for each engine and each unit of token depth.

    Raises:
        InputError: if an operation does not fit the program, takes a token that no earlier
            operation gave, gives one beyond its depth, or ends after 2**30 cycles.
    """
    run = _Run(program, timing)
    for number, operation in enumerate(program.operations()):
        run.apply(number, operation)
    return run.outcome()


class _Run:
    """State of one run."""

    def __init__(self, program: Program, timing: NocTiming) -> None:
        self._program = program
        self._timing = timing
        self._slots: dict[str, tuple[int, int]] = {}
        slot = core.FIRST_TOKEN
        for name, token in program.tokens.items():
            self._slots[name] = (slot, token.depth)
            slot += token.depth
        self._state = np.zeros((slot, program.rows, program.cols), dtype=np.int32)
        self._state[core.FIRST_TOKEN :] = core.EMPTY
        for name, token in program.tokens.items():
            first = self._slots[name][0]
            self._state[first : first + token.initial] = core.FROM_THE_START
        self._tables: dict[tuple[str, ...], NDArray[np.int64]] = {}
        self._busy = np.zeros((program.rows, program.cols), dtype=np.int64)
        self._busy_everywhere = 0
        self._bound_cycles = 0

    def apply(self, number: int, operation: Operation) -> None:
        """Update the times by one operation."""
        if isinstance(operation, Work):
            longest, fault = int(np.max(operation.cycles)), self._work(operation)
        elif isinstance(operation, Send):
            longest, fault = self._send(operation)
        else:
            longest, fault = self._multicast(operation)
        if fault:
            raise InputError(self._explain(number, operation, int(fault)))
        self._keep_in_range(number, longest)

    def outcome(self) -> Outcome:
        """The times after the last operation."""
        ends = self._state[: core.FIRST_TOKEN].astype(np.int64)
        return Outcome(
            engine_end_cycle=ends[: len(Engine)],
            last_arrival_cycle=ends[core.PORT],
            matrix_busy_cycles=self._busy + self._busy_everywhere,
        )

    def _work(self, work: Work) -> int:
        tiles = work.tiles
        if work.engine is Engine.MATRIX:
            self._count_busy(work)
        cycles = np.atleast_2d(np.asarray(work.cycles, dtype=np.int32))
        columns, first = _columns(tiles.cols)
        takes, gives = self._table(work.takes), self._table(work.gives)
        rows = np.array(tiles.rows)
        return int(
            core.work(self._state, rows, columns, first, int(work.engine), takes, gives, cycles)
        )

    def _count_busy(self, work: Work) -> None:
        if isinstance(work.cycles, int) and len(work.tiles) == self._busy.size:
            self._busy_everywhere += work.cycles
        else:
            rows, cols = work.tiles.rows, work.tiles.cols
            part = np.s_[rows.start : rows.stop : rows.step, cols.start : cols.stop : cols.step]
            self._busy[part] += work.cycles

    def _send(self, send: Send) -> tuple[int, int]:
        rows, from_columns = np.array(send.tiles.rows), np.array(send.tiles.cols)
        order = np.argsort(send.to_cols, kind="stable")
        to_columns = send.to_cols[order]
        hops = np.abs(to_columns - from_columns[order])
        inverse = np.argsort(order, kind="stable")
        straight = bool((order == np.arange(len(order))).all())
        fault = core.send(
            self._state,
            rows,
            send.to_rows,
            (from_columns, _first(from_columns), order),
            (to_columns, _first(to_columns), inverse, straight),
            (self._table(send.takes), self._table(send.slots)),
            (self._table(send.gives), self._table(send.arrivals)),
            _per_hops(lambda hop: credit_cycles(self._timing, hop), hops),
            _per_hops(lambda hop: arrival_cycles(self._timing, hop, send.flits), hops),
            self._timing.hop_cycles,
            send.flits,
        )
        farthest = int(np.abs(send.to_rows - rows).max() + hops.max())
        return self._transfer_cycles(farthest, send.flits), int(fault)

    def _multicast(self, multicast: Multicast) -> tuple[int, int]:
        timing, flits = self._timing, multicast.flits
        forks = len(multicast.segment) > 1
        by_row = multicast.along == "row"
        roots = multicast.roots
        root = roots.cols[0] if by_row else roots.rows[0]
        hops = np.abs(np.array(multicast.segment) - root)
        columns, first = _columns(multicast.segment if by_row else roots.cols)
        law = (
            (self._table(multicast.takes), self._table(multicast.slots)),
            (self._table(multicast.gives), self._table(multicast.arrivals)),
            _per_hops(lambda hop: credit_cycles(timing, hop), hops),
            _per_hops(lambda hop: arrival_cycles(timing, hop, flits, multicast=forks), hops),
            hold_cycles(timing, flits, multicast=forks),
            flits,
        )
        if by_row:
            rows, at = np.array(roots.rows), np.array([root])
            fault = core.row_multicast(self._state, rows, at, columns, first, *law)
        else:
            rows = np.array(multicast.segment)
            fault = core.column_multicast(self._state, rows, root, columns, first, *law)
        return self._transfer_cycles(int(hops.max()), flits), int(fault)

    def _transfer_cycles(self, hops: int, flits: int) -> int:
        """More than a transfer and its credit can add to any time."""
        arrival = arrival_cycles(self._timing, hops, flits, multicast=True)
        return arrival + credit_cycles(self._timing, hops) + flits

    def _table(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        if names not in self._tables:
            rows = [self._slots[name] for name in names]
            self._tables[names] = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
        return self._tables[names]

    def _keep_in_range(self, number: int, longest: int) -> None:
        """No time exceeds the sum of the operations' longest; look closer when that is large."""
        self._bound_cycles += longest
        if self._bound_cycles >= _LIMIT_CYCLES:
            self._bound_cycles = int(self._state.max()) + longest
            if self._bound_cycles >= _LIMIT_CYCLES:
                raise InputError(f"operation {number} ends after {_LIMIT_CYCLES} cycles")

    def _explain(self, number: int, operation: Operation, fault: int) -> str:
        name = next(n for n, (slot, _) in self._slots.items() if slot == abs(fault))
        what = f"operation {number} ({type(operation).__name__} '{operation.label}')"
        if fault > 0:
            return f"{what} takes token '{name}', which no earlier operation has given there"
        return f"{what} gives token '{name}' beyond its depth of {self._slots[name][1]}"


def _first(columns: NDArray[np.int64]) -> int:
    """First of consecutive columns, else -1."""
    return int(columns[0]) if (np.diff(columns) == 1).all() else -1


def _columns(columns: range) -> tuple[NDArray[np.int64], int]:
    indices = np.array(columns)
    return indices, _first(indices)


def _per_hops(law: Callable[[int], int], hops: NDArray[Any]) -> NDArray[np.int32]:
    """A law of the number of hops, applied to each."""
    longest = int(hops.max())
    times = np.array([law(hop) for hop in range(longest + 1)], dtype=np.int32)
    return np.take(times, hops)
