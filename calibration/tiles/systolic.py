"""Calibration of the systolic array: three constants a dataflow, identified exactly.

The law and its constants are in `tlm.compute.systolic`. The fit sees few shapes; the check sees
others. That the geometry in the law holds on another array is left to a test
(tests/calibration/tiles/test_systolic.py), which spares every campaign a build.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from calibration.experiment import EXACT, LawContradictedError, Parameters
from calibration.simulator import Simulation, build
from cosim.verilog import ARRAY_SOURCES
from tlm.calibrated import Parameter
from tlm.compute.calibration import fold_timing
from tlm.compute.systolic import Dataflow, FoldTiming, Systolic

_DATAFLOWS: tuple[Dataflow, ...] = ("weight-stationary", "output-stationary")
# Shapes (M, K, N). Either dataflow finds among them folds alone, folds too short to hide weights or
# results, and long folds, each of two lengths: one to read a constant off, one to contradict it.
_FIT_SHAPES = ((5, 5, 8), (24, 24, 8), (1, 1, 40), (3, 40, 3), (40, 3, 3), (20, 33, 24))
_CHECK_SHAPES = (
    (1, 1, 1),
    (8, 8, 8),
    (7, 9, 8),
    (9, 7, 17),
    (2, 100, 11),
    (100, 2, 11),
    (33, 31, 29),
    (1, 64, 64),
    (64, 1, 64),
    (64, 64, 64),
)
_QUICK_SHAPES = 6


@dataclass(frozen=True, slots=True)
class RtlArray:
    """A Verilated array of ``rows`` x ``cols``."""

    rows: int
    cols: int
    waves: bool = False

    def build(self) -> Simulation:
        """The built model, from the cache if it is there."""
        parameters = {"Rows": self.rows, "Cols": self.cols}
        return build("systolic_array", ARRAY_SOURCES, parameters, waves=self.waves)


_ARRAY = RtlArray(8, 8)


@dataclass(frozen=True, slots=True)
class SystolicCase:
    """C[M,N] = A[M,K] B[K,N] on an array of ``rows`` x ``cols``."""

    rows: int
    cols: int
    dataflow: Dataflow
    m: int
    k: int
    n: int


class SystolicExperiment:
    """Stimuli, measurement, fit and prediction for the systolic array."""

    name = "systolic"
    subject = "cycles of a matrix product on the systolic array"
    sources: Sequence[Path] = ARRAY_SOURCES
    seed = 0
    targets = EXACT
    untried = ("arrays of other sizes: tiles of 4x4 are in experiment tile",)

    def fit_cases(self) -> list[SystolicCase]:
        """Cases from which the constants are identified."""
        return list(_cases(_FIT_SHAPES))

    def check_cases(self, *, quick: bool) -> list[SystolicCase]:
        """Shapes the fit has not seen; ``quick`` leaves out the largest."""
        return list(_cases(_CHECK_SHAPES[:_QUICK_SHAPES] if quick else _CHECK_SHAPES))

    def rtl(self, case: SystolicCase) -> RtlArray:
        """The array."""
        return RtlArray(case.rows, case.cols)

    def measure(self, cases: Sequence[SystolicCase]) -> list[float]:
        """Run the cases on the RTL, data checked, and return their cycles in order.

        Raises:
            SimulationError: if the array cannot be built, or a product is wrong.
        """
        cycles: dict[SystolicCase, int] = {}
        for array in dict.fromkeys(self.rtl(case) for case in cases):
            chosen = [case for case in cases if self.rtl(case) == array]
            cycles |= zip(chosen, _run(array, chosen, self.seed), strict=True)
        return [float(cycles[case]) for case in cases]

    def identify(
        self, cases: Sequence[SystolicCase], values: Sequence[float]
    ) -> dict[str, Parameter]:
        """Find the constants that give every case its cycles exactly.

        Raises:
            LawContradictedError: if no constants do, naming the dataflow and the case.
        """
        found: dict[str, Parameter] = {}
        for dataflow in _DATAFLOWS:
            chosen = [
                (case, round(value))
                for case, value in zip(cases, values, strict=True)
                if case.dataflow == dataflow
            ]
            timing = _identify_one(dataflow, chosen)
            for field, cycles in asdict(timing).items():
                found[f"{dataflow}.{field}"] = Parameter.exact(cycles, "cycles")
        return found

    def predict(self, parameters: Parameters, cases: Sequence[SystolicCase]) -> list[float]:
        """Cycles of each case by the law."""
        return [float(_law(case, fold_timing(parameters, case.dataflow))) for case in cases]

    def situation(self, case: SystolicCase) -> str:
        """The dataflow."""
        return f"{case.dataflow} products"

    def label(self, case: SystolicCase) -> str:
        """The case in words."""
        return f"{case.rows}x{case.cols} {case.dataflow}: M={case.m} K={case.k} N={case.n}"


def _cases(shapes: Sequence[tuple[int, int, int]]) -> Iterator[SystolicCase]:
    for (m, k, n), dataflow in product(shapes, _DATAFLOWS):
        yield SystolicCase(_ARRAY.rows, _ARRAY.cols, dataflow, m, k, n)


def _run(array: RtlArray, cases: Sequence[SystolicCase], seed: int) -> list[int]:
    chains = [
        [
            {"dataflow": case.dataflow, "m": case.m, "k": case.k, "n": case.n}
            | {"seed": seed + index, "stall": {}}
        ]
        for index, case in enumerate(cases)
    ]
    plan = {"rows": array.rows, "cols": array.cols, "chains": chains}
    outcome = array.build().run("calibration.benches.systolic_bench", plan, seed=seed)
    return [int(count) for count in outcome["cycles"]]


def _model(case: SystolicCase, timing: FoldTiming) -> Systolic:
    return Systolic(case.rows, case.cols, case.dataflow, timing)


def _law(case: SystolicCase, timing: FoldTiming) -> int:
    return _model(case, timing).gemm_cycles(case.m, case.k, case.n)


def _identify_one(dataflow: Dataflow, pairs: Sequence[tuple[SystolicCase, int]]) -> FoldTiming:
    """Read each constant off the case that shows it alone, then hold all cases against them."""
    single = [pair for pair in pairs if _folds(pair[0]) == 1]
    many = sorted((pair for pair in pairs if _folds(pair[0]) > 1), key=lambda pair: _steps(pair[0]))
    if not single or len(many) < 2:
        raise LawContradictedError(
            f"{dataflow}: needs a case of one fold and two of several folds, "
            f"found {len(single)} and {len(many)}"
        )
    pipeline = single[0][1] - _steps(single[0][0]) - _model(single[0][0], _ZERO).wave_cycles
    (short, short_cycles), (long, long_cycles) = many[0], many[-1]
    timing = FoldTiming(
        fold_gap_cycles=_interval(long, long_cycles, pipeline) - _steps(long),
        turnaround_cycles=_interval(short, short_cycles, pipeline) - short.rows,
        pipeline_cycles=pipeline,
    )
    for case, count in pairs:
        expected = _law(case, timing)
        if expected != count:
            raise LawContradictedError(
                f"{case}: measured {count} cycles, the law with {timing} gives {expected}"
            )
    return timing


_ZERO = FoldTiming(fold_gap_cycles=0, turnaround_cycles=0, pipeline_cycles=0)


def _folds(case: SystolicCase) -> int:
    return _model(case, _ZERO).folds(case.m, case.k, case.n)


def _steps(case: SystolicCase) -> int:
    return _model(case, _ZERO).fold_steps(case.m, case.k)


def _interval(case: SystolicCase, cycles: int, pipeline: int) -> int:
    """Cycles from fold to fold; not being whole, it shows up when the cases are held against it."""
    last_fold = _steps(case) + _model(case, _ZERO).wave_cycles + pipeline
    return (cycles - last_fold) // (_folds(case) - 1)
