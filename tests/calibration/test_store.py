"""Stored results: whole, readable, and refused when they no longer hold."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from calibration.experiment import run
from calibration.store import Status, save, status
from tlm.calibrated import combined_hash, forget, load_result, measured_rtl_hash, stored_names
from tlm.errors import InputError

if TYPE_CHECKING:
    from conftest import FakeExperiment


@pytest.fixture
def path(fake: "FakeExperiment", repository: Path) -> Path:
    """A stored result."""
    save(run(fake, quick=False))
    return repository / "calibration" / "results" / "fake.json"


def message(name: str = "fake") -> str:
    forget()  # a new process
    with pytest.raises(InputError) as error:
        load_result(name)
    return str(error.value)


def test_what_is_saved_is_loaded(fake: "FakeExperiment", path: Path) -> None:
    assert load_result("fake") == run(fake, quick=False)
    assert stored_names() == ["fake"]
    assert status() == [Status("fake", None)]
    assert path.read_text().startswith('{\n "name": "fake",\n')


def test_a_changed_source_makes_it_stale(fake: "FakeExperiment", path: Path) -> None:
    stale = (
        "calibration 'fake' is stale: rtl/fake.sv changed since it was measured; "
        "run 'wafertlm calibrate'"
    )
    fake.source.write_text("1")
    assert message() == stale
    assert status() == [Status("fake", stale)]
    fake.source.unlink()
    assert message() == stale
    fake.source.write_text("0")
    load_result("fake")


def test_saving_takes_effect_at_once(fake: "FakeExperiment", path: Path) -> None:
    assert load_result("fake").integer("offset") == 0
    fake.source.write_text("9")
    save(run(fake, quick=False))
    assert load_result("fake").integer("offset") == 9


def test_a_missing_result_is_named(repository: Path) -> None:
    results = repository / "calibration" / "results"
    assert message("nothing") == (
        f"no calibration 'nothing' ({results}/nothing.json); run 'wafertlm calibrate'"
    )
    assert status() == []


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"seed": 5', '"seed": "five"', "seed"),
        ('"seed": 5', '"seed": 5, "extra": 1', "extra"),
        ('"rtl": 6.0', '"rtl": null', "rtl"),
        ("{", "", "Invalid JSON"),
    ],
)
def test_a_damaged_result_is_refused(path: Path, old: str, new: str, field: str) -> None:
    path.write_text(path.read_text().replace(old, new, 1))
    found = message()
    assert found.startswith(f"{path}: ")
    assert field in found


def test_the_hash_of_all_measured_verilog(fake: "FakeExperiment", path: Path) -> None:
    before = measured_rtl_hash()
    assert before == load_result("fake").rtl_hash
    fake.source.write_text("1")
    save(run(fake, quick=False))
    assert measured_rtl_hash() != before
    assert combined_hash({"a": "1", "b": "2"}) == combined_hash({"b": "2", "a": "1"})
    assert combined_hash({"a": "1", "b": "2"}) != combined_hash({"a": "2", "b": "1"})
