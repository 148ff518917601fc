"""Programs that this process starts: they end when it does, and so do all that they start."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from tlm.scratch import scratch_folder

if TYPE_CHECKING:  # slow to import: only for pools
    from concurrent.futures import Executor, ProcessPoolExecutor

Task = TypeVar("Task", bound=Hashable)
Result = TypeVar("Result")

# Ends its group of processes when its input ends: when the process that holds the other end is
# gone, however it ended.
_WATCH = "read -r ended || kill -9 0"

_PR_SET_PDEATHSIG = 1

_running: set[int] = set()
_ended: set[int] = set()
# What another thread ends all of is either not begun or known.
_beginning = RLock()


def run(
    command: Sequence[str], environment: Mapping[str, str], folder: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end.

    Compilers that are ended leave temporary files: each run has a folder of its own for them.

    Args:
        command: The program and its arguments.
        environment: Its environment.
        folder: Where it works; None: where this process does.

    Returns:
        Its status, and all that it printed as ``stdout``.

    Raises:
        KeyboardInterrupt: if `end_all` ended it.
    """
    with scratch_folder() as temporary:
        return _run(command, {**environment, "TMPDIR": str(temporary)}, folder)


def _run(
    command: Sequence[str], environment: Mapping[str, str], folder: str | None
) -> subprocess.CompletedProcess[str]:
    # The watch comes first, and the program joins its group: this process may be killed any time.
    with subprocess.Popen(["sh", "-c", _WATCH], stdin=subprocess.PIPE, process_group=0) as watch:
        group = watch.pid
        with _beginning:
            child = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                process_group=group,
            )
            _running.add(group)
        try:
            printed, _ = child.communicate()
        finally:
            _end(group)
            _running.discard(group)
    if group in _ended:
        _ended.discard(group)  # another program may get its number
        raise KeyboardInterrupt
    return subprocess.CompletedProcess(command, child.returncode, printed)


def pool(workers: int | None = None) -> "ProcessPoolExecutor":
    """Processes for calls.

    Args:
        workers: How many; None: one for each core.
    """
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(
        workers or os.cpu_count(), initializer=_end_with, initargs=(os.getpid(),)
    )


def as_done(
    call: Callable[..., Result],
    tasks: Mapping[Task, tuple[Any, ...]],
    workers: int,
    opened: "Callable[[int], Executor]" = pool,
) -> Iterator[tuple[Task, Result]]:
    """Call a function for each task, and yield what it gives as it comes.

    Where a call raises, or nobody wants more, calls that have not begun are left out.

    Args:
        call: A function of a module.
        tasks: Its arguments.
        workers: Processes; 1: this one alone, task by task.
        opened: Opens so many processes.
    """
    if workers == 1:
        yield from ((task, call(*arguments)) for task, arguments in tasks.items())
        return
    from concurrent.futures import as_completed

    with opened(workers) as processes:
        futures = {processes.submit(call, *of): task for task, of in tasks.items()}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            processes.shutdown(wait=True, cancel_futures=True)
            raise


def _end_with(parent: int) -> None:
    """Have this process end with the one that started it, in whatever way that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended in the meantime
        os._exit(1)


def end_all() -> None:
    """End what runs, and the processes of pools, which end themselves only when their work does."""
    with _beginning:
        for group in list(_running):
            _ended.add(group)
            _end(group)
    if pools := sys.modules.get("multiprocessing"):
        for process in pools.active_children():
            process.kill()


def _end(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
