"""A kernel of a user's file: the documents' example at every level, and how faults are told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Wafertlm
from tlm.calibrated import REPOSITORY
from tlm.program.functional import TileBlocks, run_functional
from wafertlm.kernel import KernelOptions, resolve

_FILE = REPOSITORY / "docs" / "custom_kernel" / "row_totals.py"
_ON = ("--chip", "rtl-4x4", "--grid", "4x4", "--shape", "64,64", "--dtype", "int8")


def _json(wafertlm: Wafertlm, *words: object) -> dict[str, Any]:
    ran = wafertlm(*words, "--json")
    assert ran.status == 0, ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def test_the_example_runs_at_every_level(wafertlm: Wafertlm) -> None:
    found = {
        level: _json(wafertlm, "kernel", f"{_FILE}:row_totals", *_ON, "--level", level)
        for level in ("at", "lt", "perf")
    }
    cycles = {level: result["cycles"] for level, result in found.items()}
    assert cycles["at"] == cycles["lt"] == 171
    assert cycles["perf"] == pytest.approx(171, rel=0.1)
    assert found["at"]["options"]["kernel"] == "row_totals.py:row_totals"
    assert found["lt"]["error"]["level_pct"] is None  # nobody compared it


@pytest.mark.slow
@pytest.mark.rtl
def test_the_example_runs_on_tiles_in_verilog(wafertlm: Wafertlm) -> None:
    ran = _json(wafertlm, "kernel", f"{_FILE}:row_totals", *_ON, "--level", "rtl")
    assert ran["cycles"] == 171


def test_the_example_adds_rows_up() -> None:
    setup = resolve(
        KernelOptions(
            kernel=f"{_FILE}:row_totals", chip="rtl-2x4", grid="2x4", shape="6,20", dtype="int8"
        )
    )
    matrix = np.arange(120).reshape(6, 20)
    memory = TileBlocks(setup.program)
    memory["x"][:] = matrix.reshape(2, 3, 4, 5).swapaxes(1, 2)
    run_functional(setup.program, memory, seed=3)
    assert memory["total"][:, 0, :, 0].ravel().tolist() == matrix.sum(axis=1).tolist()


def test_a_result_tells_contents_apart(wafertlm: Wafertlm, tmp_path: Path) -> None:
    file, hashes, text = tmp_path / "mine.py", [], _FILE.read_text()
    for content in (text, text, text + "\n"):
        file.write_text(content)
        ran = _json(wafertlm, "kernel", f"{file}:row_totals", *_ON, "--level", "perf")
        hashes.append(ran["provenance"]["config_hash"])
    assert hashes[0] == hashes[1] != hashes[2]


def test_it_is_checked_and_compared_like_any_other(wafertlm: Wafertlm) -> None:
    assert _json(wafertlm, "check", f"{_FILE}:row_totals", *_ON)["holds"]
    ran = _json(
        wafertlm,
        *("compare", "kernel", f"{_FILE}:row_totals", *_ON, "--level", "lt"),
        *("--vary", "shape=64,64;64,128"),
    )
    assert ran["changes"][0]["metric"] == "cycles" and ran["changes"][0]["change_pct"] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("place.rows)", "place.rowz)"),
            "line 53: AttributeError: 'Place' object has no attribute",
        ),
        (("row_totals = Kernel", "other = Kernel"), "found no 'row_totals'; it has: dataclass"),
        (("row_totals = Kernel(", "row_totals = int("), "line "),
        (("row_totals = Kernel", "row_totals = 1 or Kernel"), "'row_totals' is of type int; al"),
    ],
)
def test_a_fault_names_the_file(
    wafertlm: Wafertlm, tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    file = tmp_path / "mine.py"
    assert change[0] in _FILE.read_text()
    file.write_text(_FILE.read_text().replace(*change))
    ran = wafertlm("kernel", f"{file}:row_totals", *_ON)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {file}: {message}")


@pytest.mark.parametrize("level", ["rtl", "at", "lt"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('gives=("added",)', "gives=()"), "operation 1 (Reduce '') takes token 'added', which no"),
        (
            ('arrivals=("there",)', "arrivals=()"),
            "operation 2 (Work '') takes token 'there', which no",
        ),
    ],
)
def test_a_unit_that_nobody_gives_is_told(
    wafertlm: Wafertlm, tmp_path: Path, change: tuple[str, str], message: str, level: str
) -> None:
    """At `at` and on tiles in Verilog it ended with a traceback."""
    file = tmp_path / "mine.py"
    assert change[0] in _FILE.read_text()
    file.write_text(_FILE.read_text().replace(*change))
    ran = wafertlm("kernel", f"{file}:row_totals", *_ON, "--level", level)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.splitlines()[-1].startswith(f"error: {message}")


def test_operations_that_wait_for_each_other_fail_the_check(
    wafertlm: Wafertlm, tmp_path: Path
) -> None:
    """The pass waits for what is given after the sums, and these for the pass."""
    text = _FILE.read_text()
    for old, new in (
        ('gives=("added",)', 'takes=("back",), gives=("added",)'),
        ('Work(Engine.CONTROL, roots, 1, takes=("there",))',
         'Work(Engine.CONTROL, roots, 1, takes=("there",), gives=("on",)), '
         'Work(Engine.VECTOR, roots, 1, takes=("on",)), '
         'Work(Engine.VECTOR, everywhere, 1, gives=("fro",)), '
         'Work(Engine.CONTROL, everywhere, 1, takes=("fro",), gives=("back",))'),
        ('"there": Token()', '"there": Token(), **{n: Token() for n in ("back", "on", "fro")}'),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "mine.py"
    file.write_text(text)
    ran = wafertlm("kernel", f"{file}:row_totals", *_ON, "--level", "at")
    assert (ran.status, ran.stdout) == (1, "")
    assert ran.stderr.splitlines()[-1].startswith("check failed: deadlock: operation 0 waits for ")


def test_a_file_needs_a_name(wafertlm: Wafertlm) -> None:
    ran = wafertlm("kernel", "mine.py", *_ON)
    assert ran.stderr == "error: kernel: found 'mine.py'; write FILE.py:NAME\n"
