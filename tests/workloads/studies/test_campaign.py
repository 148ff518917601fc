"""Tasks over seeds: any number of workers, stopped and resumed, never stale."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tlm.errors import InputError
from workloads.studies.campaign import Figures, run_once, run_tasks

_CASES = {"a": 1.5, "b": 2.5}
_SEEDS = {"a": [0, 1, 2], "b": [7]}


def _times(case: float, seed: int) -> Figures:
    return {"product": case * seed, "none": None}


def _never(case: float, seed: int) -> Figures:
    raise AssertionError(f"case {case} with seed {seed} was run")


def test_results_are_in_order_for_any_number_of_workers(tmp_path: Path) -> None:
    alone = run_tasks(_CASES, _SEEDS, _times, workers=1)
    assert alone["a"] == [{"product": 1.5 * seed, "none": None} for seed in range(3)]
    assert run_tasks(_CASES, _SEEDS, _times, workers=2, store=tmp_path) == alone


def test_cases_in_which_nothing_is_random_run_once_each(tmp_path: Path) -> None:
    found = run_once([1.5, 2.5, 1.5], _times, workers=1, store=tmp_path)
    assert found == {"1.5": _times(1.5, 0), "2.5": _times(2.5, 0)}
    assert run_once([1.5, 2.5], _never, workers=1, store=tmp_path) == found


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    def stops(case: float, seed: int) -> Figures:
        if seed == 2:
            raise KeyboardInterrupt
        return _times(case, seed)

    with pytest.raises(KeyboardInterrupt):
        run_tasks(_CASES, _SEEDS, stops, workers=1, store=tmp_path)
    run: list[tuple[float, int]] = []

    def counts(case: float, seed: int) -> Figures:
        run.append((case, seed))
        return _times(case, seed)

    told: list[tuple[int, int]] = []
    resumed = run_tasks(
        _CASES,
        _SEEDS,
        counts,
        workers=1,
        store=tmp_path,
        progress=lambda done, total: told.append((done, total)),
    )
    assert run == [(1.5, 2), (2.5, 7)]
    assert told == [(3, 4), (4, 4)]
    assert resumed == run_tasks(_CASES, _SEEDS, _never, workers=1, store=tmp_path)


def test_a_changed_case_is_not_taken_from_the_store(tmp_path: Path) -> None:
    run_tasks(_CASES, _SEEDS, _times, workers=1, store=tmp_path)
    changed = run_tasks({"a": 3.5}, {"a": [2]}, _times, workers=1, store=tmp_path)
    assert changed == {"a": [{"product": 7.0, "none": None}]}


def test_a_folder_that_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file/runs: cannot be a folder: Not a directory"):
        run_tasks(_CASES, _SEEDS, _never, workers=1, store=tmp_path / "file" / "runs")


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: b"",
        lambda kept: kept[:-10],
        lambda kept: b"[" * 100_000,
        lambda kept: b"\xff" + kept,
        lambda kept: b"{}",
        lambda kept: b"[1, 2]",
        lambda kept: b"null",
        lambda kept: kept.replace(b'"product": 1.5', b'"product": 1.6'),
        lambda kept: kept.replace(b'"none": null', b'"none": NaN'),
    ],
)
def test_a_damaged_file_is_named_before_anything_runs(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    run_tasks({"a": 1.5}, {"a": [1]}, _times, workers=1, store=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(InputError) as refused:
        run_tasks({"a": 1.5}, {"a": [1]}, _never, workers=1, store=tmp_path)
    assert str(refused.value) == f"{file}: damaged; remove it, and the run is repeated"
