"""The campaigns that ``make kill`` ends: short ones, which sources that change might make long."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.hostile.kill import keep_sources

_COUNTED = """
import json
from calibration.campaign import EXPERIMENTS
from calibration.levels.chips import chip_points
from calibration.levels.tiles import COMPARED, cases

print(json.dumps({
    "checked": {each.name: len(each.check_cases(quick=False)) for each in EXPERIMENTS},
    "on tiles": sum(1 for tiles in COMPARED for _ in cases(tiles)),
    "down to at": [point.at is not None for point in chip_points(0)],
}))
"""


def test_campaigns_of_the_copies_are_short(tmp_path: Path) -> None:
    keep_sources(tmp_path / "kept")
    ran = subprocess.run(
        [sys.executable, "-c", _COUNTED],
        cwd=tmp_path / "kept",
        env={**os.environ, "PYTHONPATH": str(tmp_path / "kept")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["checked"].keys() == {"systolic", "memory-bandwidth"}
    assert sum(found["checked"].values()) < 30
    assert (found["on tiles"], found["down to at"]) == (2, [True] * 3)
