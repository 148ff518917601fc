"""What several commands read alike."""

import re
from typing import NamedTuple

from tlm.errors import InputError

_GRID = re.compile(r"([1-9]\d*)x([1-9]\d*)")


def parse_grid(option: str, text: str) -> tuple[int, int]:
    """Rows and columns from ``ROWSxCOLS``.

    Raises:
        InputError: naming the option, if it has another form.
    """
    found = _GRID.fullmatch(text)
    if found is None:
        raise InputError(f"{option}: found '{text}'; write ROWSxCOLS, such as 8x8")
    return int(found[1]), int(found[2])


class Flag(NamedTuple):
    """How a command calls a field of its options.

    Attributes:
        name: If it is not that of the field.
        metavar: What its value is called.
    """

    name: str | None = None
    metavar: str | None = None
