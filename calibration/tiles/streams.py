"""Calibration of the streams of a tile's engines: what a job costs whose streams meet at banks.

The law is in `tlm.tiles.cycle`. Its three constants are those that give every case its cycles;
they are looked for among all that a tile could have. The blind check has other sizes and dataflows,
other banks, sums that are added to what is in memory, and arrays for operands of the other width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from calibration.experiment import LawContradictedError, Parameters
from calibration.tiles.experiment import (
    APART,
    FITTED,
    OTHER_WIDTH,
    TOGETHER,
    TileExperiment,
    alone,
    exact,
    pass_job,
    product_job,
)
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tlm.calibrated import Parameter
from tlm.tiles.job_cycles import job_cycles
from tlm.tiles.jobs import MatrixJob, VectorJob
from tlm.tiles.timing import FREE, StreamTiming, TileTiming, stream_timing

_Three = tuple[int, int, int]
_QUICK_CASES = 32
_CANDIDATES = (range(2, 8), range(1, 10), range(1, 8))


@dataclass(frozen=True, slots=True)
class StreamCase:
    """A job of an engine of some tiles."""

    job: MatrixJob | VectorJob
    model: TileModel = FITTED


def _product(panels: _Three, places: _Three, *, accumulate: bool = False) -> StreamCase:
    """A product with sums at rest."""
    size = FITTED.array_size
    return StreamCase(
        product_job(size, panels, places, output_stationary=True, accumulate=accumulate)
    )


def _products(cuts: Iterable[tuple[_Three, _Three]], model: TileModel) -> list[StreamCase]:
    """Products of panels at places, sums and weights at rest, added to memory and not."""
    size = model.array_size
    return [
        StreamCase(product_job(size, *cut, output_stationary=sums, accumulate=adds), model)
        for cut in cuts
        for sums, adds in product((True, False), (True, False))
    ]


class TileStreams(TileExperiment[StreamCase]):
    """Jobs of one engine, by themselves."""

    name = "tile-streams"
    subject = "cycles of products and passes whose streams meet at the banks of a scratchpad"

    def fit_cases(self) -> list[StreamCase]:
        """Few: without a meeting, and with many."""
        return [
            _product((1, 1, 6), APART),
            _product((3, 2, 9), TOGETHER),
            _product((2, 3, 5), TOGETHER, accumulate=True),
            StreamCase(pass_job("scale", 12, 2, APART)),
            StreamCase(pass_job("add", 9, 4, TOGETHER)),
            StreamCase(pass_job("row-sum", 5, 3, TOGETHER)),
        ]

    def check_cases(self, *, quick: bool) -> list[StreamCase]:
        """Other sizes, weights at rest, other banks; ``quick`` leaves out passes and widths."""
        panels = ((1, 1, 1), (2, 2, 16), (4, 3, 7), (1, 4, 40))
        cases = _products(product(panels, (TOGETHER, (3, 1025, 2053))), FITTED)
        for operation in ("maximum", "multiply", "exp", "quantize", "row-maximum"):
            cases += [
                StreamCase(pass_job(operation, 1, 1, APART)),
                StreamCase(pass_job(operation, 16, 8, TOGETHER)),
                StreamCase(pass_job(operation, 7, 5, (2, 1031, 2049))),
            ]
        if quick:
            return cases[:_QUICK_CASES]
        cuts = (((2, 3, 11), TOGETHER), ((1, 2, 33), (3, 1025, 2053)))
        return [
            *cases,
            *_products(cuts, OTHER_WIDTH),
            StreamCase(pass_job("add", 11, 6, TOGETHER), OTHER_WIDTH),
            StreamCase(pass_job("row-sum", 11, 6, (2, 1031, 2049)), OTHER_WIDTH),
        ]

    def situation(self, case: StreamCase) -> str:
        """The engine, and its kind of work."""
        if isinstance(case.job, VectorJob):
            return f"passes: {case.job.operation}"
        rest = "sums" if case.job.output_stationary else "weights"
        return f"products, {rest} at rest" + (", added to memory" if case.job.accumulate else "")

    def cycles(self, machine: TileMachine, case: StreamCase) -> int:
        """From the job's start to its end."""
        return alone(machine, case.job)

    def law(self, parameters: Parameters, case: StreamCase) -> int:
        """The same by the law."""
        return _cycles(case, stream_timing(parameters))

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
        return exact(asdict(found[0]), places="words")

    def words(self, case: StreamCase) -> str:
        """The job in words."""
        job = case.job
        if isinstance(job, VectorJob):
            places = f"A at {job.a}, B at {job.b}, results at {job.out}"
            return f"{job.operation}: {job.rows} rows of {job.words} words; {places}"
        dataflow = "output-stationary" if job.output_stationary else "weight-stationary"
        added = ", added" if job.accumulate else ""
        panels = f"{job.panels_m} x {job.panels_n} folds of {job.length} steps"
        return f"{dataflow}: {panels}{added}; A at {job.a}, B at {job.b}, C at {job.c}"


def _cycles(case: StreamCase, timing: StreamTiming) -> int:
    tile = TileTiming(case.model.array_size, case.model.banks, timing, FREE)
    return job_cycles(case.job, tile)
