"""Command lines that differ in some options, each read as its command reads it."""

from collections.abc import Sequence
from dataclasses import MISSING, fields
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from tlm.errors import InputError, choose
from wafertlm.commands.common import required
from wafertlm.iteration import IterationOptions
from wafertlm.kernel import KernelOptions
from wafertlm.noc import NocOptions
from wafertlm.serving import ServeOptions

#: Commands whose runs can be compared, and what their options are.
OPTIONS: dict[str, type[Any]] = {
    "noc": NocOptions,
    "kernel": KernelOptions,
    "iteration": IterationOptions,
    "serve": ServeOptions,
}
_SET = "set:"
_FLAG = {"on": True, "off": False}


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
    reader: click.Command = import_module(f"wafertlm.commands.{command}").command
    axes = [_axis(each) for each in vary]
    found = []
    for chosen in product(*(values for _, values in axes)):
        values = dict(zip((name for name, _ in axes), chosen, strict=True))
        more = [word for pair in values.items() for word in _words(reader, command, *pair)]
        found.append(Variant(values, _read(reader, command, [*given, *more])))
    return found


def varied(vary: Sequence[str]) -> list[dict[str, Any]]:
    """What varies, as a result keeps it."""
    return [{"option": name, "values": values} for name, values in map(_axis, vary)]


def _axis(text: str) -> tuple[str, list[str]]:
    name, _, rest = text.partition("=")
    values = rest.split(";" if ";" in rest else ",")
    if not name or len(values) < 2 or not all(values):
        raise InputError(f"--vary: found '{text}'; write OPTION=V1,V2, such as rtl=A.toml,B.toml")
    return name.removeprefix("--"), values


def _words(reader: click.Command, command: str, name: str, value: str) -> list[str]:
    """What a value is on the command line."""
    known = {field.name for field in fields(OPTIONS[command])}
    if name.startswith(_SET) and "set" in known:
        return ["--set", f"{name.removeprefix(_SET)}={value}"]
    allowed = {
        option.lstrip("-"): parameter
        for parameter in reader.params
        for option in parameter.opts
        if parameter.name in known - {"set"}
    }
    if name not in allowed:
        figures = ["set:TABLE.FIELD"] if "set" in known else []
        raise InputError(
            f"--vary: found '{name}'; allowed for {command}: {', '.join([*allowed, *figures])}"
        )
    parameter = allowed[name]
    if isinstance(parameter, click.Argument):
        return [value]
    if not getattr(parameter, "is_flag", False):
        return [f"--{name}", value]
    if value not in _FLAG:
        raise InputError(f"--vary: {name}: found '{value}'; allowed: {', '.join(_FLAG)}")
    return [f"--{name}"] if _FLAG[value] else []


def _read(reader: click.Command, command: str, words: list[str]) -> Any:
    """The options that a command line is.

    Raises:
        InputError: if one is missing, or is there that has nothing to do with figures.
    """
    record = OPTIONS[command]
    known = {field.name: field for field in fields(record)}
    with reader.make_context(command, words) as context:
        for name in context.params:
            if name in known or context.get_parameter_source(name) != ParameterSource.COMMANDLINE:
                continue
            raise InputError(
                f"--{name.replace('_', '-')}: found with compare; allowed: options of {command} "
                "on which figures depend"
            )
        given = {name: value for name, value in context.params.items() if name in known}
    required(command, given, [f.name for f in known.values() if f.default is MISSING])
    return record(**given)
