"""Result objects and stored files."""

import json
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from tlm.errors import InputError
from wafertlm.output import (
    complete,
    config_hash,
    cost,
    emit,
    log,
    plain,
    progress,
    store,
    warn,
)

_TIMES = {"cpu_s": 1.0, "wall_s": 2.0, "compile_s": 0.5}


def _result(**figures: Any) -> dict[str, Any]:
    return complete("kernel", {"shape": "1,2,3", "out": Path("a")}, figures, _TIMES, seed=7)


def test_an_object_says_what_was_asked_what_came_out_and_from_where() -> None:
    assert _result(cycles=np.int64(5)) == {
        "command": "kernel",
        "options": {"shape": "1,2,3", "out": "a"},
        "cycles": 5,
        "provenance": {
            "version": "0.1.0",
            "config_hash": config_hash(
                {"options": {"out": "a", "shape": "1,2,3"}, "command": "kernel"}
            ),
            "rtl_hash": None,
            "calibration": None,
            "seed": 7,
        },
        **_TIMES,
    }


class _Level(Enum):
    AT = "at"


def test_values_take_the_types_of_json() -> None:
    given_value = {
        "level": _Level.AT,
        1: np.array([[1, 2]]),
        "none": (np.float32(0.5), float("nan"), np.float64("inf"), None, np.bool_(True)),
    }
    assert plain(given_value) == {
        "level": "at",
        "1": [[1, 2]],
        "none": [0.5, None, None, None, True],
    }
    with pytest.raises(TypeError, match="set has no form in JSON"):
        plain({1, 2})


@given(st.dictionaries(st.text(), st.integers() | st.booleans() | st.text(), min_size=2))
def test_the_hash_is_of_the_content_not_of_its_order(config: dict[str, Any]) -> None:
    turned = dict(reversed(config.items()))
    assert config_hash(turned) == config_hash(config)
    changed = config | {next(iter(config)): ["something else"]}
    assert config_hash(changed) != config_hash(config)


def test_stored_results_leave_out_what_they_cost(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "run.json"
    store(_result(cycles=5), path)
    stored = json.loads(path.read_text())
    assert stored == {name: v for name, v in _result(cycles=5).items() if name not in _TIMES}
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/run\.json: cannot be written: Not a directory"):
        store(_result(), tmp_path / "file" / "run.json")
    with pytest.raises(InputError, match="cannot be written"):
        store(_result(), tmp_path)


def test_json_goes_to_stdout_and_talk_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("cases") as update:
        update(1, 2)
        log("half")
    emit(_result(cycles=5), True, lambda result: "unused")
    captured = capsys.readouterr()
    assert json.loads(captured.out) == _result(cycles=5)
    assert captured.err == "half\n"


def test_below_a_table_stands_what_its_result_cost(capsys: pytest.CaptureFixture[str]) -> None:
    emit(_result(cycles=5), False, lambda result: f"{result['cycles']} cycles")
    told = "1 CPU-s, 2 s wall time, 0.5 s of it compiling"
    assert capsys.readouterr().out == f"5 cycles\n{told}\n"
    long = {"cpu_s": 999.6, "wall_s": 1134.2, "compile_s": 0.00012}
    assert cost(long) == "1,000 CPU-s, 1,134 s wall time, 0.00012 s of it compiling"
    emit({"kernels": ["summa"]}, False, lambda names: "summa")
    assert capsys.readouterr().out == "summa\n"


def test_names_of_users_are_printed_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    """Rich takes brackets for styles, or for the end of one, and words between colons for signs."""
    name = "a[b]c[/d]:warning:e.toml"
    table = Table(name, title=name, caption=name)
    table.add_row(name)
    emit({}, False, lambda result: table)
    emit({}, False, lambda result: name)
    log(name)
    warn([name])
    captured = capsys.readouterr()
    assert captured.out.count(name) == 5
    assert captured.err == f"{name}\nwarning: {name}\n"
