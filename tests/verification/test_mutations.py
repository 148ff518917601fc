"""The list of faults and the record of what caught them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tlm.calibrated import REPOSITORY
from tlm.errors import InputError
from verification.mutations import (
    FAULTS,
    Fault,
    content_of,
    load,
    made_of,
    read_faults,
    run,
    to_be_run,
)

ONE = """
[[fault]]
name = "nothing"
file = "rtl/noc/rr_arbiter.sv"
old = "{old}"
new = ""
tests = []
"""


def test_there_are_enough_faults_and_each_has_its_place() -> None:
    assert len(read_faults()) >= 24


def test_every_fault_was_caught_in_the_verilog_at_hand() -> None:
    record = load()
    faults = read_faults()
    assert [fault.name for fault in to_be_run(faults, record)] == [], "run 'make mutations'"
    assert [caught.name for caught in record.faults] == [fault.name for fault in faults]
    assert [caught.name for caught in record.faults if caught.caught_by is None] == []


def test_a_fault_is_run_again_when_it_or_its_verilog_changed() -> None:
    fault, *others = read_faults()
    changed = fault.model_copy(update={"new": f"{fault.new} "})
    assert to_be_run([changed, *others], load()) == [changed]
    elsewhere = fault.model_copy(update={"file": "rtl/tile/pe.sv"})
    assert content_of(elsewhere) != content_of(fault)


def test_a_fault_rests_on_its_module_and_on_what_that_is_made_of() -> None:
    names = {path.stem for path in made_of(REPOSITORY / "rtl" / "tile" / "sequencer.sv")}
    assert names == {"sequencer", "engine_queue", "fifo", "rr_arbiter", "noc_pkg"}


@pytest.mark.parametrize(("old", "count"), [("no such text", 0), ("assign", 5)])
def test_a_text_that_is_not_there_once_is_refused(tmp_path: Path, old: str, count: int) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(ONE.format(old=old))
    with pytest.raises(InputError) as error:
        read_faults(path)
    assert str(error.value) == (
        f"{path}: fault 'nothing': its text occurs {count} times in rtl/noc/rr_arbiter.sv, "
        "must occur once"
    )


def test_two_faults_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(2 * ONE.format(old="preferred_q <= '1"))
    with pytest.raises(InputError, match="2 faults named 'nothing'"):
        read_faults(path)


HARMLESS = Fault(
    name="harmless",
    file="rtl/noc/rr_arbiter.sv",
    old="// Bits at and above the pointer",
    new="// Bits above and at the pointer",
    tests=("tests/verification/test_mutations.py::test_two_faults_of_one_name_are_refused",),
)


def test_a_fault_without_effect_is_told_apart_from_one_that_a_test_notices() -> None:
    noticed = HARMLESS.model_copy(
        update={
            "name": "noticed",
            "old": "if (!rst_ni) preferred_q <= '1;",
            "new": "if (!rst_ni) preferred_q <= '0;",
            "tests": ("tests/verification/test_mutations.py::test_each_has_its_place_still",),
        }
    )
    outcomes = [outcome.caught for outcome in run([HARMLESS, noticed], workers=1)]
    assert outcomes[0].caught_by is None
    assert outcomes[1].caught_by == noticed.tests[0]


def test_each_has_its_place_still() -> None:
    """Fails in a copy in which a line of the arbiter has been changed."""
    text = FAULTS.parents[1].joinpath("rtl/noc/rr_arbiter.sv").read_text()
    assert "preferred_q <= '1;" in text


def test_the_command_names_an_unknown_fault() -> None:
    command = [sys.executable, "-m", "verification.mutations", "--only", "nonsense", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no fault named nonsense" in done.stderr
    with pytest.raises(json.JSONDecodeError):
        json.loads(done.stdout)


def test_without_faults_nothing_is_run() -> None:
    assert list(run([])) == []
