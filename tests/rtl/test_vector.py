"""The vector unit in Verilog: every operation bit for bit, stalls, and its cycle law."""

from typing import Any

import numpy as np
import pytest

from calibration.simulator import Simulation, build
from tests.verilog_lint import lint
from tlm.calibrated import REPOSITORY

pytestmark = pytest.mark.rtl

BENCH = "tests.rtl.benches.vector_bench"
SOURCES = [
    REPOSITORY / "rtl" / "tile" / f"{name}.sv"
    for name in (
        "exp2_table", "vector_lane", "vector_reduce", "vector_sequencer", "vector_unit",
    )
]  # fmt: skip
OPERATIONS = ("add", "maximum", "scale", "quantize", "exp", "multiply", "row sum", "row maximum")
#: Words a row and rows: the smallest, one row, one word a row, and more of both.
SHAPES = ((1, 1), (9, 1), (1, 9), (2, 3), (7, 5))
STALLS: tuple[dict[str, float], ...] = (
    {"job": 0.9},
    {"a": 0.5},
    {"b": 0.5},
    {"result": 0.5},
    {"result": 0.95},
    {"job": 0.3, "a": 0.3, "b": 0.3, "result": 0.3},
    {"job": 0.7, "a": 0.7, "b": 0.7, "result": 0.7},
)


@pytest.fixture(scope="module")
def unit() -> Simulation:
    return build("vector_unit", SOURCES, {"Lanes": 2, "OperandWidth": 8})


def jobs_of(stall: dict[str, float], seed: int = 5) -> list[dict[str, Any]]:
    """Every shape of every operation, the operation changing from job to job."""
    generator = np.random.default_rng(seed)
    return [
        {
            "operation": operation,
            "words": words,
            "rows": rows,
            # Of all magnitudes, as the shifts, so that some results are saturated and some not.
            "multiplier": int(generator.integers(-(2**15), 2**15)) >> int(generator.integers(16)),
            "shift": int(generator.integers(64)) >> int(generator.integers(3)),
            "seed": int(generator.integers(2**31)),
            "stall": stall,
        }
        for words, rows in SHAPES
        for operation in OPERATIONS
    ]


def run_chains(
    unit: Simulation, chains: list[list[dict[str, Any]]], lanes: int = 2, operand_width: int = 8
) -> list[int]:
    plan = {"lanes": lanes, "operand_width": operand_width, "chains": chains}
    outcome = unit.run(BENCH, plan, seed=1)
    assert outcome["results"] == [sum(map(results_of, chain)) for chain in chains]
    return [int(cycles) for cycles in outcome["cycles"]]


def results_of(job: dict[str, Any]) -> int:
    """Words of results."""
    by_row = job["operation"].startswith("row")
    return int(job["rows"] * (1 if by_row else job["words"]))


def law_cycles(chain: list[dict[str, Any]]) -> int:
    """From the first operand to the last result, both included, if no stream is held back."""
    return sum(job["words"] * job["rows"] for job in chain) + 3


def test_a_job_takes_a_cycle_a_word_and_three(unit: Simulation) -> None:
    chains = [[job] for job in jobs_of({})]
    assert run_chains(unit, chains) == [law_cycles(chain) for chain in chains]


def test_jobs_follow_each_other_without_a_gap(unit: Simulation) -> None:
    chain = jobs_of({})
    assert run_chains(unit, [chain, chain[::-1]]) == [law_cycles(chain)] * 2


@pytest.mark.parametrize("stall", STALLS, ids=str)
def test_results_are_right_and_in_time_while_any_stream_stalls(
    unit: Simulation, stall: dict[str, float]
) -> None:
    # The bench compares data, times every word of results, and checks that untaken ones stand.
    chain = jobs_of(stall)
    assert run_chains(unit, [chain])[0] > law_cycles(chain)


def test_a_long_stream_of_random_jobs(unit: Simulation) -> None:
    jobs = [job for seed in range(8) for job in jobs_of({"result": 0.1}, seed)]
    shapes = np.random.default_rng(7).integers(1, 12, (len(jobs), 2)).tolist()
    sized = zip(jobs, shapes, strict=True)
    run_chains(unit, [[job | {"words": words, "rows": rows} for job, (words, rows) in sized]])


def test_every_exponent_of_the_table_and_every_shift(unit: Simulation) -> None:
    # 20000 exponents, mostly from -5000 to 0: each fraction of the table, again and again.
    job = jobs_of({})[OPERATIONS.index("exp")] | {"words": 10_000}
    assert run_chains(unit, [[job]]) == [law_cycles([job])]


@pytest.mark.slow
@pytest.mark.parametrize(("lanes", "operand_width"), [(1, 2), (3, 16), (8, 8)])
def test_units_of_other_parameters(lanes: int, operand_width: int) -> None:
    unit = build("vector_unit", SOURCES, {"Lanes": lanes, "OperandWidth": operand_width})
    chains = [jobs_of(stall) for stall in ({}, *STALLS)]
    cycles = run_chains(unit, chains, lanes, operand_width)
    assert cycles[0] == law_cycles(chains[0])


@pytest.mark.parametrize(
    ("lanes", "operand_width", "length_width"), [(1, 2, 8), (3, 16, 32), (64, 8, 16)]
)
def test_sources_are_lint_clean(lanes: int, operand_width: int, length_width: int) -> None:
    outcome = lint(
        "vector_unit", SOURCES, Lanes=lanes, OperandWidth=operand_width, LengthWidth=length_width
    )
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("Lanes", 65, "Lanes is 65, must be 1 to 64"),
        ("OperandWidth", 17, "OperandWidth is 17, must be 2 to 16"),
        ("LengthWidth", 7, "LengthWidth is 7, must be 8 to 32"),
    ],
)
def test_illegal_parameters_do_not_elaborate(name: str, value: int, rule: str) -> None:
    outcome = lint("vector_unit", SOURCES, **{name: value})
    assert outcome.returncode != 0
    assert f"vector_unit: {rule}" in outcome.stderr
