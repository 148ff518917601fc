"""The one exception that a user's bad input raises, and what often raises it."""

from textwrap import shorten

_LONGEST_LIST = 240


class InputError(Exception):
    """Input that cannot be used.

    The message is one line that names the file or option, the field, what was found and what is
    allowed. The command prints it and exits with status 2; no traceback is shown.
    """


def check_range(name: str, found: float, least: int, most: int) -> None:
    """Hold that a number is one of a range.

    Raises:
        InputError: naming what was found and the range.
    """
    if not least <= found <= most:
        raise InputError(f"{name}: found {found}; allowed: {least} to {most}")


def choose(kind: str, name: str, known: dict[str, object] | list[str] | tuple[str, ...]) -> str:
    """Return ``name`` if it is one of ``known``.

    Raises:
        InputError: naming the kind, what was found and every known name.
    """
    if name in known:
        return name
    names = shorten(", ".join(sorted(known)), _LONGEST_LIST, placeholder=" ... (all: --list)")
    raise InputError(f"unknown {kind} '{name}'; known: {names}")


def hold_least(name: str, found: int, least: int) -> None:
    """Hold that a number is not too small.

    Raises:
        InputError: naming it, what was found and the least that is allowed.
    """
    if found < least:
        raise InputError(f"{name}: found {found}; allowed: {least} or more")
