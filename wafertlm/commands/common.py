"""What commands have in common: their last options, and what they cannot do without."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import click

from tlm.errors import InputError
from wafertlm.output import Result, emit

_Command = Callable[..., None]


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
