"""Routing in software: what it costs is the sum of its parts, and a wrong block is noticed."""

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from calibration.tiles.relay import Relay, RelayCase, Way
from cosim.errors import SimulationError
from cosim.tiles.descriptors import Transfer
from cosim.tiles.machine import TileMachine
from tlm.calibrated import load_result
from tlm.compute.tile_engines import rtl_engine_timing


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
