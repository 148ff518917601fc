"""Calibration of a tile's engines: what a product, a pass, a transfer and a credit cost.

The laws are in `tlm.compute.tile_engines`. Every constant is read off one small case and held
against another; the blind check has other sizes, among them products whose streams meet at the
banks of the scratchpad, of which the laws know nothing.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from calibration.experiment import LawContradictedError, Parameters, Targets
from calibration.tiles.experiment import (
    APART,
    FITTED,
    OTHER_WIDTH,
    TileExperiment,
    alone,
    exact,
    pass_job,
    product_job,
)
from cosim.tiles.descriptors import Credit, Descriptor, Transfer, TransferKind, Wait
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tlm.calibrated import Parameter
from tlm.compute.systolic import Dataflow
from tlm.compute.tile_engines import EngineTiming, MatrixEngine
from tlm.program.operations import Engine

Subject = Dataflow | Literal["vector", "transfer", "credit"]
_PRODUCTS: tuple[Dataflow, Dataflow] = ("output-stationary", "weight-stationary")
_PRODUCT_SIZES = ("panels of A", "panels of B", "steps")
#: What the sizes of each subject are, and the constant that it shows.
_SUBJECTS: dict[Subject, tuple[tuple[str, ...], str]] = {
    "output-stationary": (_PRODUCT_SIZES, "output_stationary_cycles"),
    "weight-stationary": (_PRODUCT_SIZES, "weight_stationary_cycles"),
    "vector": (("rows", "words a row"), "vector_cycles"),
    "transfer": (("flits", "hops"), "issue_cycles"),
    "credit": (("hops",), "credit_cycles"),
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


class TileEngines(TileExperiment[TileCase]):
    """One engine's work, by itself."""

    name = "tile"
    subject = "cycles of a tile's matrix and vector engines, transfers and credits"
    targets = Targets(mean_pct=1.0, worst_pct=5.0)
    untried = ("two engines at work at once: see the kernels",)

    def fit_cases(self) -> list[TileCase]:
        """Two of each subject: one to read the constant off, one to contradict it."""
        cases = [
            TileCase(subject, sizes) for subject in _PRODUCTS for sizes in ((1, 1, 4), (1, 2, 7))
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

    def situation(self, case: TileCase) -> str:
        """The engine's work."""
        return f"{case.subject} alone"

    def cycles(self, machine: TileMachine, case: TileCase) -> int:
        """Of a job from its start to its end; of a credit from its giving to its taking."""
        match case.subject, case.sizes:
            case "output-stationary" | "weight-stationary" as dataflow, (m, n, length):
                size, sums = machine.model.array_size, dataflow == "output-stationary"
                job = product_job(size, (m, n, length), APART, output_stationary=sums)
                return alone(machine, job)
            case "vector", (rows, words):
                return alone(machine, pass_job("add", words, rows, APART))
            case "transfer", (flits, hops):
                row, col = _place(hops)
                a, _, c = APART
                return alone(machine, Transfer(TransferKind.UNICAST, flits, a, c, row=row, col=col))
        return _credit(machine, *case.sizes)

    def law(self, parameters: Parameters, case: TileCase) -> int:
        """The same by the laws."""
        return _law(case, EngineTiming.of(parameters))

    def identify(self, cases: Sequence[TileCase], values: Sequence[float]) -> dict[str, Parameter]:
        """The constants that give every case its cycles exactly.

        Raises:
            LawContradictedError: if none do, naming the case.
        """
        found = {constant: 0 for _, constant in _SUBJECTS.values()}
        for case, value in zip(cases, values, strict=True):
            constant = _SUBJECTS[case.subject][1]
            if found[constant] == 0:
                found[constant] = round(value) - _law(case, EngineTiming(**found))
            law = _law(case, EngineTiming(**found))
            if law != value:
                raise LawContradictedError(
                    f"{self.label(case)}: measured {value:g} cycles, the law with {constant} "
                    f"{found[constant]} gives {law}"
                )
        return exact(asdict(EngineTiming(**found)))

    def words(self, case: TileCase) -> str:
        """What it does, and its sizes."""
        sizes = zip(case.sizes, _SUBJECTS[case.subject][0], strict=True)
        return f"{case.subject}: " + ", ".join(f"{size} {name}" for size, name in sizes)


def _law(case: TileCase, timing: EngineTiming) -> int:
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


def _place(hops: int) -> tuple[int, int]:
    """A tile so many hops from tile (0, 0)."""
    return hops // 2, (hops + 1) // 2


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
