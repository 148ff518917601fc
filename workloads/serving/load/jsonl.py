"""Reading a request trace of JSON lines: ``input_toks``, ``output_toks``, ``arrival_time_ns``."""

import json
from collections.abc import Iterator
from typing import NoReturn, TextIO

from tlm.errors import InputError

FIELDS = ("arrival_time_ns", "input_toks", "output_toks")
_MAX_LINE = 1 << 20


def read_jsonl(
    name: str, file: TextIO, max_tokens: int, max_arrival_ns: int
) -> Iterator[tuple[int, int, int]]:
    """Arrival in picoseconds, prompt and output tokens of each request; other fields are ignored.

    Raises:
        InputError: naming file, line and field, what was found and what is allowed.
    """
    limits = {
        "arrival_time_ns": (0, max_arrival_ns),
        "input_toks": (1, max_tokens),
        "output_toks": (1, max_tokens),
    }
    number = 0
    while line := file.readline(_MAX_LINE):
        number += 1
        where = f"{name}: line {number}"
        if len(line) == _MAX_LINE:
            raise InputError(f"{where}: found {_MAX_LINE} characters or more; allowed: fewer")
        if not line.strip():
            continue
        values = _object(where, line)
        arrival_ns, prompt, output = (
            _whole(where, field, values.get(field), *limits[field]) for field in FIELDS
        )
        yield arrival_ns * 1000, prompt, output


def _object(where: str, line: str) -> dict[str, object]:
    try:
        values = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{where}: is not JSON ({reason[:80]})") from error
    if not isinstance(values, dict):
        raise InputError(f"{where}: found {line.strip()[:40]!r}; allowed: an object")
    return values


def _whole(where: str, field: str, value: object, least: int, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        found = "nothing" if value is None else _short(value)
        raise InputError(
            f"{where}: {field}: found {found}; allowed: a whole number from {least} to {most}"
        )
    return value


def _short(value: object) -> str:
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    return repr(value)[:40] if isinstance(value, int | float | str) else type(value).__name__


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
