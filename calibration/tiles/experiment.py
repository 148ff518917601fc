"""What experiments on tiles share: the tiles, jobs by themselves, and a law for each case.

Constants are fitted at one width of operands. That the width changes none of them is checked blind,
on tiles of the other width.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from calibration.experiment import EXACT, Parameters
from cosim.tiles.descriptors import Descriptor, Transfer
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from cosim.verilog import TILE_SOURCES
from tlm.calibrated import Parameter
from tlm.program.operations import Engine
from tlm.tiles.jobs import MatrixJob, VectorJob

#: Four tiles for operands of 16 bits: arrays of 4 x 4.
FITTED = TileModel(2, 2)
#: For operands of 8 bits, arrays of 8 x 8: the tiles of chip rtl-2x2.
OTHER_WIDTH = TileModel(2, 2, operand_bits=8, bank_depth=1024)
#: Addresses of two operands and of the results: at different banks, and all at the same.
APART, TOGETHER = (0, 1026, 2052), (0, 1024, 2048)


class OnTiles(Protocol):
    """A case of an experiment on tiles."""

    @property
    def model(self) -> TileModel:
        """The tiles."""


Case = TypeVar("Case", bound=OnTiles)


class TileExperiment(ABC, Generic[Case]):
    """The figure of a case is cycles: on a machine of its tiles, and by a law."""

    sources: Sequence[Path] = TILE_SOURCES
    seed = 0
    targets = EXACT
    untried: Sequence[str] = ()

    @abstractmethod
    def cycles(self, machine: TileMachine, case: Case) -> int:
        """What a case takes on RTL."""

    @abstractmethod
    def law(self, parameters: Parameters, case: Case) -> float:
        """What a case takes by the law."""

    @abstractmethod
    def words(self, case: Case) -> str:
        """What is done, in words."""

    @abstractmethod
    def situation(self, case: Case) -> str:
        """What the case has in common with others."""

    def rtl(self, case: Case) -> TileModel:
        """The mesh of tiles."""
        return case.model

    def measure(self, cases: Sequence[Case]) -> list[float]:
        """Run the cases one after the other, on one machine for all of a model; cycles of each.

        Raises:
            SimulationError: if the tiles cannot be built, stop, or do something else.
        """
        cycles: dict[int, float] = {}
        for model in dict.fromkeys(case.model for case in cases):
            with TileMachine(model) as machine:
                cycles |= {
                    number: float(self.cycles(machine, case))
                    for number, case in enumerate(cases)
                    if case.model == model
                }
        return [cycles[number] for number in range(len(cases))]

    def predict(self, parameters: Parameters, cases: Sequence[Case]) -> list[float]:
        """Cycles of each case by the law."""
        return [float(self.law(parameters, case)) for case in cases]

    def label(self, case: Case) -> str:
        """The case in words; of its tiles only if constants are not fitted on them."""
        return self.words(case) + width(case.model)


def width(model: TileModel) -> str:
    """What the label of a case says of its tiles: nothing of those that constants are fitted on."""
    return "" if model == FITTED else f"; operands of {model.operand_bits} bits"


def exact(values: Mapping[str, int], **units: str) -> dict[str, Parameter]:
    """Constants that every case shows, in cycles but for those whose units are given."""
    return {
        name: Parameter.exact(value, units.get(name, "cycles")) for name, value in values.items()
    }


def product_job(
    size: int,
    panels: tuple[int, int, int],
    places: tuple[int, int, int],
    *,
    output_stationary: bool,
    accumulate: bool = False,
) -> MatrixJob:
    """A product whose panels lie one behind the other.

    Args:
        size: Rows, and columns, of the array.
        panels: Panels of A, panels of B, and steps.
        places: Addresses of A, B and C.
        output_stationary: Sums are at rest, not weights.
        accumulate: Sums are added to what is in memory.
    """
    panels_m, panels_n, length = panels
    rows, weights = (size, length) if output_stationary else (length, size)
    c_row = panels_n * size // 2
    a, b, c = places
    return MatrixJob(
        length=length, a=a, b=b, c=c, c_row=c_row, output_stationary=output_stationary,
        accumulate=accumulate, panels_m=panels_m, panels_n=panels_n, a_panel=length,
        b_panel=weights, c_panel=c_row * rows,
    )  # fmt: skip


def pass_job(operation: str, words: int, rows: int, places: tuple[int, int, int]) -> VectorJob:
    """A pass over rows that lie one behind the other; places are those of A, B and results."""
    out = 1 if operation.startswith("row-") else words
    a, b, results = places
    return VectorJob(operation, words, rows, a, words, results, out, out, b=b, b_row=words)


def alone(machine: TileMachine, job: MatrixJob | VectorJob | Transfer) -> int:
    """Cycles of a job by itself, on tile 0."""
    engines = {MatrixJob: Engine.MATRIX, VectorJob: Engine.VECTOR, Transfer: Engine.TRANSFER}
    image = TileImage({engines[type(job)]: [Descriptor(job)]})
    return machine.run({0: image}).spans[0].cycles
