"""Signals while compiled code runs, which hears of none until its end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

#: Signals that ask a process to end.
ENDING = signal.SIGINT, signal.SIGTERM


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Let SIGINT and SIGTERM end the process in the block, wherever it is.

    For minutes of compiled code without files, folders or programs of its own.
    """
    if current_thread() is not main_thread():  # others may not say what a signal does
        yield
        return
    before = {each: signal.signal(each, signal.SIG_DFL) for each in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
