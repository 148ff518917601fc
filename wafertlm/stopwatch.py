"""What a result cost: CPU time, wall time, and apart from them the time spent compiling."""

import importlib
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from wafertlm.output import log

#: The context in which something is built: `Stopwatch.compiling`, or none.
Building = Callable[[], AbstractContextManager[None]]


class Stopwatch:
    """Times of one piece of work, counted from its creation to ``stop``.

    CPU time counts all threads of this process and every child process that has been waited for:
    close pools of workers before ``stop``. Compilation is taken out of it.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._compiling_since = (0.0, 0.0)
        self._compiled = (0.0, 0.0)
        self._total = (0.0, 0.0)
        self._since = _now()

    @property
    def times(self) -> dict[str, float]:
        """``cpu_s`` without compilation, ``wall_s`` with it, and ``compile_s`` (wall time)."""
        cpu_s, wall_s = self._total
        compile_cpu_s, compile_s = self._compiled
        return {
            "cpu_s": round(max(0.0, cpu_s - compile_cpu_s), 4),
            "wall_s": round(wall_s, 4),
            "compile_s": round(compile_s, 4),
        }

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Count the block as compilation; what Numba compiles is counted without this."""
        self.compilation_begins()
        try:
            yield
        finally:
            self.compilation_ends()

    def compilation_begins(self) -> None:
        """Compilation may nest; the outermost counts."""
        if self._depth == 0:
            self._compiling_since = _now()
        self._depth += 1

    def compilation_ends(self) -> None:
        """Ends what ``compilation_begins`` began."""
        self._depth -= 1
        if self._depth == 0:
            spent = _spent(self._compiling_since)
            self._compiled = (self._compiled[0] + spent[0], self._compiled[1] + spent[1])

    @property
    def compiled(self) -> tuple[float, float]:
        """Processor's seconds and wall time that went into compiling."""
        return self._compiled

    def count_compiled(self, cpu_s: float, wall_s: float) -> None:
        """Count what another process compiled, whose work is part of this one's."""
        self._compiled = (self._compiled[0] + cpu_s, self._compiled[1] + wall_s)

    def stop(self) -> None:
        """The work is done."""
        self._total = _spent(self._since)


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Measure the block. Import what it runs before: start-up is not part of a result's cost."""
    events = _numba_events()
    watch = Stopwatch()
    listeners: dict[str, Any] = {_NUMBA_LOCK: _NumbaListener(watch)}
    if not _announcers:  # of a process that a pool began, its own is the one that it has from there
        listeners[_NUMBA_COMPILES] = announcer = _Announcer()
        _announcers.append(announcer)
    for event, listener in listeners.items() if events else ():
        events.Listener.register(type(listener))
        events.register(event, listener)
    try:
        yield watch
    finally:
        watch.stop()
        for event, listener in listeners.items() if events else ():
            events.unregister(event, listener)
        if _NUMBA_COMPILES in listeners:
            _announcers.remove(listeners[_NUMBA_COMPILES])


# Held while a function is compiled, and while compiled code is read from the cache.
_NUMBA_LOCK = "numba:compiler_lock"
# The compilation of a function of which nothing is stored.
_NUMBA_COMPILES = "numba:compile"


class _NumbaListener:
    """Registered with Numba as a listener; no subclass, since Numba is imported late."""

    def __init__(self, watch: Stopwatch) -> None:
        self._watch = watch

    def notify(self, event: Any) -> None:
        if event.is_start:
            self._watch.compilation_begins()
        else:
            self._watch.compilation_ends()


class _Announcer:
    """Says before the first compilation that the command will be silent for a while."""

    def __init__(self) -> None:
        self._said = False

    def notify(self, event: Any) -> None:
        if event.is_start and not self._said:
            self._said = True
            log(
                "compiling a model, up to half a minute, once; `python -m wafertlm.warm` compiles "
                "all of them beforehand"
            )


# Those that listen in this process: one says it, also of a stopwatch within another.
_announcers: list[_Announcer] = []


def _numba_events() -> Any:
    """Numba's event system; None without a usable Numba, which ``wafertlm doctor`` reports."""
    try:
        return importlib.import_module("numba.core.event")
    except ImportError:
        return None


def _now() -> tuple[float, float]:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = time.process_time() + children.ru_utime + children.ru_stime
    return cpu_s, time.perf_counter()


def _spent(since: tuple[float, float]) -> tuple[float, float]:
    cpu_s, wall_s = _now()
    return cpu_s - since[0], wall_s - since[1]
