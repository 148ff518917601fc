"""Constants of a tile's engines are read off small cases, or the law is contradicted."""

import pytest

from calibration.experiment import LawContradictedError
from calibration.experiments.tile import TileEngines
from tlm.compute.tile_engines import MatrixEngine, TileTiming, rtl_tile_timing

TIMING = TileTiming(
    output_stationary_cycles=2,
    weight_stationary_cycles=3,
    vector_cycles=6,
    issue_cycles=3,
    credit_cycles=2,
)


def test_the_constants_of_the_verilog() -> None:
    assert rtl_tile_timing() == TIMING


def test_constants_are_found_or_contradicted() -> None:
    experiment = TileEngines()
    cases = experiment.fit_cases()
    parameters = experiment.identify([], [])
    for slower in range(3):
        values = [value + slower for value in experiment.predict(parameters, cases)]
        found = experiment.identify(cases, values)
        assert {name: found[name].value for name in found} == dict.fromkeys(found, slower)
    values[1] += 1
    with pytest.raises(LawContradictedError) as error:
        experiment.identify(cases, values)
    assert str(error.value) == (
        "output-stationary: 1 panels of A, 2 panels of B, 7 steps: measured 34 cycles, the law "
        "with output_stationary_cycles 2 gives 33"
    )


def test_a_product_is_cut_into_folds_and_jobs() -> None:
    # 10 x 6 x 9 on 4 x 4: three panels by three, six steps; a fold's results take eight cycles.
    assert MatrixEngine(4, "output-stationary", TIMING).gemm_cycles(10, 6, 9) == (
        2 + 6 + 8 + 8 * 8 + 8
    )
    # Two panels of K are two jobs, of three folds of ten rows, two words each.
    assert MatrixEngine(4, "weight-stationary", TIMING).gemm_cycles(10, 6, 9) == 2 * (
        3 + 12 + 2 * 20 + 20
    )
    assert TIMING.relay_cycles(16, hops=1) == 43
