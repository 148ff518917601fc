"""How far the build of a model is, on stderr, and how long it took the last time."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from tlm.files import whole_file

#: Seconds of a build on two idle processors: of anything, and of each node of a mesh.
_BUILD_S, _NODE_S = 20, 1.2
#: So often it is said how far a build is.
_EVERY_S = 10.0
_TIMES = "build-times.json"


@contextmanager
def told(shown: str, folder: Path, nodes: int) -> Iterator[None]:
    """Say that a model is built, how long that took the last time, how far it is, and its end.

    Args:
        shown: What it is; by that its times are kept, beside the folder.
        folder: Where it is built.
        nodes: Of a mesh, how many, by which it is guessed how long a first build takes.
    """
    times = folder.parent / _TIMES
    last = _last(times).get(shown)
    guess = f"about {round(_BUILD_S + _NODE_S * (nodes - 1), -1):.0f} s, once"
    _say(f"building {shown}, {guess if last is None else f'{last:.0f} s the last time'}")
    begin, ended = time.monotonic(), threading.Event()
    watch = threading.Thread(target=_watch, args=(shown, folder, begin, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()
    took = time.monotonic() - begin
    with FileLock(f"{times}.lock"), whole_file(times) as scratch:
        known = {**_last(times), shown: round(took, 1)}
        scratch.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    _say(f"built {shown} in {took:.0f} s")


def _watch(shown: str, folder: Path, begin: float, ended: threading.Event) -> None:
    while not ended.wait(_EVERY_S):
        _say(f"{shown}: {_how_far(folder)}, {time.monotonic() - begin:.0f} s")


def _how_far(folder: Path) -> str:
    """The step that a build is at: Verilator writes C++, a file of which becomes an object."""
    names = [name for _, _, files in os.walk(folder) for name in files if name.startswith("V")]
    sources = {Path(name).stem for name in names if name.endswith(".cpp")}
    done = {Path(name).stem for name in names if name.endswith(".o")}
    if not sources:
        return "Verilator reads the Verilog"
    return f"{len(sources & done)} of {len(sources)} C++ files compiled"


def _last(times: Path) -> dict[str, float]:
    """Seconds that models took, by what they are."""
    try:
        known: dict[str, float] = json.loads(times.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
