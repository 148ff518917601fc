"""What several commands read and list alike."""

import re

from tlm.errors import InputError
from wafertlm.output import Result

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


def render_names(names: Result) -> str:
    """What ``--list`` prints: a line for each kind of name."""
    return "\n".join(f"{kind}: {', '.join(known)}" for kind, known in names.items())
