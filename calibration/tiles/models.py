"""The tiles that experiments measure: constants are fitted at one width of operands.

That the width changes none of them is checked blind, on tiles of the other width.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel

Case = TypeVar("Case")
#: Four tiles for operands of 16 bits: arrays of 4 x 4.
FITTED = TileModel(2, 2)
#: For operands of 8 bits, arrays of 8 x 8: the tiles of chip rtl-2x2.
OTHER_WIDTH = TileModel(2, 2, operand_bits=8, bank_depth=1024)


def on_machines(
    cases: Sequence[Case],
    model: Callable[[Case], TileModel],
    run: Callable[[TileMachine, Case], int],
) -> list[float]:
    """Cycles of cases, each on a machine of its model; one machine for all cases of a model.

    Args:
        cases: The cases.
        model: Theirs.
        run: Cycles of a case.

    Raises:
        SimulationError: if the tiles cannot be built, or stop.
    """
    cycles: dict[int, float] = {}
    for each in dict.fromkeys(map(model, cases)):
        with TileMachine(each) as machine:
            cycles |= {
                number: float(run(machine, case))
                for number, case in enumerate(cases)
                if model(case) == each
            }
    return [cycles[number] for number in range(len(cases))]


def width(model: TileModel) -> str:
    """What the label of a case says of its tiles: nothing of those that constants are fitted on."""
    return "" if model == FITTED else f"; operands of {model.operand_bits} bits"
