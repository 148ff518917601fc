"""Constants of a tile are found again, or the law is contradicted."""

from typing import Any

import pytest

from calibration.experiment import LawContradictedError
from calibration.tiles.engines import TileEngines
from calibration.tiles.experiment import OTHER_WIDTH, TileExperiment, exact, width
from calibration.tiles.queues import TileQueues
from calibration.tiles.relay import Relay
from calibration.tiles.streams import TileStreams
from tlm.calibrated import load_result
from tlm.compute.tile_engines import EngineTiming, MatrixEngine, rtl_engine_timing
from tlm.tiles.timing import QueueTiming, StreamTiming, rtl_tile

ENGINES = EngineTiming(
    output_stationary_cycles=2,
    weight_stationary_cycles=3,
    vector_cycles=6,
    issue_cycles=3,
    credit_cycles=2,
)
RELAY = [
    f"{way}_{term}_cycles" for way in ("forward", "touch") for term in ("stage", "flit", "hop")
]
#: Experiments with constants of a tile that is not the project's.
MADE_UP: list[tuple[TileExperiment[Any], dict[str, int]]] = [
    *((TileEngines(), dict.fromkeys(EngineTiming.__slots__, slower)) for slower in range(3)),
    (TileStreams(), {"lead_cycles": 4, "places": 3, "pipeline_cycles": 5}),
    (
        TileQueues(),
        {
            "least_work_cycles": 3,
            "launch_cycles": 5,
            "outstanding": 3,
            "start_interval_cycles": 0,
            "credit_interval_cycles": 2,
            "credits_at_end": 5,
            "credit_depth": 3,
        },
    ),
    (Relay(), {name: number for number, name in enumerate(RELAY, start=2)}),
]


def test_the_tile_of_the_verilog() -> None:
    assert rtl_engine_timing() == ENGINES
    tile = rtl_tile(4, 8)
    assert tile.streams == StreamTiming(lead_cycles=3, places=4, pipeline_cycles=3)
    assert tile.queues == QueueTiming(
        launch_cycles=3, outstanding=2, starts_take_turns=True, least_work_cycles=2,
        credit_interval_cycles=1, credits_at_end=8, credit_depth=2,
    )  # fmt: skip


@pytest.mark.parametrize("experiment, constants", MADE_UP)
def test_made_up_constants_are_found(
    experiment: TileExperiment[Any], constants: dict[str, int]
) -> None:
    cases = experiment.fit_cases()
    found = experiment.identify(cases, experiment.predict(exact(constants), cases))
    assert {name: parameter.value for name, parameter in found.items()} == constants


@pytest.mark.parametrize(
    ("made_up", "spoilt", "message"),
    [
        (
            2,
            1,
            "output-stationary: 1 panels of A, 2 panels of B, 7 steps: measured 34 cycles, the law "
            "with output_stationary_cycles 2 gives 33",
        ),
        (
            3,
            0,
            "streams of a tile's engines: 0 sets of constants give all 6 cases their cycles; "
            "expected: one",
        ),
        # The first of the two that show the launch.
        (4, 2, "launch_cycles: values that give the programs their cycles: []; expected: one"),
        (5, -1, "no whole constants fit: nearest [5, 6, 7], fit point 3 measured 576, law 575"),
    ],
)
def test_a_spoilt_measurement_is_refused(made_up: int, spoilt: int, message: str) -> None:
    experiment, constants = MADE_UP[made_up]
    cases = experiment.fit_cases()
    values = experiment.predict(exact(constants), cases)
    values[spoilt] += 1
    with pytest.raises(LawContradictedError) as error:
        experiment.identify(cases, values)
    assert str(error.value) == message


def test_a_product_is_cut_into_folds_and_jobs() -> None:
    # 10 x 6 x 9 on 4 x 4: three panels by three, six steps; a fold's results take eight cycles.
    assert MatrixEngine(4, "output-stationary", ENGINES).gemm_cycles(10, 6, 9) == (
        2 + 6 + 8 + 8 * 8 + 8
    )
    # Two panels of K are two jobs, of three folds of ten rows, two words each.
    assert MatrixEngine(4, "weight-stationary", ENGINES).gemm_cycles(10, 6, 9) == 2 * (
        3 + 12 + 2 * 20 + 20
    )


@pytest.mark.parametrize("name", ["tile", "tile-streams", "tile-queues", "relay"])
def test_the_width_of_operands_changes_no_constant(name: str) -> None:
    # docs/tiles.md says so of every blind case on tiles of the other width.
    points = [p for p in load_result(name).check if p.case.endswith(width(OTHER_WIDTH))]
    assert points
    assert [point.case for point in points if point.model != point.rtl] == []


@pytest.mark.rtl
def test_cases_on_tiles_of_both_widths_keep_their_order() -> None:
    experiment = TileStreams()
    stored = {point.case: point.rtl for point in load_result("tile-streams").check}
    cases = experiment.check_cases(quick=False)
    chosen = [cases[-1], cases[0], cases[-3]]
    assert {case.model.operand_bits for case in chosen} == {8, 16}
    assert experiment.measure(chosen) == [stored[experiment.label(case)] for case in chosen]
