"""Stored results: whole, readable, and refused when they no longer hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from calibration.experiment import run
from calibration.store import is_stored, level_sources, save, save_levels, status
from tlm.calibrated import (
    REPOSITORY,
    combined_hash,
    forget,
    load_result,
    measured_rtl_hash,
    stale_allowed,
    stored_names,
)
from tlm.comparisons import LevelPoint, load_levels, load_tiles
from tlm.errors import InputError
from tlm.sealed import sealed

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
    assert status() == {"fake": None}
    assert path.read_text().startswith('{\n "name": "fake",\n')


def test_figures_that_were_changed_by_hand_are_not_taken(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace('"seed": ', '"seed": 1'))
    said = message()
    assert said.startswith(f"{path}: digest: found '")
    assert said.endswith("it is not what was stored; run 'wafertlm calibrate'")
    path.write_text(text.replace('"digest"', '"gone"'))
    assert "gone: Extra inputs are not permitted" in message()


def test_only_the_same_bytes_are_what_is_stored(fake: "FakeExperiment", path: Path) -> None:
    result = run(fake, quick=False)
    assert is_stored(result)
    assert not is_stored(result.model_copy(update={"seed": result.seed + 1}))
    path.write_text(path.read_text() + "\n")
    assert not is_stored(result)
    path.write_bytes(b"\xff")  # no text at all
    assert not is_stored(result)
    path.unlink()
    assert not is_stored(result)


def test_a_changed_source_makes_it_stale(fake: "FakeExperiment", path: Path) -> None:
    stale = (
        "calibration 'fake' is stale: rtl/fake.sv changed since it was measured; "
        "run 'wafertlm calibrate'"
    )
    fake.source.write_text("1")
    assert message() == stale
    assert status() == {"fake": stale}
    fake.source.unlink()
    assert message() == stale
    fake.source.write_text("0")
    load_result("fake")


def test_a_source_that_only_moved_is_no_other(
    fake: "FakeExperiment", path: Path, repository: Path
) -> None:
    moved = repository / "cosim" / "deeper" / fake.source.name
    moved.parent.mkdir(parents=True)
    fake.source.rename(moved)
    forget()  # a new process
    load_result("fake")
    moved.write_text("1")
    assert "is stale: rtl/fake.sv changed" in message()


def test_a_stale_result_is_read_where_that_is_allowed_and_nowhere_else(
    fake: "FakeExperiment", path: Path
) -> None:
    fake.source.write_text("1")
    forget()  # a new process
    with stale_allowed(True):
        assert load_result("fake").integer("offset") == 0
    with pytest.raises(InputError, match="is stale"):
        load_result("fake")
    with stale_allowed(False), pytest.raises(InputError, match="is stale"):
        load_result("fake")
    with stale_allowed():
        with stale_allowed():
            pass
        assert load_result("fake").integer("offset") == 0


@pytest.mark.parametrize(
    "changed",
    [
        "calibration/results/unicast.json",
        "tlm/engines/lt/run.py",
        "tlm/chips/a.toml",
        "tlm/program/program.py",
    ],
)
def test_a_comparison_of_levels_is_stale_with_what_it_rests_on(
    repository: Path, changed: str
) -> None:
    file = repository / changed
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("0")
    points = [LevelPoint(kernel="k", case="c", dtype="int8", balance=1.0, at=4, lt=5, perf=6)]
    save_levels(points)
    assert load_levels().points == points
    file.write_text("1")
    forget()  # a new process
    with pytest.raises(InputError) as error:
        load_levels()
    assert str(error.value) == (
        f"comparison of levels is stale: {changed} changed since it was made; "
        "run 'wafertlm calibrate'"
    )
    with stale_allowed():
        assert load_levels().points == points
    file.write_text("0")
    assert load_levels().points == points


def test_a_comparison_of_levels_rests_on_all_models_that_it_runs() -> None:
    names = set(level_sources())
    assert all((REPOSITORY / name).is_file() for name in names)
    assert {
        "calibration/results/tile-streams.json", "calibration/levels/models.py",
        "tlm/interconnect/handshake/core.py", "tlm/compute/systolic.py", "tlm/chips/rtl.toml",
        "workloads/kernels/gemm/closed_form.py", "tlm/engines/at/run.py",
    } <= names  # fmt: skip


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
    assert status() == {}


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"seed": 5', '"seed": "five"', "seed: Input should be a valid integer"),
        ('"seed": 5', '"seed": 5, "extra": 1', "extra: Extra inputs are not permitted"),
        ('"rtl": 6.0', '"rtl": null', "check.0.rtl: Input should be a valid number"),
        ("{", "", "Invalid JSON"),
    ],
)
def test_a_damaged_result_is_refused(path: Path, old: str, new: str, fault: str) -> None:
    path.write_text(path.read_text().replace(old, new, 1))
    assert message().startswith(f"{path}: {fault}")


@pytest.mark.parametrize(
    ("file", "load", "field"),
    [
        ("levels.json", load_levels, "dtype"),
        ("tiles.json", load_tiles, "dtype"),
        ("tiles.json", load_tiles, "memory"),
    ],
)
def test_a_comparison_of_before_a_field_is_not_read_as_a_newer_one(
    repository: Path, file: str, load: Callable[[], object], field: str
) -> None:
    stored = json.loads((REPOSITORY / "calibration" / file).read_text())
    del stored["points"][1][field]
    path = repository / "calibration" / file
    path.write_text(json.dumps(stored))
    forget()  # a new process
    with stale_allowed(), pytest.raises(InputError) as error:
        load()
    expected = f"{path}: points.1.{field}: Field required; run 'wafertlm calibrate'"
    assert str(error.value) == expected


def test_the_hash_of_all_measured_verilog(fake: "FakeExperiment", path: Path) -> None:
    before = measured_rtl_hash()
    assert before == load_result("fake").rtl_hash
    fake.source.write_text("1")
    save(run(fake, quick=False))
    assert measured_rtl_hash() != before
    assert combined_hash({"a": "1", "b": "2"}) == combined_hash({"b": "2", "a": "1"})
    assert combined_hash({"a": "1", "b": "2"}) != combined_hash({"a": "2", "b": "1"})


@pytest.mark.parametrize("balance", [0.0, -1.0])
def test_a_comparison_without_balance_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, balance: float
) -> None:
    levels = load_levels()
    other = levels.points[0].model_copy(update={"balance": balance})
    file = tmp_path / "levels.json"
    file.write_text(sealed(levels.model_copy(update={"points": [other]})))
    monkeypatch.setattr("tlm.comparisons.LEVELS_FILE", file)
    forget()  # a new process
    with pytest.raises(InputError, match="points.0.balance: Input should be greater than 0"):
        load_levels()
    forget()


def test_a_kernel_refuses_a_stale_comparison_unless_that_is_allowed(
    wafertlm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = load_levels()
    old = levels.model_copy(update={"sources": levels.sources | {"tlm/engines/lt/run.py": "0"}})
    file = tmp_path / "levels.json"
    file.write_text(sealed(old))
    monkeypatch.setattr("tlm.comparisons.LEVELS_FILE", file)
    forget()  # a new process
    arguments = ("kernel", "mesh-gemm", "--chip", "rtl-4x4", "--grid", "4x4")
    arguments += ("--shape", "64,64,64", "--dtype", "int8", "--level", "perf", "--compute", "at")
    stale = (
        "comparison of levels is stale: tlm/engines/lt/run.py changed since it was made; "
        "run 'wafertlm calibrate'"
    )
    ran = wafertlm(*arguments, "--json")
    assert (ran.status, ran.stdout, ran.stderr) == (2, "", f"error: {stale}\n")
    checks = json.loads(wafertlm("doctor", "--json").stdout)["checks"]
    assert [check["found"] for check in checks if not check["ok"]] == [stale]
    allowed = json.loads(wafertlm(*arguments, "--json", "--allow-stale").stdout)
    assert allowed["options"]["allow_stale"] is True
    forget()
    monkeypatch.undo()
    fresh = json.loads(wafertlm(*arguments, "--json").stdout)
    assert fresh["options"]["allow_stale"] is False
    assert fresh["error"] == allowed["error"]
