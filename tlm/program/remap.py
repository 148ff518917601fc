"""Programs on grids with lines out of use: the same program on the rows and columns that remain.

A line out of use has tiles that compute nothing. Their routers pass packets on. Their network
interfaces stay on as bystanders: they drop their copies of the multicasts that pass, and bring the
neutral element to the reductions that pass. So the network is the one without lines out of use, and
every level runs the result.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tlm.errors import InputError
from tlm.program.bystanders import Bystanders
from tlm.program.lines import Axis, Placement
from tlm.program.operations import Engine, Operation, Send
from tlm.program.program import Program
from tlm.program.tokens import Token


def on_lines(program: Program, rows: Sequence[int], cols: Sequence[int]) -> Program:
    """The same program on some rows and columns of a larger grid.

    Operations become several where their tiles are no longer evenly spaced. Their tokens, and what
    they compute, stay those of the program.

    Args:
        program: What every tile does.
        rows: Shape (rows of the program,): where each of its rows lies, in rising order.
        cols: Shape (columns of the program,): the same of its columns.

    Returns:
        A program on ``rows[-1] + 1`` x ``cols[-1] + 1`` tiles.

    Raises:
        InputError: if the lines are too few or many, or do not rise; while it is read, if the tiles
            of a multicast or reduction would be neither side by side nor evenly spaced.
    """
    axes = []
    for name, places, size in (("rows", rows, program.rows), ("cols", cols, program.cols)):
        if len(places) != size or places[0] < 0 or any(np.diff(places) < 1):
            raise InputError(f"{name}: found {list(places)}; allowed: {size} numbers that rise")
        axes.append(Axis(list(places)))
    lines = Placement(*axes)
    if not lines.rows.has_gaps and not lines.cols.has_gaps and rows[0] == cols[0] == 0:
        return program
    engine = Engine.VECTOR
    if any(each.engine is Engine.MATRIX for each in program.built()):
        engine = Engine.MATRIX
    tokens = _with_room(program)

    def build() -> Iterator[Operation]:
        bystanders = Bystanders(tokens, (lines.rows.size, lines.cols.size), engine)
        for number, operation in enumerate(program.operations()):
            try:
                for piece, passed in operation.on_lines(lines):
                    yield from bystanders.take(operation.bystander_takes, passed)
                    yield piece
                    bystanders.give(operation.bystander_gives, passed)
            except InputError as error:
                raise InputError(f"{operation.called(number)}: {error}") from None
            yield from bystanders.settle(operation)

    return Program(lines.rows.size, lines.cols.size, tokens, build, program.buffers)


def _with_room(program: Program) -> Mapping[str, Token]:
    """Tokens deep enough for operations in pieces, and for bystanders.

    Of a send in pieces a tile may be given a unit before it takes one; bystanders keep the units
    that were there from the start.
    """
    both: set[str] = set()
    piled: set[str] = set()
    for operation in program.built():
        piled.update(operation.bystander_gives)
        if isinstance(operation, Send):
            taken = {*operation.takes, *operation.slots}
            both |= taken & {*operation.gives, *operation.arrivals}
    return {
        name: replace(
            token, depth=token.depth + (name in both) + (token.initial if name in piled else 0)
        )
        for name, token in program.tokens.items()
    }
