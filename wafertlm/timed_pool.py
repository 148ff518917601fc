"""Processes for calls, whose compiling is told apart from their work."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from tlm import children
from wafertlm.stopwatch import Stopwatch, stopwatch

P = ParamSpec("P")
T = TypeVar("T")


class TimedPool(Executor):
    """Processes; a stopwatch of this one counts what they compile.

    Args:
        watch: The stopwatch.
        workers: How many processes.
    """

    def __init__(self, watch: Stopwatch, workers: int) -> None:
        self._watch, self._workers = watch, workers
        self._pool = children.pool(workers)

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Call a function of a module in one of the processes."""
        return self._counted(self._pool.submit(_timed, call, *args, **kwargs))

    def submit_watched(self, call: Callable[..., T], *args: Any) -> "Future[T]":
        """The same of a function whose last argument is the stopwatch of its process."""
        return self._counted(self._pool.submit(_watched, call, *args))

    def _counted(self, inner: "Future[tuple[T, tuple[float, float]]]") -> "Future[T]":
        """What a call gives, once what it compiled is counted."""
        outer = Future[T]()

        def ended(future: "Future[tuple[T, tuple[float, float]]]") -> None:
            if future.cancelled():
                outer.cancel()
                outer.set_running_or_notify_cancel()
            elif (error := future.exception()) is not None:
                outer.set_exception(error)
            else:
                found, (cpu_s, wall_s) = future.result()
                self._watch.count_compiled(cpu_s, wall_s / self._workers)
                outer.set_result(found)

        inner.add_done_callback(ended)
        return outer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def _timed(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, tuple[float, float]]:
    with stopwatch() as watch:
        found = call(*args, **kwargs)
    return found, watch.compiled


def _watched(call: Callable[..., T], *args: Any) -> tuple[T, tuple[float, float]]:
    with stopwatch() as watch:
        found = call(*args, watch)
    return found, watch.compiled
