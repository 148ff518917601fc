"""The systolic array in Verilog: products bit for bit, stalls, and its cycle law."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from calibration.experiment import LawContradictedError
from calibration.simulator import Simulation, build
from calibration.tiles.systolic import SystolicCase, SystolicExperiment
from cosim.verilog import ARRAY_SOURCES
from tests.verilog_lint import lint
from tlm.calibrated import Parameter
from tlm.compute.systolic import Dataflow, FoldTiming

BENCH = "calibration.benches.systolic_bench"
DATAFLOWS: tuple[Dataflow, ...] = ("weight-stationary", "output-stationary")


def stored(weights: FoldTiming, outputs: FoldTiming) -> dict[str, Parameter]:
    """Constants of both dataflows as a result holds them."""
    return {
        f"{dataflow}.{name}": Parameter.exact(cycles, "cycles")
        for dataflow, timing in zip(DATAFLOWS, (weights, outputs), strict=True)
        for name, cycles in asdict(timing).items()
    }


MEASURED = stored(FoldTiming(0, 0, 1), FoldTiming(0, 0, 0))
# (M, K, N): the smallest, exactly one array, one off in each size, ragged, one of a size.
SHAPES = (
    (1, 1, 1),
    (8, 8, 8),
    (9, 8, 8),
    (8, 9, 8),
    (8, 8, 9),
    (7, 15, 17),
    (30, 1, 20),
    (1, 30, 1),
)
STALLS: tuple[dict[str, float], ...] = (
    {"job": 0.9},
    {"west": 0.5},
    {"north": 0.5},
    {"result": 0.5},
    {"result": 0.95},
    {"job": 0.3, "west": 0.3, "north": 0.3, "result": 0.3},
    {"job": 0.7, "west": 0.7, "north": 0.7, "result": 0.7},
)


@pytest.fixture(scope="module")
def array() -> Simulation:
    return build("systolic_array", ARRAY_SOURCES, {"Rows": 8, "Cols": 8})


def run(array: Simulation, rows: int, cols: int, cases: list[dict[str, Any]]) -> list[int]:
    return run_chains(array, rows, cols, [[case] for case in cases])


def run_chains(
    array: Simulation, rows: int, cols: int, chains: list[list[dict[str, Any]]]
) -> list[int]:
    outcome = array.run(BENCH, {"rows": rows, "cols": cols, "chains": chains}, seed=1)
    return [int(cycles) for cycles in outcome["cycles"]]


def cases_of(stalls: tuple[dict[str, float], ...]) -> list[dict[str, Any]]:
    """Every shape with every stall, the dataflow changing from case to case."""
    return [
        {"dataflow": dataflow, "m": m, "k": k, "n": n, "seed": seed, "stall": stall}
        for seed, (m, k, n) in enumerate(SHAPES)
        for stall in stalls
        for dataflow in DATAFLOWS
    ]


def test_products_equal_numpy_while_any_stream_stalls(array: Simulation) -> None:
    # The bench compares data, checks that untaken results stand still, and that folds end in time.
    run(array, 8, 8, cases_of(({}, *STALLS)))


def test_stalled_operands_delay_a_product_and_never_hasten_it(array: Simulation) -> None:
    free, stalled = (run(array, 8, 8, cases_of((stall,))) for stall in ({}, STALLS[5]))
    assert all(slow >= fast for fast, slow in zip(free, stalled, strict=True))
    assert sum(stalled) > sum(free)


def test_a_change_of_dataflow_waits_until_the_array_is_empty(array: Simulation) -> None:
    cases = cases_of(({},))
    alone = run(array, 8, 8, cases)
    # One idle cycle after the last result of the job before.
    assert run_chains(array, 8, 8, [cases]) == [sum(alone) + len(cases) - 1]


def test_chained_products_equal_numpy_while_any_stream_stalls(array: Simulation) -> None:
    run_chains(array, 8, 8, [cases_of((stall,)) for stall in STALLS])


def test_results_are_offered_to_a_consumer_that_waits_for_them(array: Simulation) -> None:
    # One more cycle for each row of results: 1 and 8 of 1 x 1 x 1.
    cases = [case | {"ready_waits_for_valid": True} for case in cases_of(({},))]
    assert run(array, 8, 8, cases)[:2] == [24 + 1, 23 + 8]


def test_known_cycles_of_single_folds(array: Simulation) -> None:
    # 8 weights, 5 rows, 7 + 7 steps of the wave, 1 register; 5 steps, 7 + 7 steps, 8 results.
    cases = [case | {"m": 5, "k": 5, "n": 8} for case in cases_of(({},))[:2]]
    assert run(array, 8, 8, cases) == [8 + 5 + 14 + 1, 5 + 14 + 8]


def test_constants_are_identified_and_blind_predictions_are_exact() -> None:
    experiment = SystolicExperiment()
    fit, check = experiment.fit_cases(), experiment.check_cases(quick=True)
    assert not set(fit) & set(check)
    parameters = experiment.identify(fit, experiment.measure(fit))
    assert experiment.predict(parameters, check) == experiment.measure(check)
    assert parameters == MEASURED


def test_random_products_follow_the_law() -> None:
    experiment = SystolicExperiment()
    shapes = np.random.default_rng(3).integers(1, 40, (30, 3)).tolist()
    cases = [SystolicCase(8, 8, dataflow, *shape) for shape in shapes for dataflow in DATAFLOWS]
    assert experiment.measure(cases) == experiment.predict(MEASURED, cases)


@pytest.mark.slow
def test_law_holds_on_an_array_of_another_size() -> None:
    experiment = SystolicExperiment()
    shapes = [(1, 1, 1), (7, 9, 8), (2, 40, 11), (40, 2, 11), (20, 33, 24)]
    cases = [SystolicCase(3, 5, dataflow, *shape) for shape in shapes for dataflow in DATAFLOWS]
    assert experiment.measure(cases) == experiment.predict(MEASURED, cases)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (3, 5), (6, 2)])
def test_products_on_other_arrays(rows: int, cols: int) -> None:
    array = build("systolic_array", ARRAY_SOURCES, {"Rows": rows, "Cols": cols})
    run(array, rows, cols, cases_of(({}, *STALLS)))


@pytest.mark.parametrize("timing", [FoldTiming(0, 0, 1), FoldTiming(3, 0, 0), FoldTiming(0, 5, 9)])
def test_identification_recovers_an_array_with_other_constants(timing: FoldTiming) -> None:
    experiment = SystolicExperiment()
    truth = stored(timing, replace(timing, pipeline_cycles=4))
    cases = experiment.fit_cases()
    assert experiment.identify(cases, experiment.predict(truth, cases)) == truth


@pytest.mark.parametrize("index", range(12))
def test_one_cycle_off_contradicts_the_law(index: int) -> None:
    experiment = SystolicExperiment()
    cases = experiment.fit_cases()
    cycles = experiment.predict(MEASURED, cases)
    cycles[index] += 1
    with pytest.raises(LawContradictedError, match="the law with FoldTiming"):
        experiment.identify(cases, cycles)


def test_identification_needs_single_and_repeated_folds() -> None:
    case = SystolicCase(8, 8, "weight-stationary", 1, 1, 1)
    with pytest.raises(LawContradictedError, match="found 1 and 0"):
        SystolicExperiment().identify([case], [24])


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (8, 8), (3, 7)])
def test_sources_are_lint_clean(rows: int, cols: int) -> None:
    outcome = lint("systolic_array", ARRAY_SOURCES, Rows=rows, Cols=cols)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("Rows", 1, "Rows must be 2 to 256"),
        ("Cols", 1, "Cols must be 2 to 256"),
        ("OperandWidth", 17, "OperandWidth must be 2 to 16"),
        ("AccWidth", 15, "AccWidth must be 2*OperandWidth to 64"),
        ("LengthWidth", 33, "LengthWidth must be 8 to 32"),
    ],
)
def test_illegal_parameters_do_not_elaborate(name: str, value: int, rule: str) -> None:
    outcome = lint("systolic_array", ARRAY_SOURCES, **{name: value})
    assert outcome.returncode != 0
    assert f"systolic_array: {rule}" in outcome.stderr
