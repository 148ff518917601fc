"""Calibration of the streams of a tile's engines: what a job costs whose streams meet at banks.

The law is in `tlm.tiles.cycle`. Its three constants are those that give every case its cycles;
they are looked for among all that a tile could have. The blind check has other sizes and dataflows,
other banks, sums that are added to what is in memory, and arrays for operands of the other width.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from calibration.experiment import EXACT, LawContradictedError, Parameters
from calibration.tiles.models import FITTED, OTHER_WIDTH, on_machines, width
from cosim.tiles.descriptors import Descriptor
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from cosim.verilog import TILE_SOURCES
from tlm.calibrated import Parameter
from tlm.program.operations import Engine
from tlm.tiles.job_cycles import job_cycles
from tlm.tiles.jobs import MatrixJob, VectorJob
from tlm.tiles.timing import FREE, StreamTiming, TileTiming, stream_timing

#: Addresses of the operands and of the results: at different banks, and all at the same.
_APART, _TOGETHER = (0, 1026, 2052), (0, 1024, 2048)
_QUICK_CASES = 32
_UNITS = {"lead_cycles": "cycles", "places": "words", "pipeline_cycles": "cycles"}
_CANDIDATES = (range(2, 8), range(1, 10), range(1, 8))


@dataclass(frozen=True, slots=True)
class StreamCase:
    """A job of an engine of some tiles."""

    job: MatrixJob | VectorJob
    model: TileModel


def _product(
    panels_m: int,
    panels_n: int,
    length: int,
    places: tuple[int, int, int],
    *,
    output_stationary: bool = True,
    accumulate: bool = False,
    model: TileModel = FITTED,
) -> StreamCase:
    """A product whose panels lie one behind the other."""
    size = model.array_size
    rows, weights = (size, length) if output_stationary else (length, size)
    c_row = panels_n * size // 2
    job = MatrixJob(
        length=length, a=places[0], b=places[1], c=places[2], c_row=c_row,
        output_stationary=output_stationary, accumulate=accumulate, panels_m=panels_m,
        panels_n=panels_n, a_panel=length, b_panel=weights, c_panel=c_row * rows,
    )  # fmt: skip
    return StreamCase(job, model)


def _pass(
    operation: str,
    words: int,
    rows: int,
    places: tuple[int, int, int],
    model: TileModel = FITTED,
) -> StreamCase:
    """A pass over rows that lie one behind the other."""
    out = 1 if operation.startswith("row-") else words
    a, b, results = places
    job = VectorJob(operation, words, rows, a, words, results, out, out, b=b, b_row=words)
    return StreamCase(job, model)


class TileStreams:
    """Stimuli, measurement, fit and prediction for the streams of the engines."""

    name = "tile-streams"
    subject = "cycles of products and passes whose streams meet at the banks of a scratchpad"
    sources: Sequence[Path] = TILE_SOURCES
    seed = 0
    targets = EXACT

    def fit_cases(self) -> list[StreamCase]:
        """Few: without a meeting, and with many."""
        return [
            _product(1, 1, 6, _APART),
            _product(3, 2, 9, _TOGETHER),
            _product(2, 3, 5, _TOGETHER, accumulate=True),
            _pass("scale", 12, 2, _APART),
            _pass("add", 9, 4, _TOGETHER),
            _pass("row-sum", 5, 3, _TOGETHER),
        ]

    def check_cases(self, *, quick: bool) -> list[StreamCase]:
        """Other sizes, weights at rest, other banks; ``quick`` leaves out passes and widths."""
        cases: list[StreamCase] = [
            _product(m, n, length, places, output_stationary=stationary, accumulate=adds)
            for m, n, length in ((1, 1, 1), (2, 2, 16), (4, 3, 7), (1, 4, 40))
            for places in (_TOGETHER, (3, 1025, 2053))
            for stationary, adds in ((True, True), (True, False), (False, True), (False, False))
        ]
        for operation in ("maximum", "multiply", "exp", "quantize", "row-maximum"):
            cases += [_pass(operation, 1, 1, _APART), _pass(operation, 16, 8, _TOGETHER)]
            cases += [_pass(operation, 7, 5, (2, 1031, 2049))]
        if quick:
            return cases[:_QUICK_CASES]
        cases += [
            _product(m, n, length, places, output_stationary=stationary, accumulate=adds,
                     model=OTHER_WIDTH)
            for m, n, length, places in ((2, 3, 11, _TOGETHER), (1, 2, 33, (3, 1025, 2053)))
            for stationary, adds in ((True, True), (True, False), (False, True), (False, False))
        ]  # fmt: skip
        for operation, places in (("add", _TOGETHER), ("row-sum", (2, 1031, 2049))):
            cases.append(_pass(operation, 11, 6, places, OTHER_WIDTH))
        return cases

    def rtl(self, case: StreamCase) -> TileModel:
        """The mesh of tiles."""
        return case.model

    def measure(self, cases: Sequence[StreamCase]) -> list[float]:
        """Run the cases one after the other on a tile; cycles of each.

        Raises:
            SimulationError: if the tiles cannot be built, or stop.
        """
        return on_machines(cases, self.rtl, _measured)

    def identify(
        self, cases: Sequence[StreamCase], values: Sequence[float]
    ) -> dict[str, Parameter]:
        """The constants that give every case its cycles.

        Raises:
            LawContradictedError: if none do, or several.
        """
        found = [
            timing
            for timing in (StreamTiming(*constants) for constants in product(*_CANDIDATES))
            if all(_cycles(case, timing) == v for case, v in zip(cases, values, strict=True))
        ]
        if len(found) != 1:
            raise LawContradictedError(
                f"streams of a tile's engines: {len(found)} sets of constants give all "
                f"{len(cases)} cases their cycles; expected: one"
            )
        return {
            name: Parameter.exact(value, _UNITS[name]) for name, value in asdict(found[0]).items()
        }

    def predict(self, parameters: Parameters, cases: Sequence[StreamCase]) -> list[float]:
        """Cycles of each case by the law."""
        timing = stream_timing(parameters)
        return [float(_cycles(case, timing)) for case in cases]

    def label(self, case: StreamCase) -> str:
        """The case in words."""
        job = case.job
        if isinstance(job, VectorJob):
            places = f"A at {job.a}, B at {job.b}, results at {job.out}"
            what = f"{job.operation}: {job.rows} rows of {job.words} words; {places}"
        else:
            dataflow = "output-stationary" if job.output_stationary else "weight-stationary"
            added = ", added" if job.accumulate else ""
            panels = f"{job.panels_m} x {job.panels_n} folds of {job.length} steps"
            what = f"{dataflow}: {panels}{added}; A at {job.a}, B at {job.b}, C at {job.c}"
        return what + width(case.model)


def _measured(machine: TileMachine, case: StreamCase) -> int:
    engine = Engine.MATRIX if isinstance(case.job, MatrixJob) else Engine.VECTOR
    return machine.run({0: TileImage({engine: [Descriptor(case.job)]})}).spans[0].cycles


def _cycles(case: StreamCase, timing: StreamTiming) -> int:
    tile = TileTiming(case.model.array_size, case.model.banks, timing, FREE)
    return job_cycles(case.job, tile)
