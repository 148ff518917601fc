"""What counts as the cost of a result, and what does not."""

import subprocess
import sys
import time
from typing import Any

import numba
import pytest

from wafertlm.api.study_run import STUDIES, Study, study
from wafertlm.stopwatch import Stopwatch, stopwatch
from workloads.studies.campaign import Figures, run_once

BUSY_S = 0.3
SPIN = f"import time; end = time.process_time() + {BUSY_S}\nwhile time.process_time() < end: pass"


def spin() -> None:
    end = time.process_time() + BUSY_S
    while time.process_time() < end:
        pass


def test_sleep_is_wall_time_only() -> None:
    with stopwatch() as watch:
        time.sleep(0.2)
    assert watch.times["wall_s"] >= 0.2
    assert watch.times["cpu_s"] < 0.1
    assert watch.times["compile_s"] == 0


def test_children_count() -> None:
    with stopwatch() as watch:
        subprocess.run([sys.executable, "-c", SPIN], check=True)
    assert watch.times["cpu_s"] >= BUSY_S


def test_compilation_is_told_apart() -> None:
    with stopwatch() as watch:
        spin()
        with watch.compiling(), watch.compiling():  # nested: counted once
            spin()
    times = watch.times
    assert times["cpu_s"] == pytest.approx(BUSY_S, abs=0.15)
    assert times["compile_s"] >= BUSY_S
    assert times["wall_s"] >= 2 * BUSY_S


def test_numba_tells_when_it_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    @numba.njit
    def fresh(count: int) -> float:
        total = 0.0
        for step in range(count):
            total += step**0.5
        return total

    with stopwatch() as watch:
        fresh(10)
    first = watch.times
    assert capsys.readouterr().err.startswith("compiling a model, up to half a minute, once;")
    assert first["compile_s"] > 0.01
    assert first["cpu_s"] < first["compile_s"]
    with stopwatch() as watch:
        fresh(10)
    assert watch.times["compile_s"] == 0
    assert capsys.readouterr().err == ""
    fresh(1.5)  # compiles again; a stopped watch does not hear of it
    assert watch.times["compile_s"] == 0


def _compiles(case: str, seed: int) -> Figures:
    spin()
    numba.njit(lambda value: value**0.5 + seed)(2.0)
    return {}


def _compiling_study(*, quick: bool, **how: Any) -> dict[str, Any]:
    return run_once(["one", "other"], _compiles, **how)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_study_s_processes_compile_is_told_apart(
    workers: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made = Study(_compiling_study, plots="", seeds=False, chips=False)
    monkeypatch.setitem(STUDIES, "made-up", made)
    times = study("made-up", workers=workers).result
    assert times["compile_s"] > 0.01
    assert 2 * BUSY_S <= times["cpu_s"] < 2 * BUSY_S + 0.3
    assert capfd.readouterr().err.count("compiling a model") <= workers


def test_times_stand_after_an_error() -> None:
    kept: list[Stopwatch] = []
    with pytest.raises(KeyError), stopwatch() as watch:
        kept.append(watch)
        time.sleep(0.05)
        raise KeyError
    assert kept[0].times["wall_s"] >= 0.05
