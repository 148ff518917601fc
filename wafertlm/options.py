"""What several commands read alike."""

import re

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
