"""Command lines that differ in some options, each read as its command reads it."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from tlm.errors import InputError, choose
from wafertlm.command_words import OPTIONS, CommandWords
from wafertlm.options import separate_values


class Variant(NamedTuple):
    """One of the command lines.

    Attributes:
        values: What was put in, by what varies.
        options: The record of the command's options.
    """

    values: dict[str, str]
    options: Any


def variants(command: str, given: Sequence[str], vary: Sequence[str]) -> list[Variant]:
    """All combinations of what varies, in the order in which it is written.

    Args:
        command: One of `OPTIONS`.
        given: What stands behind it, the same for all.
        vary: ``OPTION=V1,V2``, of a chip's figures ``set:TABLE.FIELD=V1,V2``. Values that have
            commas of their own are told apart by semicolons.

    Raises:
        InputError: for an unknown command or option, or what is written in another form.
        click.UsageError: for what the command does not understand.
    """
    choose("command", command, list(OPTIONS))
    if not vary:
        raise InputError("--vary: not given; write OPTION=V1,V2, such as rtl=A.toml,B.toml")
    varied_words, all_words = CommandWords(command, "--vary"), CommandWords(command, "compare")
    axes = [_axis(each) for each in vary]
    names = [name for name, _ in axes]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--vary: found '{name}' twice; write all its values in one --vary")
    found = []
    for chosen in product(*(values for _, values in axes)):
        values = dict(zip(names, chosen, strict=True))
        more = [word for pair in values.items() for word in varied_words.words(*pair)]
        found.append(Variant(values, all_words.read([*given, *more])))
    return found


def varied(vary: Sequence[str]) -> list[dict[str, Any]]:
    """What varies, as a result keeps it."""
    return [{"option": name, "values": values} for name, values in map(_axis, vary)]


def _axis(text: str) -> tuple[str, list[str]]:
    name, _, rest = text.partition("=")
    values = separate_values(rest)
    if not name or len(values) < 2 or not all(values):
        raise InputError(f"--vary: found '{text}'; write OPTION=V1,V2, such as rtl=A.toml,B.toml")
    return name.removeprefix("--"), values
