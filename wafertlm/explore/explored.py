"""An exploration from its file to its result."""

from pathlib import Path
from typing import Any

from wafertlm.explore.file import read_explore_file, with_trials
from wafertlm.explore.question import Question
from wafertlm.explore.result import figures_found
from wafertlm.explore.run import run_exploration, workers_at
from wafertlm.explore.space import Space
from wafertlm.explore.store import opened
from wafertlm.explore.study import Exploration
from wafertlm.output import Progress, complete, config_hash, log
from wafertlm.stopwatch import Stopwatch

_KEPT = ".explored"
_DATABASE = "study.db"


def explored(
    file: Path,
    watch: Stopwatch,
    *,
    storage: str | None = None,
    trials: int | None = None,
    workers: int = 1,
    seed: int | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Explore what a file asks, from where an earlier run has come to.

    Args:
        file: The file.
        watch: Measures what it costs.
        storage: Address of the study's database; None: SQLite, in a folder beside the file.
        trials: Instead of the file's.
        workers: Trials side by side.
        seed: Instead of the file's.
        progress: Called with finished and all trials.

    Returns:
        The command's result object, without its times.

    Raises:
        InputError: naming the file, the field, what was found and what is allowed.
        CheckFailedError: if a process died.
    """
    asked = read_explore_file(file, trials, seed)
    sampler = asked.sampler
    space = Space.of(asked.parameters, sampler.kind, sampler.seed, str(file))
    question = Question(with_trials(asked, space.grid_points), file, file.with_suffix(_KEPT))
    question.hold(space)
    name = f"{file.stem}-{_content(question, space)}"
    address = storage or f"sqlite:///{question.kept / _DATABASE}"
    with workers_at(question.kept, workers, watch) as submit, opened(address) as (kept, claims):
        exploration = Exploration(question, space, kept, claims, name)
        known = exploration.known()
        done = sum(each.is_finished for each in known)
        log(f"study {name}: {done} of {question.asked.trials} trials are done")
        known = run_exploration(exploration, submit, workers, progress)
        figures = figures_found(exploration, known)
    options = question.asked.model_dump(exclude_none=True)
    return complete("explore", options | {"study": name}, figures, {}, seed=sampler.seed)


def _content(question: Question, space: Space) -> str:
    """Hash of all that decides a study's trials: another file, or product, is another study."""
    counted = question.asked.model_dump(mode="json", exclude={"trials", "confirm"})
    ends = [space.first | {axis.name: end} for axis in space.axes for end in axis.ends]
    ends = ends if not any(n.startswith("model:") for n in question.asked.parameters) else []
    keys = [question.job(point).key for point in [space.first, *ends]]
    return config_hash({"asked": counted, "keys": keys})
