"""An exploration run to its end: on the processes of this machine, beside other runs or alone."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path

from tlm.errors import InputError
from wafertlm.explore.answer import Answer, answer
from wafertlm.explore.question import Job
from wafertlm.explore.study import OWN, Due, Exploration, Known
from wafertlm.output import CheckFailedError, Progress
from wafertlm.stopwatch import Stopwatch
from wafertlm.timed_pool import TimedPool

_ASK_AGAIN_S = 0.5

Submit = Callable[[Job], "Future[Answer]"]


@contextmanager
def workers_at(kept: Path, workers: int, watch: Stopwatch) -> Iterator[Submit]:
    """What runs jobs: processes, or this one if there is one worker.

    Processes begin at once: what is opened later they do not have.

    Args:
        kept: Folder of answers.
        workers: How many jobs go side by side.
        watch: Measures what they cost.
    """
    if workers == 1:
        yield lambda job: _done(answer(job, kept, watch))
        return

    with TimedPool(watch, workers) as pool:
        pool.submit(os.getpid).result()
        try:
            yield lambda job: pool.submit_watched(answer, job, kept)
        except BaseException:
            for child in active_children():  # what they were at is run again
                child.kill()
            pool.shutdown(cancel_futures=True)
            raise


def run_exploration(
    exploration: Exploration, submit: Submit, workers: int, progress: Progress
) -> list[Known]:
    """Run all trials that are left, and confirm the best.

    Args:
        exploration: The exploration.
        submit: Runs a job: `workers_at`.
        workers: How many jobs go side by side.
        progress: Called with finished and all trials.

    Returns:
        All trials.

    Raises:
        InputError: if a figure that the file names is none of the command's.
        CheckFailedError: if a process died.
    """
    total = exploration.asked.trials or 0
    flying: dict[Future[Answer], Due] = {}
    while True:
        exploration.choose(2 * workers)
        known = exploration.known()
        progress(sum(each.is_finished for each in known), total)
        if not flying and exploration.is_over(known):
            return known
        has_ended = False
        for due in exploration.due(known):
            busy = due.number in {each.number for each in flying.values()}
            if busy or (due.level is not None and len(flying) >= workers):
                continue
            if not _take(exploration, due):
                continue
            if due.level is None:
                exploration.finish(due, known)
                exploration.claims.release(exploration.study_id, due.number)
                has_ended = True
            else:
                flying[_run(exploration, submit, due, known)] = due
        if not has_ended:
            _collect(exploration, flying)


def _take(exploration: Exploration, due: Due) -> bool:
    """Take what is due, unless another run has it or has done it in the meantime."""
    claims, study_id = exploration.claims, exploration.study_id
    if not claims.claim(study_id, due.number):
        return False
    if claims.is_shared and due not in list(exploration.due(exploration.known())):
        claims.release(study_id, due.number)
        return False
    return True


def _run(exploration: Exploration, submit: Submit, due: Due, known: list[Known]) -> Future[Answer]:
    point, level = dict(known[due.number].point), None if due.level == OWN else due.level
    try:
        job = exploration.question.job(point, level)
    except InputError as error:  # such as a model that makes no sense
        return _done(Answer(problem=str(error)))
    return submit(job)


def _collect(exploration: Exploration, flying: dict[Future[Answer], Due]) -> None:
    """Note what has come, or wait a while for it, and for what others do."""
    if not flying:
        time.sleep(_ASK_AGAIN_S)
        return
    ask_again_s = _ASK_AGAIN_S if exploration.claims.is_shared else None
    for future in wait(flying, ask_again_s, FIRST_COMPLETED).done:
        due = flying.pop(future)
        try:
            exploration.keep(due, future.result())
        except BrokenProcessPool as error:
            raise CheckFailedError(
                f"trial {due.number}: a process ended in the middle, as it does when memory is "
                "short; run it again with fewer --workers: what is done stays done"
            ) from error
        exploration.claims.release(exploration.study_id, due.number)


def _done(found: Answer) -> Future[Answer]:
    future = Future[Answer]()
    future.set_result(found)
    return future
