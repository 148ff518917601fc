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


class Option(NamedTuple):
    """What a field of a record of options is as an option of a command.

    Attributes:
        help: What it means.
        flag: Its name, if it is not that of the field.
        metavar: What its value is called.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
