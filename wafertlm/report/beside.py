"""Files beside a stored result: maps of tiles, tables of requests, timelines."""

import csv
import gzip
import json
import zlib
from array import array
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib.format import read_array
from numpy.typing import NDArray

from tlm.errors import InputError
from tlm.files import bounded_lines, open_to_read, read_bytes

MAP_ARRAYS = ("finish_cycle", "matrix_busy_cycles", "wait_cycles")
LINK_ARRAYS = tuple(f"link_flits_{way}" for way in ("north", "east", "south", "west"))
REQUEST_COLUMNS = ("ttft_s", "e2e_s", "mean_tbt_ms")

Values = NDArray[np.float64]
_MOST_BYTES = 64 << 20
_GREATEST = 1e18
#: What reading a file that is no map may raise.
_NO_MAP = (
    *(BadZipFile, EOFError, KeyError, MemoryError, NotImplementedError, OSError),
    *(RuntimeError, ValueError, zlib.error),
)


class Span(NamedTuple):
    """Something that a tile does.

    Attributes:
        tile: The tile's name.
        engine: What works.
        label: Of the operation.
        start_cycle: When it begins.
        cycles: How long it takes.
    """

    tile: str
    engine: str
    label: str
    start_cycle: float
    cycles: float


def load_map(path: Path) -> dict[str, Values]:
    """Arrays over the tiles: ``MAP_ARRAYS``, and those of ``LINK_ARRAYS`` that are there.

    Raises:
        InputError: naming the file, if it is no map.
    """
    try:
        with ZipFile(BytesIO(read_bytes(path, str(path)))) as arrays:
            found = {name: _array(arrays, name) for name in MAP_ARRAYS}
            links = set(LINK_ARRAYS) & {name.removesuffix(".npy") for name in arrays.namelist()}
            found |= {name: _array(arrays, name) for name in sorted(links)}
    except _NO_MAP as error:
        raise InputError(f"{path}: needs the arrays {', '.join(MAP_ARRAYS)}: {error}") from error
    shapes = {values.shape for values in found.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2 or not all(map(_usual, found.values())):
        raise InputError(
            f"{path}: found arrays of shapes {shapes}; allowed: numbers of cycles over rows and "
            "columns of one grid"
        )
    return found


def _usual(values: Values) -> bool:
    """Whether there are numbers, all of which can be drawn."""
    return values.size > 0 and bool((np.abs(values) < _GREATEST).all())


def _array(arrays: ZipFile, name: str) -> Values:
    """An array of so many bytes as a map may have, whatever it says of its size."""
    content = arrays.open(f"{name}.npy").read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{name} has more than {_MOST_BYTES} bytes")
    return np.asarray(read_array(BytesIO(content), allow_pickle=False), dtype=np.float64)


def load_requests(path: Path) -> dict[str, Values]:
    """Columns of the request table, without their empty cells (one token has no interval).

    Raises:
        InputError: naming the file, if it is no such table.
    """
    found = {name: array("d") for name in REQUEST_COLUMNS}
    try:
        with TextIOWrapper(open_to_read(path), newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(bounded_lines(stream)):
                for name, values in found.items():
                    if row[name]:
                        values.append(float(row[name]))
                        if not abs(values[-1]) < _GREATEST:
                            raise ValueError(f"found {row[name]}")
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        wanted = ", ".join(REQUEST_COLUMNS)
        raise InputError(f"{path}: needs numbers in the columns {wanted}: {error}") from error
    return {name: np.array(values) for name, values in found.items()}


def load_spans(path: Path) -> list[Span]:
    """Spans of a timeline that ``wafertlm kernel --timeline`` has written, in its order.

    Raises:
        InputError: naming the file, if it is no timeline.
    """
    try:
        with gzip.open(BytesIO(read_bytes(path, str(path)))) as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        return _spans(json.loads(content)["traceEvents"])
    except (
        *(AttributeError, EOFError, KeyError, OSError, OverflowError, RecursionError),
        *(TypeError, ValueError, zlib.error),
    ) as error:
        raise InputError(f"{path}: needs a timeline of wafertlm kernel: {error}") from error


def _spans(events: list[dict[str, Any]]) -> list[Span]:
    tiles: dict[Any, str] = {}
    engines: dict[Any, str] = {}
    found = []
    for event in events:
        if event["ph"] == "M":
            name = str(event["args"]["name"])
            if event["name"] == "process_name":
                tiles[event["pid"]] = name
            elif event["name"] == "thread_name":
                engines[event["pid"], event["tid"]] = name
        elif event["ph"] == "X":
            start, cycles = float(event["ts"]), float(event["dur"])
            if not (0 <= start < _GREATEST and 0 <= cycles < _GREATEST):
                raise ValueError(f"found a span of {cycles} cycles from {start} on")
            where = event["pid"], event["tid"]
            found.append(Span(tiles[where[0]], engines[where], str(event["name"]), start, cycles))
    return found
