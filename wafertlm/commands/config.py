"""Options of a command in a file: ``--config`` reads it, ``--print-config`` writes it.

A file is TOML with a field for each option, called as on the command line, or a stored result.
Options on the command line take the place of those in the file; paths are as they are there.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tlm.errors import InputError, choose
from wafertlm.commands import find_command
from wafertlm.commands.repeated import options_of_result

_COMMAND, _OPTIONS = "command", "options"
#: What a command line says of how it prints, not of the run.
_BESIDE = {"as_json", "as_list", "config", "print_config"}
_META = "wafertlm.config"


@dataclass(slots=True)
class Configured:
    """What a command line says of configurations.

    Attributes:
        file: Where options come from; None: from the command line alone.
        stored: The result that the file is; None: it is none.
        is_to_print: Whether the options are printed in place of the run.
    """

    file: Path | None = None
    stored: Mapping[str, Any] | None = None
    is_to_print: bool = False

    @classmethod
    def of(cls, context: click.Context) -> "Configured":
        """What the command line of a context says."""
        found: Configured = context.meta.setdefault(_META, cls())
        return found


def config_options() -> list[click.Option]:
    """The two options, of every command that runs something."""
    return [
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=_read,
            help="Take options from a TOML file, or from a stored result (JSON).",
        ),
        click.Option(
            ["--print-config"],
            is_flag=True,
            expose_value=False,
            callback=_to_print,
            help="Print the options as such a file, and run nothing.",
        ),
    ]


def config_text(context: click.Context) -> str:
    """The file that repeats a command line: what was given, by any means.

    Raises:
        InputError: for a command that is not compared.
    """
    import tomli_w  # slow to import: only to print

    command = context.command
    found: dict[str, Any] = {_COMMAND: command.name, **_given(context)}
    compared, words = found.get("compared"), _words_of_another(command)
    if words is not None and compared is not None:
        choose("command", compared, _comparable())
        listed = found.pop(words, [])
        with find_command(compared).make_context(compared, listed) as inner:
            found[_OPTIONS] = _given(inner)
    return tomli_w.dumps(found)


def told_in_file(context: click.Context, error: click.BadParameter) -> str | None:
    """A fault of a value that stands in the file: file, field and fault; None of others."""
    option, file = error.param, Configured.of(context).file
    if file is None or option is None or option.name is None:
        return None
    in_file = context.get_parameter_source(option.name) is ParameterSource.DEFAULT_MAP
    return f"{file}: {_key(option)}: {error.message}" if in_file else None


def _to_print(context: click.Context, option: click.Parameter, asked: bool) -> None:
    Configured.of(context).is_to_print = asked


def _read(context: click.Context, option: click.Parameter, file: Path | None) -> None:
    """Take what a file says for what the command line leaves open."""
    if file is None:
        return
    from tlm.tables import json_value, toml_fields  # slow to import: only to read

    told, configured = str(file), Configured.of(context)
    if file.suffix == ".json":
        configured.stored = json_value(file, told)
        found = options_of_result(configured.stored, told)
    else:
        found = toml_fields(file, told)
    name = str(context.command.name)
    of = found.pop(_COMMAND, name)
    if of != name:
        raise InputError(f"{told}: {_COMMAND}: found '{of}'; allowed: '{name}'")
    words = _words_of_another(context.command)
    if words is not None:
        found[words] = _as_words(found, told)
    configured.file = file
    context.default_map = dict(option_values(context.command, found, told))


def option_values(
    command: click.Command, found: Mapping[str, Any], told: str, names: Container[str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Values by the names of parameters, in the words of a command line.

    Args:
        command: Whose options they are.
        found: Values by the options, or by the fields that results name.
        told: Where they stand, for messages.
        names: Parameters that are allowed; None: all that have to do with the run.

    Raises:
        InputError: for an unknown option, or a value of another kind.
    """
    allowed = [each for each in command.params if each.name not in _BESIDE]
    allowed = [each for each in allowed if names is None or each.name in names]
    known = {_key(each): each for each in allowed}
    named = {each.name: each for each in allowed}
    for key, value in found.items():
        option = known.get(key) or known.get(key.replace("_", "-")) or named.get(key)
        if option is None:
            raise InputError(f"{told}: unknown field '{key}'; known: {', '.join(sorted(known))}")
        yield str(option.name), _worded(option, value, f"{told}: {key}")


def _given(context: click.Context) -> dict[str, Any]:
    """Options that were not left out."""
    found = {}
    for option in context.command.params:
        name = option.name or ""
        value = context.params.get(name)
        left_out = context.get_parameter_source(name) is ParameterSource.DEFAULT
        if name not in _BESIDE and not left_out and value not in (None, ()):
            found[_key(option)] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _words_of_another(command: click.Command) -> str | None:
    """The argument that holds the options of another command; None of most."""
    return next((each.name for each in command.params if each.nargs == -1), None)


def _as_words(found: dict[str, Any], told: str) -> list[str]:
    """The table of another command's options, as words behind its name."""
    inner, compared = found.pop(_OPTIONS, {}), found.get("compared")
    if not isinstance(inner, dict) or not isinstance(compared, str):
        raise InputError(
            f"{told}: compared: found {compared!r}; allowed: a command, its options in [{_OPTIONS}]"
        )
    if compared not in (known := _comparable()):
        allowed = ", ".join(known)
        raise InputError(f"{told}: compared: found '{compared}'; allowed: {allowed}")
    return words_of(find_command(compared), inner, f"{told}: {_OPTIONS}")


def words_of(
    command: click.Command, found: Mapping[str, Any], told: str, names: Container[str] | None = None
) -> list[str]:
    """Options as words behind a command's name; all else as `option_values`."""
    arguments, words = [], []
    options = {each.name: each for each in command.params}
    for name, value in option_values(command, found, told, names):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(options[name], click.Argument):
                arguments.append(each)
            elif each is not False:
                flag = options[name].opts[0]
                words += [flag] if each is True else [flag, each]
    return arguments + words


def _worded(option: click.Parameter, value: Any, told: str) -> Any:
    if getattr(option, "is_flag", False):
        if not isinstance(value, bool):
            raise InputError(f"{told}: found {value!r}; allowed: true or false")
        return value
    if getattr(option, "multiple", False) or option.nargs == -1:
        if not isinstance(value, list):
            raise InputError(f"{told}: found {value!r}; allowed: a list")
        return [_word(each, told) for each in value]
    return _word(value, told)


def _word(value: Any, told: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{told}: found {value!r}; allowed: text or a number")
    return str(value)


def _key(option: click.Parameter) -> str:
    """How a file calls an option: as the command line does."""
    if isinstance(option, click.Argument):
        return str(option.name)
    return max(option.opts, key=len).lstrip("-")


def _comparable() -> list[str]:
    from wafertlm.command_words import OPTIONS  # slow to import: only for comparisons

    return list(OPTIONS)
