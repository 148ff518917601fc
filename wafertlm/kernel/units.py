"""Units that a user's program takes, held against those that it gives: levels above would hang."""

from tlm.errors import InputError
from tlm.program import Program
from tlm.program.steps import TransferStep, held_steps


def hold_units(program: Program) -> None:
    """Hold that some operation gives each unit that is taken.

    Level `lt` finds that by itself. At `at` engines would wait for ever, and tiles in Verilog have
    no token for what nobody gives.

    Raises:
        InputError: naming the first operation that takes one, or if steps need too much memory.
    """
    steps, given = held_steps(program), set()
    for step in steps:
        given.update(step.gives)
        if isinstance(step, TransferStep):
            given.update(*step.arrivals.values())
    for step in steps:
        slots = step.slots if isinstance(step, TransferStep) else ()
        for unit in (*step.takes, *slots):
            if unit.number >= program.tokens[unit.token].initial and unit not in given:
                kind = type(step.operation).__name__
                row, col = unit.tile
                raise InputError(
                    f"operation {step.number} ({kind} '{step.operation.label}') takes token "
                    f"'{unit.token}', which no operation gives at tile {row},{col}"
                )
