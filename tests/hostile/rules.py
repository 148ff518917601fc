"""What may happen to a command, whatever it is given. It is written down here alone.

It ends with status 0, 1, 2 or 130, within 20 s and 2 GB. Without success stderr has one line of at
most 300 characters beside what says how far work is, stdout has nothing of half a result, and no
file has come or gone. With success only the files have come that options name.
"""

import json
import resource
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

STATUSES = (0, 1, 2, 130)
LONGEST_LINE = 300
#: Of the processor; and of a command that waits, so that a busy machine breaks no rule.
SECONDS, _STANDS_STILL_S = 20, 200
_GIB = 1 << 30
MOST_BYTES = 2 * _GIB
#: Lines of work under way begin so.
_WORK = ("building ", "built ", "compiling ", "check: ", "simulated ")


class TooLongError(BaseException):
    """The command runs still; no handler of its takes this for its own."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Runs commands in this process and holds what they do to the rules.

    Attributes:
        wafertlm: Runs one.
        folder: Where it runs: all that may change.
    """

    wafertlm: Any
    folder: Path

    def hold(self, arguments: Sequence[str], outputs: Sequence[str] = ()) -> int:
        """Run a command; the status.

        Raises:
            AssertionError: if it breaks a rule.
        """
        before = self._files()
        with _bounded():
            ran = self.wafertlm(*arguments)
        shown = f"wafertlm {' '.join(arguments)}"[:2000]
        assert ran.status in STATUSES, shown
        lines = [line for line in ran.stderr.splitlines() if not line.startswith(_WORK)]
        assert "Traceback" not in ran.stderr, shown
        if ran.status != 0:
            assert len([line for line in lines if line]) == 1, (shown, ran.stderr[:2000])
            assert len(lines[-1]) <= LONGEST_LINE, (shown, ran.stderr[:2000])
        if ran.status == 2 and "--json" in arguments and ran.stdout:
            json.loads(ran.stdout)  # a whole result, which was not to be stored
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        assert peak < MOST_BYTES, (shown, peak)
        allowed = {self.folder / name for name in outputs} if ran.status == 0 else set()
        new = self._files() - before
        assert all(any(path == one or path in one.parents for one in allowed) for path in new), (
            shown,
            new,
        )
        for path in sorted(new, reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        return int(ran.status)

    def _files(self) -> set[Path]:
        return set(self.folder.rglob("*"))


@contextmanager
def _bounded() -> Iterator[None]:
    """Stop what takes too long, or too much: the machine is to live on."""

    def late(number: int, frame: object) -> NoReturn:
        raise TooLongError(f"more than {SECONDS} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    old = [(each, signal.signal(each, late)) for each in (signal.SIGPROF, signal.SIGALRM)]
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * _GIB, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, _STANDS_STILL_S)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        for each, handler in old:
            signal.signal(each, handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
