"""What every command gives back: one JSON object or a table, its provenance, and stored results."""

import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from tlm.files import whole_file
from wafertlm.version import __version__

TIMES = ("cpu_s", "wall_s", "compile_s")

# Tables keep their columns together when piped into a file.
_PIPED_WIDTH = 120
# Between two lines of what goes on all the time.
_SELDOM_S = 5.0
# Names and paths of users may have brackets and colons, which Rich would take for its own.
_AS_WRITTEN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}

Result = Mapping[str, Any]
Progress = Callable[[int, int], None]

_hearer: ContextVar[Callable[[Result], None] | None] = ContextVar("hearer", default=None)


class CheckFailedError(Exception):
    """A check did not hold; the command prints the message and exits with status 1."""


def complete(
    command: str,
    options: Mapping[str, Any],
    figures: Result,
    times: Mapping[str, float],
    *,
    rtl_hash: str | None = None,
    calibration: str | None = None,
    seed: int | None = None,
    contents: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A command's result object: what was asked, the figures, where they come from, their cost.

    Args:
        command: Name of the command, with the kind of result where it has several.
        options: Every option that bears on the figures, defaults filled in; no output paths.
        figures: The command's own fields.
        times: ``Stopwatch.times``.
        rtl_hash: Content hash of the RTL behind the figures; None where there is none.
        calibration: Name of the calibration the figures rest on; None where there is none.
        seed: Seed of the run; None where nothing is random.
        contents: Hashes of what options that are files hold.
    """
    plain_options = plain(options)
    config = {"command": command, "options": plain_options}
    if contents:
        config["contents"] = dict(contents)
    return {
        "command": command,
        "options": plain_options,
        **plain(figures),
        "provenance": {
            "version": __version__,
            "config_hash": config_hash(config),
            "rtl_hash": rtl_hash,
            "calibration": calibration,
            "seed": seed,
        },
        **times,
    }


def config_hash(config: Mapping[str, Any]) -> str:
    """Hash of a configuration's canonical JSON: equal settings, equal hash."""
    text = json.dumps(plain(config), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plain(value: Any) -> Any:
    """The value in JSON's types; a number that is not finite becomes null.

    Raises:
        TypeError: for a type that has no such form.
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays, without importing NumPy
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no form in JSON: {value!r}")


def emit(
    result: Result,
    as_json: bool,
    render: Callable[[Result], RenderableType],
    out: Path | None = None,
) -> None:
    """Print a result on stdout: one JSON object, or what ``render`` makes of it, and its cost.

    Before that it is stored in ``out``, if given.
    """
    if (hear := _hearer.get()) is not None:
        hear(result)
    try:
        if out is not None:
            store(result, out)
    finally:
        _print(result, as_json, render)


@contextmanager
def told_of(hear: Callable[[Result], None]) -> Iterator[None]:
    """Who hears of results before they are printed, within the block."""
    token = _hearer.set(hear)
    try:
        yield
    finally:
        _hearer.reset(token)


def _print(result: Result, as_json: bool, render: Callable[[Result], RenderableType]) -> None:
    if as_json:
        sys.stdout.write(_json(result))
    else:
        console().print(render(result))
        if set(TIMES) <= set(result):
            console().print(cost(result))


def cost(result: Result) -> str:
    """What a result cost, in words; compilation is a part of wall time, not of CPU time."""
    cpu_s, wall_s, compile_s = (_seconds(result[name]) for name in TIMES)
    return f"{cpu_s} CPU-s, {wall_s} s wall time, {compile_s} s of it compiling"


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"  # no 1.1e+03


def store(result: Result, path: Path) -> None:
    """Write a result as readable JSON, without its times: equal runs give equal bytes.

    Raises:
        InputError: naming the path, if it cannot be written.
    """
    kept = {name: value for name, value in result.items() if name not in TIMES}
    with whole_file(path) as scratch:
        scratch.write_text(_json(kept), encoding="utf-8")


def console() -> Console:
    """Where results go: stdout."""
    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, **_AS_WRITTEN)


def log(message: str) -> None:
    """A line of what is going on, on stderr."""
    Console(stderr=True, soft_wrap=True, **_AS_WRITTEN).print(message)


class SeldomLog:
    """A log that drops what comes soon after a line."""

    def __init__(self) -> None:
        self._due_s = -math.inf

    def __call__(self, message: str) -> None:
        """Say it, unless something was said just now."""
        if time.monotonic() >= self._due_s:
            log(message)
            self._due_s = time.monotonic() + _SELDOM_S


def warn(lines: Iterable[str]) -> None:
    """What a user should know of a result that is given all the same, on stderr."""
    for line in lines:
        log(f"warning: {line}")


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A bar on stderr, on a terminal only; call what is yielded with (done, of all)."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    terminal = Console(stderr=True)
    with Bar(
        *columns,
        TimeElapsedColumn(),
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _json(result: Result) -> str:
    return json.dumps(plain(result), indent=2, allow_nan=False) + "\n"
