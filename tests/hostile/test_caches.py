"""Caches that are others', that cannot be written, that are damaged, that two versions share."""

import json
import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration import simulator
from cosim.verilated import cache, progress, toolchain
from cosim.verilated.library import Library
from tests.hostile.users import NOBODY, as_nobody
from tlm.errors import InputError
from tlm.files import hold_writable, whole_file


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that everybody can reach, as pytest's own folders are not."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        (made := Path(place) / "cache").mkdir()
        monkeypatch.setenv("WAFERTLM_CACHE", str(made))
        yield made


def make(folder: Path) -> None:
    (folder / "model").write_text("model")


def model(content: object = 1) -> Path:
    """A model of a content."""
    return cache.cached("model", content, make, shown="model", nodes=1).folder / "model"


def test_a_cache_that_cannot_be_written_gives_what_it_has(folder: Path) -> None:
    model()
    before = sorted(folder.rglob("*"))
    for path in (folder, *before):
        path.chmod(0o555 if path.is_dir() else 0o444)

    def work() -> None:
        assert model().read_text() == "model"
        with pytest.raises(InputError, match="WAFERTLM_CACHE: found .*cannot be written"):
            model(2)

    as_nobody(work)
    assert sorted(folder.rglob("*")) == before


def test_a_cache_of_another_user_is_shared(folder: Path) -> None:
    model()
    folder.chmod(0o777)
    folder.joinpath("build-times.json.lock").chmod(0o600)

    def work() -> None:
        assert model().read_text() == "model"
        assert model(2).read_text() == "model"

    as_nobody(work)
    assert model(2).owner() == pwd.getpwuid(NOBODY if os.getuid() == 0 else os.getuid()).pw_name


def test_outputs_of_another_user_are_told_before_the_work(folder: Path) -> None:
    (folder / "mine").write_text("mine")

    def work() -> None:
        with pytest.raises(InputError, match="mine: cannot be written: Permission denied"):
            hold_writable(folder / "mine")
        with (
            pytest.raises(InputError, match="mine: cannot be written: Permission denied"),
            whole_file(folder / "mine"),
        ):
            pass

    as_nobody(work)
    assert (folder / "mine").read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"a": {}}', b"[" * 100_000])
def test_a_damaged_cache_is_made_again(
    folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_read_by_verilator", lambda folder: [])
    asked: list[Path] = []

    def found() -> None:
        cache.cached("model", 1, make, shown="model", nodes=1, ask=asked.append)

    found()
    (answer,) = (folder / "asked").glob("*.json")
    (folder / "build-times.json").write_bytes(content)
    answer.write_bytes(content)
    found()
    assert len(asked) == 2
    assert progress._last(folder / "build-times.json") == {}
    assert json.loads(answer.read_text()) == {}


def test_a_build_that_is_interrupted_leaves_nothing(folder: Path) -> None:
    def ended(folder: Path) -> None:
        make(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.cached("model", 1, ended, shown="model", nodes=1)
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_two_versions_share_a_cache(folder: Path) -> None:
    assert model({"version": 1}) != model({"version": 2})
    assert model({"version": 1}).is_file() and model({"version": 2}).is_file()


@pytest.mark.parametrize(
    ("printed", "status", "kind", "message"),
    [
        ("as: cannot write: No space left on device", 1, InputError, "No space left on device"),
        ("", -9, RuntimeError, "ended with status -9"),
        ("\n%Error: a.sv:1: no\n", 1, RuntimeError, "%Error: a.sv:1: no"),
    ],
)
def test_a_tool_that_fails_leaves_no_model(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    printed: str,
    status: int,
    kind: type[Exception],
    message: str,
) -> None:
    """One that was killed and so printed nothing was taken for one that had done its work."""
    ended = subprocess.CompletedProcess([], status, printed)
    for module in ("cosim.verilated.library.run", "calibration.simulator.run_tool"):
        monkeypatch.setattr(module, lambda *given: ended)
    monkeypatch.setattr(cache, "_read_by_verilator", lambda folder: [])
    monkeypatch.setattr("cosim.verilated.library.ask_verilator", lambda *given: "")
    monkeypatch.setattr(simulator, "ask_verilator", lambda *given: "")
    driver = Path(toolchain.__file__).with_name("print.h")
    with pytest.raises(kind, match=message):
        Library("top", "top", "", driver, {}, ()).build()
    with pytest.raises(kind, match=message):
        simulator.build("top", [], {})
    assert not [*folder.rglob("whole")]
