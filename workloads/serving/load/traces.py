"""Requests of a serving run, and reading them from a file.

A file that ends in ``.jsonl`` has an object a line (see ``workloads.serving.load.jsonl``). Any
other is a CSV table, of which two headers are read, other columns being ignored:

- ``arrived_at,num_prefill_tokens,num_decode_tokens``, the arrival in seconds;
- ``TIMESTAMP,ContextTokens,GeneratedTokens``, the form of the public Azure LLM inference traces,
  the arrival as ``2023-11-16 18:15:46.6805900`` (any number of decimals, UTC offset allowed).
"""

import csv
import hashlib
import io
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.files import bounded_lines, open_to_read
from workloads.serving.load.jsonl import read_jsonl

PS_PER_S = 10**12
MAX_TOKENS = 10_000_000
MAX_ARRIVAL_S = 1.0e10  # room for seconds since 1970
MAX_SPAN_S = 8.64e6  # 100 days: an int64 holds 106 days of picoseconds
MAX_TIME_PS = 9 * 10**18  # 104 days

_STAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,12}))?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)
_SECONDS = re.compile(r"\d+(\.\d*)?([eE][+-]?\d{1,3})?|\.\d+", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Requests in order of arrival: three int64 arrays of one length.

    ``arrival_ps`` is in picoseconds after the first arrival; the tokens are 1 or more.
    ``file_hash`` is that of the content of the file they were read from; None: from none.
    """

    arrival_ps: NDArray[np.int64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    file_hash: str | None = None

    def __len__(self) -> int:
        """Number of requests."""
        return len(self.arrival_ps)

    def most_tokens(self, requests: int, block: int) -> int:
        """Tokens, prompt and output, that so many of its requests have at most, in whole blocks."""
        blocks = np.sort(-(-(self.prompt_tokens + self.output_tokens) // block))
        return int(blocks[-requests:].sum()) * block

    def rows(self, first: int = 0, end: int | None = None) -> list[tuple[int, int, int]]:
        """(Arrival in picoseconds, prompt tokens, output tokens) of requests, all by default."""
        columns = (self.arrival_ps, self.prompt_tokens, self.output_tokens)
        return list(zip(*(column[first:end].tolist() for column in columns), strict=True))

    def head(self, requests: int) -> "Trace":
        """The first ``requests`` requests (all, if there are fewer)."""
        first = slice(requests)
        return replace(
            self,
            arrival_ps=self.arrival_ps[first],
            prompt_tokens=self.prompt_tokens[first],
            output_tokens=self.output_tokens[first],
        )

    def scaled(self, rate_scale: float) -> "Trace":
        """The same requests arriving ``rate_scale`` times as fast.

        Raises:
            InputError: if the scale is not positive or spreads the arrivals over 100 days.
        """
        last_ps = int(self.arrival_ps[-1])  # where NumPy warns, Python says infinity
        if not (rate_scale > 0 and last_ps / rate_scale <= MAX_SPAN_S * PS_PER_S):
            raise InputError(
                f"rate scale: found {rate_scale}; allowed: positive, arrivals within 100 days"
            )
        arrival = np.rint(self.arrival_ps / rate_scale).astype(np.int64)
        return replace(self, arrival_ps=arrival)


class _Hashed(io.RawIOBase):
    """A file that hashes what is read of it: a pipe can be read only once."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        self._hash.update(memoryview(buffer)[:count])
        return count

    def digest(self) -> str:
        return self._hash.hexdigest()[:16]


class _Form(NamedTuple):
    arrival: str
    prompt: str
    output: str
    parse_arrival_ps: Callable[[str], int | None]
    allowed_arrival: str


def within_time(time_ps: int) -> int:
    """The time, if a run may come so far.

    Raises:
        InputError: if not.
    """
    if time_ps > MAX_TIME_PS:
        raise InputError(
            "simulated time: the run would take more than 104 days; allowed: less, as time is in "
            "picoseconds of 64 bits"
        )
    return time_ps


def _seconds_ps(text: str) -> int | None:
    if not _SECONDS.fullmatch(text):
        return None
    seconds = float(text)
    return round(seconds * PS_PER_S) if seconds <= MAX_ARRIVAL_S else None


def _stamp_ps(text: str) -> int | None:
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    try:
        stamp = datetime.fromisoformat(f"{day}T{clock}{offset or '+00:00'}")
    except ValueError:
        return None
    # datetime keeps microseconds only, the public traces have 100 ns: add the fraction by hand.
    return int(stamp.timestamp()) * PS_PER_S + int((fraction or "").ljust(12, "0"))


_FORMS = (
    _Form(
        "arrived_at",
        "num_prefill_tokens",
        "num_decode_tokens",
        _seconds_ps,
        f"seconds from 0 to {MAX_ARRIVAL_S:.0e}",
    ),
    _Form(
        "TIMESTAMP",
        "ContextTokens",
        "GeneratedTokens",
        _stamp_ps,
        "a time like 2023-11-16 18:15:46.6805900",
    ),
)
_ALLOWED_TOKENS = f"a whole number from 1 to {MAX_TOKENS}"


def load_trace(path: Path) -> Trace:
    """Read a request trace (UTF-8, byte order mark allowed, blank lines skipped).

    Rows need not be in order of arrival (merged traces seldom are): they are sorted, rows of equal
    arrival staying in file order. Time starts at the first arrival. The file is read once, so it
    may be a pipe.

    Raises:
        InputError: if the file cannot be read as such a table; a bad cell is named by file, line,
            column, value and what is allowed.
    """
    try:
        with open_to_read(path) as opened:
            hashed = _Hashed(opened)
            file = io.TextIOWrapper(io.BufferedReader(hashed), encoding="utf-8-sig", newline="")
            if path.suffix.lower() == ".jsonl":
                rows = read_jsonl(path.name, file, MAX_TOKENS, int(MAX_ARRIVAL_S) * 10**9)
            else:
                rows = _read(path.name, file)
            return replace(_in_order(path.name, rows), file_hash=hashed.digest())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name}: is not UTF-8 text (byte {error.start})") from error
    except csv.Error as error:
        raise InputError(f"{path.name}: is not a CSV table ({error})") from error


def _read(name: str, file: TextIO) -> Iterator[tuple[int, int, int]]:
    reader = csv.reader(bounded_lines(file))
    header = [cell.strip() for cell in next(reader, [])]
    form, places = _header(name, header)
    least, most = max(places) + 1, len(header)
    for row in reader:
        if not row:
            continue
        if len(row) < least or any(cell.strip() for cell in row[most:]):
            allowed = str(most) if least == most else f"{least} to {most}"
            raise InputError(
                f"{name}: line {reader.line_num}: found {len(row)} cells; allowed: {allowed}, the "
                "columns of line 1"
            )
        cells = [row[place].strip() for place in places]
        arrival = form.parse_arrival_ps(cells[0])
        prompt, output = _tokens(cells[1]), _tokens(cells[2])
        if arrival is None:
            raise _bad_cell(name, reader.line_num, form.arrival, cells[0], form.allowed_arrival)
        if prompt is None:
            raise _bad_cell(name, reader.line_num, form.prompt, cells[1], _ALLOWED_TOKENS)
        if output is None:
            raise _bad_cell(name, reader.line_num, form.output, cells[2], _ALLOWED_TOKENS)
        yield arrival, prompt, output


def _header(name: str, header: list[str]) -> tuple[_Form, tuple[int, int, int]]:
    for form in _FORMS:
        names = (form.arrival, form.prompt, form.output)
        if all(header.count(column) == 1 for column in names):
            return form, (header.index(names[0]), header.index(names[1]), header.index(names[2]))
    allowed = " or ".join(f"{form.arrival},{form.prompt},{form.output}" for form in _FORMS)
    found = ",".join(header)[:80] or "nothing"
    raise InputError(f"{name}: line 1: columns: found {found}; allowed: {allowed}, each once")


def _tokens(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        return None
    tokens = int(text)
    return tokens if 1 <= tokens <= MAX_TOKENS else None


def _bad_cell(name: str, line: int, column: str, found: str, allowed: str) -> InputError:
    return InputError(f"{name}: line {line}: {column}: found {found[:40]!r}; allowed: {allowed}")


def _in_order(name: str, rows: Iterator[tuple[int, int, int]]) -> Trace:
    """Rows as they come, 24 bytes each: times since 1970 need more than 64 bits, their span not."""
    columns = (array("q"), array("q"), array("q"))
    most_ps = int(MAX_SPAN_S) * PS_PER_S
    zero_ps = first_ps = last_ps = 0
    for arrival, prompt, output in rows:
        if not columns[0]:
            zero_ps = first_ps = last_ps = arrival
        first_ps, last_ps = min(first_ps, arrival), max(last_ps, arrival)
        if last_ps - first_ps > most_ps:
            raise InputError(f"{name}: arrivals span more than 100 days")
        for column, value in zip(columns, (arrival - zero_ps, prompt, output), strict=True):
            column.append(value)
    if not columns[0]:
        raise InputError(f"{name}: holds no requests")
    arrivals, prompts, outputs = (np.array(column, dtype=np.int64) for column in columns)
    arrivals -= first_ps - zero_ps
    order = np.argsort(arrivals, kind="stable")
    return Trace(arrivals[order], prompts[order], outputs[order])
