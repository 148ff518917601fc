"""What is checked, what is fatal, and that each finding has its remedy."""

import json
import shutil
from typing import Any

import pytest

from tlm.errors import InputError
from wafertlm.commands import doctor


def _check(name: str) -> doctor.Check:
    return doctor.CHECKS[name]()


def test_a_machine_that_runs_these_tests_is_well(wafertlm: Any) -> None:
    ran = wafertlm("doctor", "--json")
    assert (ran.status, ran.stderr) == (0, "")
    result = json.loads(ran.stdout)
    assert result["ok"] is True
    checks = {check["name"]: check for check in result["checks"]}
    assert list(checks) == list(doctor.CHECKS)
    assert "5.48" in checks["verilator"]["found"]
    assert all(check["remedy"] == "" for check in checks.values() if check["ok"])
    assert {name for name, check in checks.items() if not check["needed"]} == {"disk", "memory"}


def test_a_missing_program_is_status_1_with_its_package(
    wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = shutil.which
    monkeypatch.setattr("shutil.which", lambda name: None if name == "perl" else which(name))
    ran = wafertlm("doctor")
    assert ran.status == 1
    assert ran.stderr == "check failed: missing: perl\n"
    assert "install the system package 'perl'" in ran.stdout
    assert json.loads(wafertlm("doctor", "--json").stdout)["ok"] is False


def test_a_missing_package_is_named() -> None:
    check = doctor.check_package("no-such-package")
    assert (check.ok, check.found) == (False, "not installed")
    assert check.remedy == "reinstall: `make install` (or `pip install no-such-package`)"


def test_an_old_interpreter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_MIN_PYTHON", (9, 1))
    assert _check("python").remedy == "use Python 9.1 or newer"


def test_a_stale_or_missing_calibration_is_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = "calibration 'unicast' is stale: rtl/noc/router.sv changed"
    monkeypatch.setattr("calibration.store.status", lambda: {"unicast": stale})
    check = _check("calibration")
    assert not check.ok
    assert check.needed
    assert stale in check.found
    assert "'systolic' is missing" in check.found
    assert check.remedy == "run `wafertlm calibrate`"


@pytest.mark.parametrize("kind", ["chips", "levels", "tiles"])
def test_each_comparison_that_is_stale_is_told(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of kernels on shipped chips rest on that of chips, of which nothing was said."""

    def stale() -> None:
        raise InputError(f"comparison of {kind} is stale")

    monkeypatch.setattr(f"tlm.comparisons.load_{kind}", stale)
    check = _check("calibration")
    assert (check.ok, check.found) == (False, f"comparison of {kind} is stale")


def test_little_room_is_told_but_no_failure(wafertlm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_MIN_DISK_GIB", 1e9)
    ran = wafertlm("doctor")
    assert ran.status == 0
    assert "built models may need 1000000000 GiB" in ran.stdout
