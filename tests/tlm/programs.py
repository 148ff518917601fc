"""Small programs, and their run at both levels, for the tests of the engines."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest

from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.engines.outcome import Outcome
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Multicast, Operation, Program, Reduce, Send, Token, Work

TIMING = NocTiming(1, 1, 4, 1, 8)
Run = Callable[[Program, NocTiming], Outcome]
Along = Literal["row", "column"]


def run_mesh(program: Program, timing: NocTiming) -> Outcome:
    return run_at(program, timing, HandshakeMesh(program.rows, program.cols, timing))


def program_of(
    rows: int, cols: int, operations: Sequence[Operation], **tokens: tuple[int, int]
) -> Program:
    named = {name: Token(*pair) for name, pair in tokens.items()}
    return Program(rows, cols, named, lambda: iter(operations))


def tile(col: int, row: int = 0) -> TileSet:
    return TileSet.tile(row, col)


def send(source: int, target: int, flits: int, **tokens: Any) -> Send:
    """From a tile of the first row to another."""
    return Send(tile(source), np.array([0]), np.array([target]), flits, **tokens)


both_levels = pytest.mark.parametrize("run", [run_lt, run_mesh], ids=["lt", "at"])


def timeline(run: Run, program: Program) -> list[tuple[list[int], list[int]]]:
    """When each operation ends at its tiles, and when it arrives at its destinations.

    Read off runs of all beginnings of the program: nothing depends on what comes later.
    """
    operations = list(program.operations())
    seen: list[tuple[list[int], list[int]]] = []
    for length, operation in enumerate(operations, start=1):
        outcome = run(replace(program, build=partial(iter, operations[:length])), TIMING)
        targets: tuple[Any, Any] | None = None
        if isinstance(operation, Work):
            engine, tiles = operation.engine, operation.tiles
        elif isinstance(operation, Send):
            engine, tiles = Engine.TRANSFER, operation.tiles
            targets = (operation.to_rows, operation.to_cols)
        else:
            assert isinstance(operation, Multicast | Reduce)
            assert isinstance(operation.roots, TileSet)
            engine, tiles = Engine.TRANSFER, operation.roots
            segment, along_row = operation.segment, operation.along == "row"
            reached = TileSet(*((tiles.rows, segment) if along_row else (segment, tiles.cols)))
            if isinstance(operation, Reduce):
                tiles, reached = reached, tiles
            targets = (reached.rows, reached.cols)
        ends = outcome.engine_end_cycle[engine][np.ix_(tiles.rows, tiles.cols)]
        arrivals = (
            [] if targets is None else outcome.last_arrival_cycle[np.ix_(*targets)].ravel().tolist()
        )
        seen.append((ends.ravel().tolist(), arrivals))
    return seen
