"""Comparisons in parts: the same points for any number of workers, and what was stopped goes on."""

from pathlib import Path

import pytest

from calibration.levels.in_parts import forget_parts, in_parts, unheard
from tlm.comparisons import LevelPoint

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


def compared(sources: dict[str, str] = SOURCES, *, workers: int = 1) -> dict[int, list[LevelPoint]]:
    return in_parts(LevelPoint, (1, 2, 3), points, sources, workers=workers, progress=unheard)


def ran() -> list[str]:
    """Parts that ran since it was asked last."""
    lines = Path("ran").read_text().split() if Path("ran").exists() else []
    Path("ran").unlink(missing_ok=True)
    return sorted(lines)


def test_workers_change_nothing() -> None:
    alone = compared()
    forget_parts(LevelPoint)
    assert compared(workers=2) == alone
    assert ran() == ["1", "1", "2", "2", "3", "3"]


def test_what_was_stopped_goes_on() -> None:
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        in_parts(LevelPoint, (1, 2, 3), points_but_of_two, SOURCES, workers=1, progress=told.append)
    assert (ran(), told) == (["1"], ["1 of 3 parts"])
    found = compared()
    assert ran() == ["2", "3"]
    forget_parts(LevelPoint)
    assert compared() == found


def test_other_sources_and_damaged_files_are_compared_anew() -> None:
    found = compared()
    ran()
    assert compared({"a.py": "2"}) == found
    assert ran() == ["1", "2", "3"]
    for path in Path("cache/compared").iterdir():
        path.write_text(path.read_text()[:-5])
    assert compared() == found
    assert ran() == ["1", "2", "3"]
