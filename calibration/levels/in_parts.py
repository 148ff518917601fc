"""A comparison in parts that run side by side, each kept once it is done: what was stopped goes on.

What is kept is named by the part and by the sources that decide its figures, so that nothing stale
is taken. It goes when the whole comparison is stored.
"""

import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from cosim.verilated.cache import cache_folder
from tlm import children
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.tables import Table

Part = TypeVar("Part", bound=Hashable)
Point = TypeVar("Point", bound=Table)
Progress = Callable[[str], None]

_FOLDER = "compared"


def unheard(message: str) -> None:
    """Progress that nobody follows."""


def kept_or_made(
    kind: type[Point],
    parts: Sequence[Part],
    compare: Callable[[Part], list[Point]],
    sources: dict[str, str],
    load: Callable[[], list[Point]],
    save: Callable[[list[Point]], None],
    dear: Callable[[Part], int] = lambda part: 0,
    *,
    force: bool,
    workers: int,
    progress: Progress,
) -> list[Point]:
    """A whole comparison: what is stored, if it still holds, or else made in parts and stored.

    Args:
        kind: What a point is.
        parts: What is compared, in the order of the stored points; each has a ``repr`` that tells
            all of it.
        compare: Gives the points of a part; a function of a module.
        sources: Hashes of all that decides them.
        load: Gives the stored points; raises InputError if they do not hold.
        save: Stores points.
        dear: Parts of most are compared first.
        force: Also if what is stored still holds.
        workers: Processes; 1: this one alone.
        progress: Told how many parts are done.
    """
    if not force:
        with suppress(InputError):
            return load()
    listed = TypeAdapter(list[kind])  # type: ignore[valid-type]  # known when it runs
    done: dict[Part, list[Point]] = {}
    for part in parts:
        # Not there, or not whole.
        with suppress(OSError, ValidationError):
            done[part] = listed.validate_json(_path(kind, part, sources).read_bytes())
    first = sorted((part for part in parts if part not in done), key=dear, reverse=True)
    for part, made in children.as_done(compare, {part: (part,) for part in first}, workers):
        done[part] = made
        with whole_file(_path(kind, part, sources)) as scratch:
            scratch.write_bytes(listed.dump_json(made))
        progress(f"{len(done)} of {len(parts)} parts")
    points = [point for part in parts for point in done[part]]
    save(points)
    _forget(kind)
    return points


def _forget(kind: type[Table]) -> None:
    """Remove what is kept of a kind, of whatever sources."""
    for path in (cache_folder() / _FOLDER).glob(f"{kind.__name__}-*.json"):
        path.unlink(missing_ok=True)


def _path(kind: type[Table], part: Hashable, sources: dict[str, str]) -> Path:
    content = json.dumps([repr(part), sources])
    named = hashlib.sha256(content.encode()).hexdigest()[:16]
    return cache_folder() / _FOLDER / f"{kind.__name__}-{named}.json"
