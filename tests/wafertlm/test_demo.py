"""The demo holds what it measures against what is stored."""

from typing import Any

import pytest

from calibration.campaign import EXPERIMENTS
from tlm.calibrated import load_result
from wafertlm import demo


def test_a_measurement_that_is_not_the_stored_one_ends_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[str] = []

    def repeat(name: str, **_: Any) -> Any:
        measured.append(name)
        return load_result(name), False

    monkeypatch.setattr(demo, "repeat", repeat)
    assert demo.main() == 1
    assert "check failed: tile: what the Verilog does is not what" in capsys.readouterr().err
    assert measured == ["tile"]
    assert "tile" in {experiment.name for experiment in EXPERIMENTS}
