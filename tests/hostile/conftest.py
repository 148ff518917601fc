"""Where commands are attacked."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

from cosim.errors import SimulationError
from tests.hostile.rules import Judge
from wafertlm.output import CheckFailedError


@pytest.fixture
def judge(wafertlm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Where nothing is built and no campaign begins: these have tests of their own."""

    def no_build(*given: object) -> NoReturn:
        raise SimulationError("nothing is built here")

    def no_campaign(*given: object, **named: object) -> NoReturn:
        raise CheckFailedError("no campaign runs here")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cosim.verilated.cache._build", no_build)
    monkeypatch.setattr("cosim.verilated.cache._read", no_build)
    monkeypatch.setattr("cosim.synthesis.yosys.run_yosys", no_build)
    monkeypatch.setattr("wafertlm.api.study_run.study_result", no_campaign)
    for name in ("campaign.calibrate", "compare_levels", "compare_tiles", "compare_chips"):
        monkeypatch.setattr(f"wafertlm.api.calibration_run.{name}", no_campaign)
    monkeypatch.setattr("wafertlm.explore.explored.workers_at", no_campaign)
    return Judge(wafertlm, tmp_path)
