"""Runs a study's cases over seeds, in parallel, so that a run which was stopped goes on.

A task is a case with a seed. Its figures depend on nothing else, and are kept in a file named by
the hash of the task and of the sources that decide it: equal bytes for any number of workers, and
nothing stale is ever taken.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tlm import children
from tlm.errors import InputError
from tlm.files import whole_file

Figures = dict[str, float | None]
Progress = Callable[[int, int], None]
#: Opens so many processes for calls.
Pool = Callable[[int], Executor]

_ROOT = Path(__file__).parents[2]
#: All that decides a figure: models, kernels, serving, and what was measured.
_SOURCES = ("tlm", "workloads", "wafertlm/kernel", "wafertlm/studied.py", "calibration")


class Task(NamedTuple):
    """A case with a seed."""

    case: str
    seed: int


def run_tasks(
    cases: Mapping[str, Any],
    seeds: Mapping[str, Sequence[int]],
    simulate: Callable[[Any, int], Figures],
    *,
    workers: int,
    store: Path | None = None,
    progress: Progress | None = None,
    pool: Pool = children.pool,
) -> dict[str, list[Figures]]:
    """Run every case with each of its seeds.

    Args:
        cases: What ``simulate`` takes, by key; each must have a ``repr`` that tells all of it.
        seeds: Seeds of each case.
        simulate: Gives the figures of a case with a seed; a function of a module.
        workers: Processes.
        store: Folder of finished tasks; None: none are kept.
        progress: Called with finished and all tasks.
        pool: Opens the processes, if they are more than one.

    Returns:
        The figures of each case, in the order of its seeds.

    Raises:
        InputError: naming the folder, if nothing can be kept there, or the file in it that is
            damaged; nothing has run then.
    """
    if store is not None:
        _check_store(store)
    tasks = [Task(case, seed) for case in cases for seed in seeds[case]]
    done: dict[Task, Figures] = {}
    for task in tasks:
        kept = None if store is None else _read(store, cases[task.case], task.seed)
        if kept is not None:
            done[task] = kept
    missing = {task: (cases[task.case], task.seed) for task in tasks if task not in done}
    for task, figures in children.as_done(simulate, missing, workers, pool):
        done[task] = figures
        if store is not None:
            _write(store, cases[task.case], task.seed, figures)
        if progress is not None:
            progress(len(done), len(tasks))
    return {case: [done[Task(case, seed)] for seed in seeds[case]] for case in cases}


def run_once(
    cases: Iterable[Any],
    simulate: Callable[[Any, int], Figures],
    *,
    workers: int,
    store: Path | None = None,
    progress: Progress | None = None,
    pool: Pool = children.pool,
) -> dict[str, Figures]:
    """`run_tasks` of cases in which nothing is random: the figures of each by its ``repr``."""
    named = {repr(case): case for case in cases}
    seeds = dict.fromkeys(named, [0])
    how: dict[str, Any] = {"workers": workers, "store": store, "progress": progress, "pool": pool}
    runs = run_tasks(named, seeds, simulate, **how)
    return {case: figures for case, [figures] in runs.items()}


def default_workers() -> int:
    """One process for each core that may be used."""
    return len(os.sched_getaffinity(0))


def _check_store(store: Path) -> None:
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{store}: cannot be a folder: {error.strerror}") from error
    if not os.access(store, os.W_OK | os.X_OK):
        raise InputError(f"{store}: cannot be written to")


def _path(store: Path, case: Any, seed: int) -> Path:
    text = f"{sources_hash()} {case!r} {seed}"
    return store / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def _read(store: Path, case: Any, seed: int) -> Figures | None:
    path = _path(store, case, seed)
    if not path.is_file():
        return None
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        figures: Figures = kept["figures"]
        if kept["sha256"] == _digest(figures):
            return figures
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass  # not what a run has left, in one way or another
    raise InputError(f"{path}: damaged; remove it, and the run is repeated")


def _write(store: Path, case: Any, seed: int, figures: Figures) -> None:
    with whole_file(_path(store, case, seed)) as scratch:
        kept = {"figures": figures, "sha256": _digest(figures)}
        scratch.write_text(json.dumps(kept, allow_nan=False), encoding="utf-8")


def _digest(figures: Figures) -> str:
    return hashlib.sha256(json.dumps(figures).encode()).hexdigest()


@cache
def sources_hash(places: Sequence[str] = _SOURCES) -> str:
    """Content of the sources that decide a result.

    Args:
        places: Folders and files, from the root of the tree.
    """
    digest = hashlib.sha256()
    for place in places:
        whole = _ROOT / place
        for path in [whole] if whole.is_file() else sorted(whole.rglob("*")):
            if path.suffix in (".py", ".toml", ".json"):
                digest.update(path.relative_to(_ROOT).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
