"""Runs that cannot fit in memory are refused before they begin."""

from pathlib import Path

import pytest

from tests.tlm.programs import program_of
from tlm import room
from tlm.check import check_program
from tlm.errors import InputError


def test_what_fits_passes_and_what_does_not_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "meminfo"
    table.write_text("MemTotal:  8000000 kB\nMemAvailable:  2000000 kB\n")
    monkeypatch.setattr(room, "_MEMINFO", table)
    room.hold_room("this", 2_048_000_000)
    with pytest.raises(InputError) as refused:
        room.hold_room("that", 3_000_000_000)
    assert str(refused.value) == "that: takes 3.0 GB of memory; available: 2.0 GB"


def test_a_system_that_does_not_tell_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_MEMINFO", tmp_path / "none")
    room.hold_room("anything", 10**18)


def test_a_check_of_too_many_tiles_is_refused() -> None:
    with pytest.raises(InputError, match="check of 1000000x1000000 tiles: takes .* GB of memory"):
        check_program(program_of(10**6, 10**6, []))
