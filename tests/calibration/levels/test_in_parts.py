"""Comparisons in parts: the same points for any number of workers, and what was stopped goes on."""

from pathlib import Path
from typing import Any

import pytest

from calibration.levels.in_parts import Progress, kept_or_made, unheard
from tlm.comparisons import LevelPoint
from tlm.errors import InputError

SOURCES = {"a.py": "1"}


def points(part: int) -> list[LevelPoint]:
    """Two points of a part, which leaves its number where it ran."""
    with Path("ran").open("a") as ran:
        ran.write(f"{part}\n")
    return [
        LevelPoint(kernel=f"k{part}", case="c", dtype="int8", balance=0.1, at=2, lt=2, perf=perf)
        for perf in (2, 3)
    ]


def points_but_of_two(part: int) -> list[LevelPoint]:
    if part == 2:
        raise KeyboardInterrupt
    return points(part)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAFERTLM_CACHE", str(tmp_path / "cache"))


def compared(
    sources: dict[str, str] = SOURCES,
    *,
    workers: int = 1,
    stopped: bool = False,
    progress: Progress = unheard,
) -> list[LevelPoint]:
    """All points, as they are stored too; or as many as are made before it is stopped."""
    stored: list[LevelPoint] = []
    compare = points_but_of_two if stopped else points
    found = kept_or_made(
        LevelPoint, (1, 2, 3), compare, sources, lambda: stored, stored.extend, int,
        force=True, workers=workers, progress=progress,
    )  # fmt: skip
    assert found == stored
    return found


def ran() -> list[str]:
    """Parts that ran since it was asked last."""
    lines = Path("ran").read_text().split() if Path("ran").exists() else []
    Path("ran").unlink(missing_ok=True)
    return sorted(lines)


def stop(progress: Progress = unheard) -> None:
    """The dearest part is made, and no other."""
    with pytest.raises(KeyboardInterrupt):
        compared(stopped=True, progress=progress)
    assert ran() == ["3"]


def test_workers_change_nothing() -> None:
    alone = compared()
    assert [point.kernel for point in alone] == ["k1", "k1", "k2", "k2", "k3", "k3"]
    assert compared(workers=2) == alone
    assert ran() == ["1", "1", "2", "2", "3", "3"]


def test_what_was_stopped_goes_on() -> None:
    told: list[str] = []
    stop(told.append)
    assert told == ["1 of 3 parts"]
    found = compared()
    assert ran() == ["1", "2"]
    # What was kept has gone.
    assert compared() == found
    assert ran() == ["1", "2", "3"]


def test_other_sources_and_damaged_files_are_compared_anew() -> None:
    stop()
    found = compared({"a.py": "2"})
    assert ran() == ["1", "2", "3"]
    stop()
    (kept,) = Path("cache/compared").iterdir()
    kept.write_text(kept.read_text()[:-5])
    assert compared() == found
    assert ran() == ["1", "2", "3"]


def test_what_is_stored_is_taken_unless_it_does_not_hold() -> None:
    def load() -> list[LevelPoint]:
        raise InputError("stale")

    how: Any = {"force": False, "workers": 1, "progress": unheard}
    of = LevelPoint, (1, 2), points, SOURCES
    assert kept_or_made(*of, lambda: [], lambda _: None, **how) == []
    assert ran() == []
    assert len(kept_or_made(*of, load, lambda _: None, **how)) == 4
