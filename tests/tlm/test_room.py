"""Runs that cannot fit in memory are refused before they begin."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.tlm.programs import TIMING, program_of, run_mesh
from tlm import room
from tlm.check import check_program
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine, Multicast, Operation, Program, Reduce, Send, Work
from tlm.program.functional import TileBlocks, run_functional


def test_what_fits_passes_and_what_does_not_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "meminfo"
    table.write_text("MemTotal:  8000000 kB\nMemAvailable:  2000000 kB\n")
    monkeypatch.setattr(room, "_MEMINFO", table)
    room.hold_room("this", 2_048_000_000)
    with pytest.raises(InputError) as refused:
        room.hold_room("that", 3_000_000_000)
    assert str(refused.value) == "that: takes 3.00 GB of memory; available: 2.05 GB"


def test_a_system_that_does_not_tell_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_MEMINFO", tmp_path / "none")
    room.hold_room("anything", 10**18)


def test_a_limit_of_ones_own_counts_instead() -> None:
    room.hold_room("this", 10, limit_bytes=10)
    with pytest.raises(InputError):
        room.hold_room("this", 11, limit_bytes=10)


@pytest.mark.parametrize(
    "run", [run_mesh, lambda program, _: run_functional(program, TileBlocks(program))]
)
def test_steps_are_counted_before_they_are_held(
    run: Callable[[Program, NocTiming], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "meminfo"
    table.write_text("MemAvailable: 20 kB\n")
    monkeypatch.setattr(room, "_MEMINFO", table)
    tiles = TileSet(range(2), range(3))
    step: list[Operation] = [  # 6 + 6 + 2 + 6 steps
        Work(Engine.VECTOR, tiles, 1),
        Send(tiles, np.arange(2), np.arange(3), 1),
        Multicast(TileSet(range(2), range(1)), "row", range(3), 1),
        Reduce(TileSet(range(1), range(3)), "column", range(2), 1),
    ]
    with pytest.raises(InputError) as refused:
        run(program_of(2, 3, step), TIMING)
    assert str(refused.value).startswith("a program of 20 steps: takes 0.00 GB of memory")


def test_a_check_of_too_many_tiles_is_refused() -> None:
    with pytest.raises(InputError, match="check of 1000000x1000000 tiles: takes .* GB of memory"):
        check_program(program_of(10**6, 10**6, []))
