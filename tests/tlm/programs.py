"""Small programs, and their run at both levels, for the tests of the engines."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from tlm.engines.at import run_at
from tlm.engines.outcome import Outcome
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Operation, Program, Send, Token

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


def send(source: int, target: int, flits: int, **tokens: tuple[str, ...]) -> Send:
    """From a tile of the first row to another."""
    return Send(tile(source), np.array([0]), np.array([target]), flits, **tokens)
