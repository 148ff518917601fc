"""Calibration of the streams of a tile's engines: what a job costs whose streams meet at banks.

The law is in `tlm.tiles.streams`. Its three constants are those that give every case its cycles;
they are looked for among all that a tile could have. The blind check has other sizes and dataflows,
other banks, and sums that are added to what is in memory.
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

from calibration.experiment import EXACT, LawContradictedError, Parameters
from calibration.tile.descriptors import Descriptor
from calibration.tile.image import TileImage
from calibration.tile.machine import TileMachine
from calibration.tile.model import TILE_SOURCES, TileModel
from tlm.calibrated import Parameter
from tlm.operations import Engine
from tlm.tiles.jobs import MatrixJob, VectorJob
from tlm.tiles.programs import matrix_cycles, vector_cycles
from tlm.tiles.streams import StreamTiming
from tlm.tiles.timing import FREE, TileTiming, stream_timing

TILE_MODEL = TileModel(2, 2)
Case = MatrixJob | VectorJob
#: Addresses of the operands and of the results: at different banks, and all at the same.
_APART, _TOGETHER = (0, 1026, 2052), (0, 1024, 2048)
_QUICK_CASES = 32
_UNITS = {"lead_cycles": "cycles", "places": "words", "pipeline_cycles": "cycles"}
_CANDIDATES = (range(2, 8), range(1, 10), range(1, 8))


def product_job(
    panels_m: int,
    panels_n: int,
    length: int,
    places: tuple[int, int, int],
    *,
    output_stationary: bool = True,
    accumulate: bool = False,
) -> MatrixJob:
    """A product whose panels lie one behind the other."""
    size = TILE_MODEL.array_size
    rows, weights = (size, length) if output_stationary else (length, size)
    c_row = panels_n * size // 2
    return MatrixJob(
        length=length, a=places[0], b=places[1], c=places[2], c_row=c_row,
        output_stationary=output_stationary, accumulate=accumulate, panels_m=panels_m,
        panels_n=panels_n, a_panel=length, b_panel=weights, c_panel=c_row * rows,
    )  # fmt: skip


def pass_job(operation: str, words: int, rows: int, places: tuple[int, int, int]) -> VectorJob:
    """A pass over rows that lie one behind the other."""
    out = 1 if operation.startswith("row-") else words
    a, b, results = places
    return VectorJob(operation, words, rows, a, words, results, out, out, b=b, b_row=words)


class TileStreams:
    """Stimuli, measurement, fit and prediction for the streams of the engines."""

    name = "tile-streams"
    subject = "cycles of products and passes whose streams meet at the banks of a scratchpad"
    sources: Sequence[Path] = TILE_SOURCES
    seed = 0
    targets = EXACT

    def fit_cases(self) -> list[Case]:
        """Few: without a meeting, and with many."""
        return [
            product_job(1, 1, 6, _APART),
            product_job(3, 2, 9, _TOGETHER),
            product_job(2, 3, 5, _TOGETHER, accumulate=True),
            pass_job("scale", 12, 2, _APART),
            pass_job("add", 9, 4, _TOGETHER),
            pass_job("row-sum", 5, 3, _TOGETHER),
        ]

    def check_cases(self, *, quick: bool) -> list[Case]:
        """Other sizes, weights at rest, other banks; ``quick`` leaves out the passes."""
        cases: list[Case] = [
            product_job(m, n, length, places, output_stationary=stationary, accumulate=adds)
            for m, n, length in ((1, 1, 1), (2, 2, 16), (4, 3, 7), (1, 4, 40))
            for places in (_TOGETHER, (3, 1025, 2053))
            for stationary, adds in ((True, True), (True, False), (False, True), (False, False))
        ]
        for operation in ("maximum", "multiply", "exp", "quantize", "row-maximum"):
            cases += [pass_job(operation, 1, 1, _APART), pass_job(operation, 16, 8, _TOGETHER)]
            cases += [pass_job(operation, 7, 5, (2, 1031, 2049))]
        return cases[:_QUICK_CASES] if quick else cases

    def rtl(self, case: Case) -> TileModel:
        """The mesh of tiles."""
        return TILE_MODEL

    def measure(self, cases: Sequence[Case]) -> list[float]:
        """Run the cases one after the other on a tile; cycles of each.

        Raises:
            SimulationError: if the tiles cannot be built, or stop.
        """
        with TileMachine(TILE_MODEL) as machine:
            runs = [machine.run({0: TileImage({_engine(job): [Descriptor(job)]})}) for job in cases]
        return [float(run.spans[0].cycles) for run in runs]

    def identify(self, cases: Sequence[Case], values: Sequence[float]) -> dict[str, Parameter]:
        """The constants that give every case its cycles.

        Raises:
            LawContradictedError: if none do, or several.
        """
        found = [
            timing
            for timing in (StreamTiming(*constants) for constants in product(*_CANDIDATES))
            if all(_cycles(job, timing) == value for job, value in zip(cases, values, strict=True))
        ]
        if len(found) != 1:
            raise LawContradictedError(
                f"streams of a tile's engines: {len(found)} sets of constants give all "
                f"{len(cases)} cases their cycles; expected: one"
            )
        return {
            name: Parameter.exact(value, _UNITS[name]) for name, value in asdict(found[0]).items()
        }

    def predict(self, parameters: Parameters, cases: Sequence[Case]) -> list[float]:
        """Cycles of each case by the law."""
        timing = stream_timing(parameters)
        return [float(_cycles(job, timing)) for job in cases]

    def label(self, case: Case) -> str:
        """The case in words."""
        if isinstance(case, VectorJob):
            places = f"A at {case.a}, B at {case.b}, results at {case.out}"
            return f"{case.operation}: {case.rows} rows of {case.words} words; {places}"
        dataflow = "output-stationary" if case.output_stationary else "weight-stationary"
        added = ", added" if case.accumulate else ""
        panels = f"{case.panels_m} x {case.panels_n} folds of {case.length} steps"
        return f"{dataflow}: {panels}{added}; A at {case.a}, B at {case.b}, C at {case.c}"


def _engine(job: Case) -> Engine:
    return Engine.MATRIX if isinstance(job, MatrixJob) else Engine.VECTOR


def _cycles(job: Case, timing: StreamTiming) -> int:
    tile = TileTiming(TILE_MODEL.array_size, TILE_MODEL.banks, timing, FREE)
    return matrix_cycles(job, tile) if isinstance(job, MatrixJob) else vector_cycles(job, tile)
