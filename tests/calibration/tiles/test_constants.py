"""Constants of a tile's streams and queues are found again, or contradicted."""

import pytest

from calibration.experiment import LawContradictedError
from calibration.tiles.queues import TileQueues
from calibration.tiles.streams import TileStreams
from tlm.calibrated import Parameter, load_result
from tlm.tiles.timing import QueueTiming, StreamTiming, rtl_tile

STREAMS = {"lead_cycles": 4, "places": 3, "pipeline_cycles": 5}
QUEUES = {
    "least_work_cycles": 3,
    "launch_cycles": 5,
    "outstanding": 3,
    "start_interval_cycles": 0,
    "credit_interval_cycles": 2,
}


def test_the_tile_of_the_verilog() -> None:
    tile = rtl_tile(4, 8)
    assert tile.streams == StreamTiming(lead_cycles=3, places=4, pipeline_cycles=3)
    assert tile.queues == QueueTiming(
        launch_cycles=3, outstanding=2, starts_take_turns=True, least_work_cycles=2,
        credit_interval_cycles=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    "experiment, constants", [(TileStreams(), STREAMS), (TileQueues(), QUEUES)]
)
def test_made_up_constants_are_found(
    experiment: TileStreams | TileQueues, constants: dict[str, int]
) -> None:
    cases = experiment.fit_cases()
    parameters = {name: Parameter.exact(value, "cycles") for name, value in constants.items()}
    values = experiment.predict(parameters, cases)  # type: ignore[arg-type]  # cases of a list
    found = experiment.identify(cases, values)  # type: ignore[arg-type]  # the same
    assert {name: parameter.value for name, parameter in found.items()} == constants


def test_a_spoilt_measurement_is_refused() -> None:
    streams, queues = TileStreams(), TileQueues()
    cases = streams.fit_cases()
    values = streams.predict(
        {name: Parameter.exact(value, "") for name, value in STREAMS.items()}, cases
    )
    with pytest.raises(LawContradictedError) as error:
        streams.identify(cases, [values[0] + 1, *values[1:]])
    assert str(error.value) == (
        "streams of a tile's engines: 0 sets of constants give all 6 cases their cycles; "
        "expected: one"
    )
    programs = queues.fit_cases()
    values = queues.predict(
        {name: Parameter.exact(value, "") for name, value in QUEUES.items()}, programs
    )
    values[2] += 1  # the first of the two that show the launch
    with pytest.raises(LawContradictedError) as error:
        queues.identify(programs, values)
    assert str(error.value) == (
        "launch_cycles: values that give the programs their cycles: []; expected: one"
    )


@pytest.mark.rtl
def test_cases_on_tiles_of_both_widths_keep_their_order() -> None:
    experiment = TileStreams()
    stored = {point.case: point.rtl for point in load_result("tile-streams").check}
    cases = experiment.check_cases(quick=False)
    chosen = [cases[-1], cases[0], cases[-3]]
    assert {case.model.operand_bits for case in chosen} == {8, 16}
    assert experiment.measure(chosen) == [stored[experiment.label(case)] for case in chosen]
