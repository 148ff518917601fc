"""The check of a program: one walk in program order that gathers all, and what does not hold."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tlm.check import marks
from tlm.check.cycles import WaitSearch
from tlm.check.order import Reductions
from tlm.check.report import Finding, Latency, MemoryUse, Report, Routing, Tile, TileLimits
from tlm.check.routes import Routes
from tlm.check.usage import Usage
from tlm.check.walk import Walk, WalkFault
from tlm.program import Engine, Operation, Program, Reduce
from tlm.room import hold_room

Progress = Callable[[int, int], None]
_PROGRESS_STEP = 64
#: Of each token so many are looked into; the others mostly follow from them.
_EXPLAINED_FAULTS = 16
_NOBODY = "no operation gives"
#: Per tile: busy cycles, bytes used, routes, and four destinations of a source.
_NOTED_BYTES = 48


def check_program(
    program: Program, limits: TileLimits | None = None, progress: Progress | None = None
) -> Report:
    """Check a program without running it.

    Args:
        program: What is checked.
        limits: What a tile and its router hold.
        progress: Called with (operations done, of all).

    Raises:
        InputError: if an operation does not fit the program, or the check the machine's memory.
    """
    hold_room(f"check of {program.rows}x{program.cols} tiles", _bytes(program))
    gathered = _Gathered(program)
    total = sum(1 for _ in program.built()) if progress else 0
    for number, operation in enumerate(program.within_tiles()):
        gathered.add(number, operation)
        if progress and number % _PROGRESS_STEP == 0:
            progress(number, total)
    return gathered.report(limits or TileLimits())


def _bytes(program: Program) -> int:
    """The marks of engines and units, and what is noted of each tile beside them."""
    places = len(Engine) + sum(token.depth for token in program.tokens.values())
    return program.rows * program.cols * (8 * places + len(program.buffers) + _NOTED_BYTES)


class _Gathered:
    """What is known after some operations."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._walk = Walk(program)
        self._routes = Routes(program)
        self._reductions = Reductions(program)
        self._usage = Usage(program)
        self._waits = WaitSearch(program)
        self._faults: dict[str, list[tuple[int, Operation, WalkFault]]] = {}
        self._operations = 0
        self._latency = Latency(0, 0, None, 0, 0)

    def add(self, number: int, operation: Operation) -> None:
        """Go over an operation; faults are kept by token."""
        self._operations = number + 1
        self._routes.add(operation)
        self._usage.add(operation)
        if isinstance(operation, Reduce):
            self._reductions.add(operation)
        self._measure(number, operation)
        fault = self._walk.apply(operation)
        if fault is None:
            return
        assert fault.token is not None
        self._faults.setdefault(fault.token, []).append((number, operation, fault))

    def report(self, limits: TileLimits) -> Report:
        """All that was found."""
        chain_hops, chain_transfers = divmod(self._walk.greatest, marks.HOP)
        memory, routing = self._memory(limits), self._routing(limits)
        findings = [self._worst(faults) for faults in self._faults.values()]
        # Where units are missing, what is known of reductions has no ground.
        findings += [] if findings else self._reductions.findings()
        findings += _limit_findings(memory, routing)
        return Report(
            operations=self._operations,
            parallelism=self._usage.parallelism(),
            latency=replace(
                self._latency, chain_hops=chain_hops, chain_stages=max(chain_transfers - 1, 0)
            ),
            memory=memory,
            routing=routing,
            findings=tuple(findings),
            more=sum(len(faults) - 1 for faults in self._faults.values()),
        )

    def _measure(self, number: int, operation: Operation) -> None:
        if not operation.transfers:
            return
        hops, latency = operation.longest_hops, self._latency
        first = latency.longest_operation is None or hops > latency.longest_hops
        self._latency = replace(
            latency,
            transfers=latency.transfers + operation.transfers,
            longest_hops=max(hops, latency.longest_hops),
            longest_operation=number if first else latency.longest_operation,
        )

    def _memory(self, limits: TileLimits) -> MemoryUse:
        used = self._usage.bytes_used()
        return MemoryUse(int(used.max()), _place(used), limits.tile_bytes)

    def _routing(self, limits: TileLimits) -> Routing:
        paths = self._routes.paths()
        most = int(paths.max())
        return Routing(most, self._routes.at_least, _place(paths), limits.routing_paths)

    def _worst(self, faults: list[tuple[int, Operation, WalkFault]]) -> Finding:
        """Of a token's first faults one that hangs, or may; else the first."""
        findings = (self._token_finding(*fault) for fault in faults[:_EXPLAINED_FAULTS])
        first = next(findings)
        for each in chain([first], findings):
            if each.rule == "cycle" or _NOBODY in each.message:
                return each
        return first

    def _token_finding(self, number: int, operation: Operation, fault: WalkFault) -> Finding:
        assert fault.token is not None
        tile = (fault.row, fault.col)
        depth = self._program.tokens[fault.token].depth
        if fault.kind == marks.FaultKind.BEYOND_DEPTH:
            rule, what = "token", f"gives a unit of '{fault.token}' beyond its depth of {depth}"
        else:
            rule, what = self._missing(number, fault)
        return Finding(
            rule=rule,
            message=f"tile {tile}: {what}",
            operation=number,
            label=operation.label,
            tile=tile,
            token=fault.token,
        )

    def _missing(self, number: int, fault: WalkFault) -> tuple[str, str]:
        """Why a unit is not there: nobody gives it, or a later operation, perhaps in a cycle."""
        assert fault.token is not None
        takes = f"takes a unit of '{fault.token}' that"
        tile = (fault.row, fault.col)
        giver = self._waits.giver(fault.token, tile, number, fault.owed)
        if giver is None:
            return "token", f"{takes} {_NOBODY}"
        cycle = self._waits.cycle(number, giver)
        if cycle is None:
            return "token", f"{takes} operation {giver} gives, which comes later in program order"
        ways = " for ".join(str(step) for step in cycle)
        return "cycle", (
            f"{takes} operation {giver} gives, which comes later; operations may wait for each "
            f"other: {ways}"
        )


def _limit_findings(memory: MemoryUse, routing: Routing) -> list[Finding]:
    findings = []
    if memory.limit_bytes is not None and memory.peak_bytes > memory.limit_bytes:
        message = (
            f"tile {memory.tile}: buffers take {memory.peak_bytes} bytes; "
            f"a tile has {memory.limit_bytes}"
        )
        findings.append(Finding("memory", message, tile=memory.tile))
    if routing.limit_paths is not None and routing.most_paths > routing.limit_paths:
        at_least = "at least " if routing.at_least else ""
        message = (
            f"tile {routing.tile}: {at_least}{routing.most_paths} distinct routes begin, pass or "
            f"end here; a router holds {routing.limit_paths}"
        )
        findings.append(Finding("routing", message, tile=routing.tile))
    return findings


def _place(values: NDArray[np.int64]) -> Tile:
    """The first tile with the greatest value."""
    row, col = np.unravel_index(int(values.argmax()), values.shape)
    return int(row), int(col)
