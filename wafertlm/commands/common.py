"""What commands have in common: how records of options become theirs, and what all can do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import click

from tlm.errors import InputError
from wafertlm.options import Flag
from wafertlm.output import Result, emit

_Command = Callable[..., None]
_AS_THE_FIELD = Flag()


def options_of(record: type, names: Sequence[str] = ()) -> Callable[[_Command], _Command]:
    """The options that the fields of a record are, in their order.

    Args:
        record: A dataclass. A field that is an option is annotated with its help, and with a
            `Flag` if it is called otherwise.
        names: Some fields only; empty: all that are options.
    """
    hints = get_type_hints(record, include_extras=True)

    def decorated(command: _Command) -> _Command:
        for field in reversed(fields(record)):
            kind, *told = get_args(hints[field.name]) or (None,)
            if told and (not names or field.name in names):
                default = None if field.default is MISSING else field.default
                command = _option(field.name, kind, default, *told)(command)
        return command

    return decorated


def _option(
    name: str, kind: Any, default: Any, told: str, flag: Flag = _AS_THE_FIELD
) -> Callable[[_Command], _Command]:
    many = get_origin(kind) is tuple
    kind = next((each for each in get_args(kind) if each is not type(None)), kind)
    return click.option(
        flag.name or f"--{name.replace('_', '-')}",
        name,
        type=click.Path(path_type=Path) if kind is Path else kind,
        is_flag=kind is bool,
        multiple=many,
        default=default,
        show_default=default is not None and kind is not bool and not many,
        metavar=flag.metavar,
        help=told,
    )


def output_options(known_names: Callable[[], Result]) -> Callable[[_Command], _Command]:
    """The options ``--json`` and ``--list``; the latter prints names and does nothing else.

    Args:
        known_names: What the other options may name, a list for each kind.
    """

    def decorated(command: _Command) -> _Command:
        @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
        @click.option("--list", "as_list", is_flag=True, help="Print what the options may name.")
        @wraps(command)
        def listing(as_json: bool, as_list: bool, **given: Any) -> None:
            if as_list:
                emit(known_names(), as_json, render_names)
            else:
                command(as_json=as_json, **given)

        return listing

    return decorated


def render_names(names: Result) -> str:
    """What ``--list`` prints: a line for each kind of name."""
    return "\n".join(f"{kind}: {', '.join(known)}" for kind, known in names.items())


def required(command: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Hold that options have been given.

    Raises:
        InputError: naming the first that has not.
    """
    for name in names:
        if given[name] is None:
            raise InputError(f"{command}: {name} not given; see --help and --list")
