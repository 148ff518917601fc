"""Keywords of a Python call, read as the command's options are."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from tlm.errors import InputError, choose
from wafertlm.commands import find_command
from wafertlm.commands.config import option_values, words_of

#: Options that say rows and columns.
_SIDES = ("grid", "mesh", "group")


def given_options(command: str, record: type, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """What a call gives, as the command's own function gets it.

    Numbers may stand for text. Sizes may be tuples, changes of a chip's figures a mapping, paths
    of the standard library's class. None is what was left out.

    Args:
        command: Name of the command.
        record: Its options, a dataclass.
        keywords: By names of the fields, or of the options with ``_`` for ``-``.

    Raises:
        InputError: for an unknown keyword, or a value that the command would refuse.
    """
    reader, known = find_command(command), _fields(record)
    values = dict(option_values(reader, _asked(keywords), command, known))
    try:
        with reader.make_context(command, [], default_map=values) as context:
            return {name: each for name, each in context.params.items() if name in known}
    except click.UsageError as error:
        raise InputError(error.format_message().rstrip(".")) from error


def option_words(
    command: str, commands: Mapping[str, type], keywords: Mapping[str, Any]
) -> list[str]:
    """The same as words behind a command's name, for a command that runs another.

    Args:
        command: Name of the other command.
        commands: Those that are allowed, and what their options are.
        keywords: As in `given_options`.

    Raises:
        InputError: for an unknown command or keyword, or a value of another kind.
    """
    record = commands[choose("command", command, list(commands))]
    return words_of(find_command(command), _asked(keywords), command, _fields(record))


def _fields(record: type) -> set[str]:
    return {field.name for field in fields(record)}


def _asked(keywords: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _as_typed(name, each) for name, each in keywords.items() if each is not None}


def _as_typed(name: str, value: Any) -> Any:
    """A value as a file of options has it."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return [f"{figure}={each}" for figure, each in value.items()]
    if isinstance(value, tuple) and all(isinstance(each, int) for each in value):
        return ("x" if name in _SIDES else ",").join(map(str, value))
    return list(value) if isinstance(value, tuple) else value
