"""Constants of a tile's engines are read off small cases, or the law is contradicted."""

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from calibration.experiment import LawContradictedError
from calibration.tiles.engines import TileEngines
from calibration.tiles.experiment import OTHER_WIDTH, width
from calibration.tiles.relay import Relay, RelayCase, Way
from cosim.errors import SimulationError
from cosim.tiles.descriptors import Transfer
from cosim.tiles.machine import TileMachine
from tlm.calibrated import Parameter, load_result
from tlm.compute.tile_engines import EngineTiming, MatrixEngine, rtl_engine_timing

TIMING = EngineTiming(
    output_stationary_cycles=2,
    weight_stationary_cycles=3,
    vector_cycles=6,
    issue_cycles=3,
    credit_cycles=2,
)


def test_the_constants_of_the_verilog() -> None:
    assert rtl_engine_timing() == TIMING


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


def test_constants_of_a_relay_are_found_or_contradicted() -> None:
    relay = Relay()
    cases = relay.fit_cases()
    names = relay.identify(cases, [0.0] * len(cases))
    made_up = {name: Parameter.exact(number, "") for number, name in enumerate(names, start=2)}
    values = relay.predict(made_up, cases)
    found = relay.identify(cases, values)
    assert {name: found[name].value for name in found} == {
        name: made_up[name].value for name in made_up
    }
    values[-1] += 1
    with pytest.raises(LawContradictedError, match="no whole constants fit"):
        relay.identify(cases, values)


def test_a_measured_relay_is_the_sum_of_its_parts() -> None:
    measured, timing = load_result("relay"), rtl_engine_timing()
    stage, flit, hop = (
        measured.integer(f"touch_{term}_cycles") for term in ("stage", "flit", "hop")
    )
    for flits, hops in ((1, 1), (16, 2)):
        transfer = timing.issue_cycles + hops + 1 + flits
        assert stage + flit * flits + hop * hops == transfer + flits + timing.vector_cycles
    # Without the pass of the vector engine.
    assert measured.integer("forward_stage_cycles") == stage - timing.vector_cycles
    assert measured.integer("forward_flit_cycles") == flit - 1


@pytest.mark.parametrize("name", ["tile", "tile-streams", "tile-queues", "relay"])
def test_the_width_of_operands_changes_no_constant(name: str) -> None:
    # docs/tiles.md says so of every blind case on tiles of the other width.
    points = [p for p in load_result(name).check if p.case.endswith(width(OTHER_WIDTH))]
    assert points
    assert [point.case for point in points if point.model != point.rtl] == []


@pytest.mark.rtl
@pytest.mark.parametrize("astray", range(6))
@pytest.mark.parametrize(("way", "hops"), [("forward", 0), ("forward", 1), ("touch", 1)])
def test_a_transfer_of_a_relay_that_writes_elsewhere_is_noticed(
    monkeypatch: pytest.MonkeyPatch, way: Way, hops: int, astray: int
) -> None:
    numbers = count()

    def made(*args: Any, **fields: Any) -> Transfer:
        transfer = Transfer(*args, **fields)
        elsewhere = transfer.target + 512 * (next(numbers) == astray)
        return replace(transfer, target=elsewhere)

    monkeypatch.setattr("calibration.tiles.relay.Transfer", made)
    # With five stages the chain comes back to tiles that it has been at.
    with pytest.raises(SimulationError, match="another block came to the end"):
        Relay().measure([RelayCase(way, 5, 4, hops)])


@pytest.mark.rtl
def test_a_relay_with_another_block_at_its_end_is_no_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = TileMachine.read
    monkeypatch.setattr(TileMachine, "read", lambda *args: read(*args) ^ np.uint64(1))
    with pytest.raises(SimulationError, match="another block came to the end"):
        Relay().measure([RelayCase("touch", 2, 4, 1)])
