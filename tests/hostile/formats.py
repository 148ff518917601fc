"""Files as nobody writes them: those that the program ships and stores, with a part changed.

A change is made in the grammar of the format where there is one, a key or a value of TOML or JSON,
a cell of a table, an array of a map; or in the bytes.
"""

import io
import json
import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import tomli_w
from hypothesis import strategies as st

_NUMBERS = (0, -1, 1, 2**31, 2**63, 10**30, 0.5, 1e308, 1e-308, float("nan"), float("inf"))
_SCALARS = (*_NUMBERS, True, "", "x", "a" * 1000, "\x1b[2J[red]", "../..", "4x4", "0x0")
_VALUES: "st.SearchStrategy[Any]" = st.recursive(
    st.sampled_from(_SCALARS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
_CELLS = ("", "0", "-1", "1e999", "nan", "9" * 5000, "x", '"', "1_0", "٣", "\xff", "a" * 200_000)
_DEEP = {
    "toml": f"a = {'[' * 3000}{']' * 3000}",
    "json": "[" * 100_000,
    "csv": "1," * 600_000,
    "npz": "PK",
}


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a table."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, Any]] = []
    for key, one in inner:
        found.append((value, key))
        if isinstance(one, dict | list) and one:
            found += _places(one)
    return found


@st.composite
def tables(draw: st.DrawFn, table: Any) -> Any:
    """A table of which up to three keys are others, missing, or of other values."""
    changed = deepcopy(table)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(changed)
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        what = draw(st.integers(0, 9))
        if what == 0:
            del container[key]
        elif what == 1 and isinstance(container, dict):
            container[draw(st.text(max_size=8))] = container.pop(key)
        elif what == 2 and isinstance(container, dict):
            container["new"] = draw(_VALUES)
        elif what == 3 and isinstance(container, list):
            container.append(deepcopy(container[key]))
        else:
            container[key] = draw(_VALUES)
    return changed


@st.composite
def _bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes, some of which are missing, twice, or others."""
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    middle = draw(st.sampled_from([b"", content[first:last] * 2, b"\0", b"\xff\xfe", b"9" * 5000]))
    return content[:first] + middle + content[last:]


@st.composite
def _rows(draw: st.DrawFn, content: bytes) -> bytes:
    """A table of cells, one or two of which are others."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    for _ in range(draw(st.integers(1, 2))):
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(_CELLS))
    return "\n".join(map(",".join, rows)).encode()


@st.composite
def _maps(draw: st.DrawFn, content: bytes) -> bytes:
    """Arrays by name, one of which is of another shape, type or name."""
    arrays = dict(np.load(io.BytesIO(content)))
    name = draw(st.sampled_from(sorted(arrays)))
    shape = draw(st.sampled_from([(), (0,), (2, 2), (0, 0), (1, 1, 1), (200, 200)]))
    kind = draw(st.sampled_from(["f8", "f4", "i1", "u8", "c16", "U3", "M8[s]", "?"]))
    arrays[name if draw(st.booleans()) else "x"] = np.zeros(shape, kind)
    np.savez_compressed(file := io.BytesIO(), **arrays)
    return file.getvalue()


def _toml(content: bytes) -> "st.SearchStrategy[bytes]":
    def text(table: Mapping[str, Any]) -> bytes:
        try:
            return tomli_w.dumps(table).encode()
        except (TypeError, ValueError):
            return b""

    return tables(tomllib.loads(content.decode())).map(text)


def _json(content: bytes) -> "st.SearchStrategy[bytes]":
    return tables(json.loads(content)).map(lambda table: json.dumps(table).encode())


_GRAMMARS: dict[str, Callable[[bytes], "st.SearchStrategy[bytes]"]] = {
    "toml": _toml,
    "json": _json,
    "csv": _rows,
    "npz": _maps,
}


def changed(content: bytes, ending: str) -> "st.SearchStrategy[bytes]":
    """A file that is like another, by its format's grammar or its bytes."""
    found = _bytes(content) | st.sampled_from([b"", b"\xff", _DEEP.get(ending, "").encode()])
    grammar = _GRAMMARS.get(ending)
    return found if grammar is None else st.one_of(*[grammar(content)] * 4, found)
