"""Benches begin in a simulator without what only others of this project need."""

import subprocess
import sys

from tlm.calibrated import REPOSITORY

_PROGRAM = """
import os, sys
import pygpi.entry

os.environ["COCOTB_REWRITE_ASSERTION_FILES"] = ""
os.environ["PYGPI_USERS"] = "calibration.benches.begin:begin"
seen = []
pygpi.entry.load_entry = lambda: seen.append(os.environ.get("PYGPI_USERS"))

from calibration.benches.begin import begin

begin()
assert seen == [None]

import cocotb.regression
from calibration.benches import memory_bench, mesh_bench, systolic_bench

cocotb.regression.RegressionManager.setup_pytest_assertion_rewriting()
heavy = ("_pytest", "numba", "pluggy", "pydantic", "pytest", "rich")
print(*sorted(name for name in sys.modules if name.split(".")[0] in heavy))
"""


def test_a_simulator_loads_no_pytest_and_no_tables() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    # The empty ones that stand for them.
    assert ran.stdout.split() == ["_pytest", "_pytest.assertion", "_pytest.config", "pytest"]
