"""The loosely-timed engine: one local clock per tile, synchronised only where tiles communicate.

An operation is one max-plus update of arrays over the grid (`tlm.engines.lt_core`). The network is
its zero-load law plus the serialisation at interfaces and ejection ports; links do not contend.
"""

from collections.abc import Callable

import numpy as np

from tlm.engines import lt_queues as queues
from tlm.engines.lt_batch import Batch
from tlm.engines.lt_build import Builder, Built, Fields
from tlm.engines.lt_table import Pools
from tlm.engines.lt_tables import CycleTables
from tlm.engines.lt_tokens import TokenFaultError, initial_state, place_units
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Operation, Program, Reduce, Send, Work, root_lines

_LIMIT_CYCLES = 2**30
"""Times are 32-bit; a run may take this long, and no operation longer."""
_POOLED_ENTRIES = 2**22


def run_lt(program: Program, timing: NocTiming, *, threads: int = 1) -> Outcome:
    """Run a program on one local clock per tile.

    Memory is 4 bytes per tile for each engine and each unit of token depth.

    Args:
        program: What to run.
        timing: Measured constants of the router.
        threads: Threads that share the grid; the outcome is the same for any number.

    Raises:
        InputError: if an operation does not fit the program, takes a token that no earlier
            operation gave, gives one beyond its depth, or ends after 2**30 cycles.
    """
    run = _Run(program, timing, threads)
    for number, operation in enumerate(program.operations()):
        run.add(number, operation)
    return run.outcome()


class _Run:
    """State of one run."""

    def __init__(self, program: Program, timing: NocTiming, threads: int) -> None:
        self._everywhere = (program.rows, program.cols)
        self._units = place_units(program.tokens.items())
        slots = queues.FIRST_TOKEN + sum(token.depth for token in program.tokens.values())
        self._state = np.empty((program.rows, slots, program.cols), dtype=np.int32)
        initial_state(self._state, [(self._units[n], t) for n, t in program.tokens.items()])
        self._pools = Pools()
        self._builder = Builder(timing, self._pools)
        self._tables = CycleTables(*self._everywhere)
        self._batch = Batch(self._state, self._pools, self._tables, threads)
        self._bound_cycles = 0

    def add(self, number: int, operation: Operation) -> None:
        """Take an operation up; it is done with others."""
        if self._pools.entries > _POOLED_ENTRIES:
            self._flush()
            self._pools.clear()
            self._builder.forget()
        try:
            built = self._build(operation)
        except TokenFaultError as fault:
            self._flush()
            raise InputError(f"{_name(number, operation)} {fault}") from None
        self._keep_in_range(number, built.longest_cycles)
        if not self._batch.takes(built):
            self._flush()
        self._batch.add(number, operation, built)

    def outcome(self) -> Outcome:
        """The times after the last operation."""
        self._flush()
        ends = self._state[:, : queues.FIRST_TOKEN].transpose(1, 0, 2).astype(np.int64)
        return Outcome(
            engine_end_cycle=ends[: len(Engine)],
            last_arrival_cycle=ends[queues.PORT],
            matrix_busy_cycles=self._tables.busy_cycles(),
        )

    def _build(self, operation: Operation) -> Built:
        if isinstance(operation, Work):
            return self._build_work(operation)
        if isinstance(operation, Send):
            here = _lines(operation.tiles)
            there = (len(operation.to_rows), len(operation.to_cols))
            return self._builder.send(operation, self._tokens(operation, here, there))
        if isinstance(operation, Reduce):
            raise InputError("not yet")
        lines, places = root_lines(operation)
        by_row = operation.along == "row"
        roots = (len(lines), 1) if by_row else (1, len(lines))
        size = len(operation.segment)
        segments = (len(lines), size) if by_row else (size, len(lines))
        tokens = self._tokens(operation, roots, segments)
        return self._builder.collective(operation, lines, places, tokens)

    def _build_work(self, work: Work) -> Built:
        if self._tables.full:
            self._flush()
            self._tables.clear()
        table, longest = self._tables.put(work)
        tokens = self._tokens(work, _lines(work.tiles), (0, 0))
        return self._builder.work(work, tokens, longest, table)

    def _tokens(
        self, operation: Operation, here: tuple[int, int], there: tuple[int, int]
    ) -> Fields:
        """Places of the tokens, taken and given at tile sets of some rows and columns."""
        takes = self._places("takes", operation.takes, here, taken=True)
        if isinstance(operation, Work):
            return takes | self._places("gives", operation.gives, here, taken=False)
        return (
            takes
            | self._places("slots", operation.slots, there, taken=True)
            | self._places("gives", operation.gives, here, taken=False)
            | self._places("arrivals", operation.arrivals, there, taken=False)
        )

    def _places(
        self, field: str, names: tuple[str, ...], lines: tuple[int, int], *, taken: bool
    ) -> Fields:
        """Offset and number of ``(place, depth)`` pairs; depth 0: the unit lies there."""
        places: list[tuple[int, int]] = []
        for name in names:
            units = self._units[name]
            if lines != self._everywhere and not units.queued:
                self._flush()
                units.to_queue(self._state)
            if units.queued:
                places.append((units.slot, units.depth))
            else:
                places.append((units.take() if taken else units.give(), 0))
        return {field: self._pools.put_indices(places), f"n_{field}": len(places)}

    def _flush(self) -> None:
        """Do the operations taken up."""
        fault = self._batch.run()
        if fault:
            number, operation, slot = fault
            units = next(each for each in self._units.values() if each.slot == abs(slot))
            what = units.taken_too_soon if slot > 0 else units.given_too_often
            raise InputError(f"{_name(number, operation)} {what}")

    def _keep_in_range(self, number: int, longest: int) -> None:
        """No time exceeds the sum of the operations' longest; look closer when that is large."""
        self._bound_cycles += longest
        if self._bound_cycles >= _LIMIT_CYCLES:
            self._flush()
            self._bound_cycles = int(self._state.max()) + longest
            if self._bound_cycles >= _LIMIT_CYCLES:
                raise InputError(f"operation {number} ends after {_LIMIT_CYCLES} cycles")


def _lines(tiles: TileSet) -> tuple[int, int]:
    return len(tiles.rows), len(tiles.cols)


def _name(number: int, operation: Operation) -> str:
    return f"operation {number} ({type(operation).__name__} '{operation.label}')"
