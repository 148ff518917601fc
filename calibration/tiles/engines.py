"""Calibration of a tile's engines: what a product, a pass, a transfer and a credit cost.

The laws are in `tlm.compute.tile_engines`. Every constant is read off one small case and held
against another; the blind check has other sizes, among them products whose streams meet at the
banks of the scratchpad, of which the laws know nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from calibration.experiment import LawContradictedError, Parameters, Targets
from calibration.tiles.models import FITTED, OTHER_WIDTH, on_machines, width
from cosim.tiles.descriptors import Credit, Descriptor, Transfer, TransferKind, Wait
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine, TileRun
from cosim.tiles.model import TileModel
from cosim.verilog import TILE_SOURCES
from tlm.calibrated import Parameter
from tlm.compute.tile_engines import EngineTiming, MatrixEngine
from tlm.program.operations import Engine
from tlm.tiles.jobs import MatrixJob, VectorJob

Subject = Literal["output-stationary", "weight-stationary", "vector", "transfer", "credit"]

#: Addresses of operands and results, at different banks.
_A, _B, _C = 0, 1026, 2052
#: The constant that each subject shows.
_CONSTANTS: dict[Subject, str] = {
    "output-stationary": "output_stationary_cycles",
    "weight-stationary": "weight_stationary_cycles",
    "vector": "vector_cycles",
    "transfer": "issue_cycles",
    "credit": "credit_cycles",
}
_OTHER_WIDTH_CASES: tuple[tuple[Subject, tuple[int, ...]], ...] = (
    ("output-stationary", (1, 1, 64)),
    ("output-stationary", (2, 2, 32)),
    ("output-stationary", (1, 3, 40)),
    ("weight-stationary", (1, 1, 24)),
    ("weight-stationary", (1, 3, 9)),
    ("vector", (16, 8)),
    ("transfer", (64, 2)),
    ("credit", (1,)),
)
_TARGETS = Targets(mean_pct=1.0, worst_pct=5.0)


@dataclass(frozen=True, slots=True)
class TileCase:
    """Something that a tile does.

    Attributes:
        subject: What.
        sizes: Panels of A, panels of B and steps of a product; rows and words of a pass; flits and
            hops of a transfer; hops of a credit.
        model: The tiles.
    """

    subject: Subject
    sizes: tuple[int, ...]
    model: TileModel = FITTED


class TileEngines:
    """Stimuli, measurement, fit and prediction for the engines of a tile."""

    name = "tile"
    subject = "cycles of a tile's matrix and vector engines, transfers and credits"
    sources: Sequence[Path] = TILE_SOURCES
    seed = 0
    targets = _TARGETS

    def fit_cases(self) -> list[TileCase]:
        """Two of each subject: one to read the constant off, one to contradict it."""
        products: tuple[Subject, Subject] = ("output-stationary", "weight-stationary")
        cases = [
            TileCase(subject, sizes) for subject in products for sizes in ((1, 1, 4), (1, 2, 7))
        ]
        cases += [TileCase("vector", (1, 4)), TileCase("vector", (3, 5))]
        cases += [TileCase("transfer", (4, 1)), TileCase("transfer", (9, 2))]
        return [*cases, TileCase("credit", (1,)), TileCase("credit", (2,))]

    def check_cases(self, *, quick: bool) -> list[TileCase]:
        """Other sizes; ``quick`` leaves out the tiles of the other width."""
        products = [(1, 1, 64), (2, 2, 16), (4, 4, 16), (3, 2, 5), (4, 4, 40), (1, 4, 2)]
        cases = [TileCase("output-stationary", sizes) for sizes in products]
        cases += [TileCase("weight-stationary", sizes) for sizes in ((1, 1, 64), (1, 4, 16))]
        cases += [TileCase("vector", sizes) for sizes in ((1, 1), (16, 8), (1, 100))]
        cases += [TileCase("transfer", sizes) for sizes in ((1, 0), (64, 2), (200, 1))]
        cases += [TileCase("credit", (0,))]
        if quick:
            return cases
        others = [TileCase(*either, OTHER_WIDTH) for either in _OTHER_WIDTH_CASES]
        return [*cases, *others]

    def rtl(self, case: TileCase) -> TileModel:
        """The mesh of tiles."""
        return case.model

    def measure(self, cases: Sequence[TileCase]) -> list[float]:
        """Run the cases one after the other; cycles of each.

        Raises:
            SimulationError: if the tiles cannot be built, or stop.
        """
        return on_machines(cases, self.rtl, _measured)

    def identify(self, cases: Sequence[TileCase], values: Sequence[float]) -> dict[str, Parameter]:
        """The constants that give every case its cycles exactly.

        Raises:
            LawContradictedError: if none do, naming the case.
        """
        found = dict.fromkeys(_CONSTANTS.values(), 0)
        for case, value in zip(cases, values, strict=True):
            constant = _CONSTANTS[case.subject]
            if found[constant] == 0:
                found[constant] = round(value) - _cycles(case, EngineTiming(**found))
            law = _cycles(case, EngineTiming(**found))
            if law != value:
                raise LawContradictedError(
                    f"{self.label(case)}: measured {value:g} cycles, the law with {constant} "
                    f"{found[constant]} gives {law}"
                )
        timing = EngineTiming(**found)
        return {name: Parameter.exact(value, "cycles") for name, value in asdict(timing).items()}

    def predict(self, parameters: Parameters, cases: Sequence[TileCase]) -> list[float]:
        """Cycles of each case by the laws."""
        timing = EngineTiming.of(parameters)
        return [float(_cycles(case, timing)) for case in cases]

    def label(self, case: TileCase) -> str:
        """The case in words."""
        names = {
            "output-stationary": ("panels of A", "panels of B", "steps"),
            "weight-stationary": ("panels of A", "panels of B", "steps"),
            "vector": ("rows", "words a row"),
            "transfer": ("flits", "hops"),
            "credit": ("hops",),
        }[case.subject]
        sizes = zip(case.sizes, names, strict=True)
        shown = ", ".join(f"{size} {name}" for size, name in sizes)
        return f"{case.subject}: {shown}{width(case.model)}"


def _cycles(case: TileCase, timing: EngineTiming) -> int:
    """A case by the laws."""
    match case.subject:
        case "output-stationary" | "weight-stationary" as dataflow:
            panels_m, panels_n, length = case.sizes
            engine = MatrixEngine(case.model.array_size, dataflow, timing)
            return engine.job_cycles(panels_m * panels_n, length)
        case "vector":
            return case.sizes[0] * case.sizes[1] + timing.vector_cycles
        case "transfer":
            return case.sizes[0] + timing.issue_cycles
        case "credit":
            return case.sizes[0] + timing.credit_cycles


@cache
def _words(count: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    return np.random.default_rng(0).integers(0, 2**64, count, dtype=np.uint64)


def _alone(machine: TileMachine, engine: Engine, job: MatrixJob | VectorJob | Transfer) -> TileRun:
    """A job by itself on tile 0."""
    image = TileImage({engine: [Descriptor(job)]}, memory={0: _words(machine.model.memory_words)})
    return machine.run({0: image})


def _product(machine: TileMachine, dataflow: str, panels_m: int, panels_n: int, length: int) -> int:
    size, sums_at_rest = machine.model.array_size, dataflow == "output-stationary"
    c_row = panels_n * size // 2
    job = MatrixJob(
        length=length, a=_A, b=_B, c=_C, c_row=c_row, output_stationary=sums_at_rest,
        panels_m=panels_m, panels_n=panels_n, a_panel=length,
        b_panel=length if sums_at_rest else size,
        c_panel=c_row * (size if sums_at_rest else length),
    )  # fmt: skip
    return _alone(machine, Engine.MATRIX, job).spans[0].cycles


def _pass(machine: TileMachine, rows: int, words: int) -> int:
    job = VectorJob("add", words, rows, _A, words, _C, words, words, b=_B, b_row=words)
    return _alone(machine, Engine.VECTOR, job).spans[0].cycles


def _place(hops: int) -> tuple[int, int]:
    """A tile so many hops from tile (0, 0)."""
    return hops // 2, (hops + 1) // 2


def _transfer(machine: TileMachine, flits: int, hops: int) -> int:
    row, col = _place(hops)
    job = Transfer(TransferKind.UNICAST, flits, _A, _C, row=row, col=col)
    return _alone(machine, Engine.TRANSFER, job).spans[0].cycles


def _credit(machine: TileMachine, hops: int) -> int:
    """From the cycle in which a unit is given to that in which it is taken."""
    row, col = _place(hops)
    tile = row * machine.model.cols + col
    images = {tile: TileImage({Engine.VECTOR: [Descriptor(Wait(9), credits=(Credit(0, 0, 1),))]})}
    taker = [Descriptor(Wait(), takes=frozenset([1]))]
    images.setdefault(0, TileImage()).queues[Engine.CONTROL] = taker
    run = machine.run(images)
    given = run.of(tile, Engine.VECTOR)[0].end_cycle + 1
    return run.of(0, Engine.CONTROL)[0].start_cycle - given


def _measured(machine: TileMachine, case: TileCase) -> int:
    return _RUNS[case.subject](machine, *case.sizes)


_RUNS: dict[Subject, Callable[..., int]] = {
    "output-stationary": lambda machine, *sizes: _product(machine, "output-stationary", *sizes),
    "weight-stationary": lambda machine, *sizes: _product(machine, "weight-stationary", *sizes),
    "vector": _pass,
    "transfer": _transfer,
    "credit": _credit,
}
