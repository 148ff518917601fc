"""What commands have in common: how records of options become theirs, and what all can do."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import click

from tlm.errors import InputError
from tlm.files import hold_writable, hold_writable_folder
from wafertlm.options import Flag, dashed
from wafertlm.output import Result, emit

_Command = Callable[..., None]
_AS_THE_FIELD = Flag()
_LONGEST_TEXT = 4000
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf|nan")


class WholeNumber(click.types.IntParamType):
    """A whole number in plain digits: Python also reads ``1_0``, blanks and other digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, of at most 18 digits."""
        if isinstance(value, str) and not _DIGITS.fullmatch(value):
            self.fail(f"'{value}' is not a valid integer: write digits, 18 at most", param, ctx)
        return super().convert(value, param, ctx)


class Number(click.types.FloatParamType):
    """A number as it is written everywhere, by the same rule."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; also ``inf``."""
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            self.fail(f"'{value}' is not a valid float: write it as 1.5 or 2e-3", param, ctx)
        return super().convert(value, param, ctx)


class Text(click.types.StringParamType):
    """A text of an option, so long at most that all that is made of it stays small."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text."""
        if len(value) > _LONGEST_TEXT:
            self.fail(f"found {len(value)} characters; allowed: {_LONGEST_TEXT}", param, ctx)
        return super().convert(value, param, ctx)


class OutputFile(click.Path):
    """A file to write, which is found before the work if it cannot be written."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        path = super().convert(value, param, ctx)
        hold_writable(Path(str(path)))
        if param is not None and ctx is not None:
            _hold_alone(Path(str(path)).resolve(), param.opts[0], ctx)
        return path


class PlotFile(OutputFile):
    """A picture to write, in the format that its ending names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        from tlm.plotting import FORMATS  # matplotlib takes long to load

        path = super().convert(value, param, ctx)
        if path.suffix not in FORMATS:
            raise InputError(f"--plot: found '{path}'; allowed: an ending of {', '.join(FORMATS)}")
        return path


def _hold_alone(path: Path, option: str, context: click.Context) -> None:
    """Hold that no other option of the command writes to the same file."""
    other = context.meta.setdefault(f"{__name__}.written", {}).setdefault(path, option)
    if other != option and (path.is_file() or not path.exists()):  # a device may take both
        raise InputError(f"{other}, {option}: found {path.name} twice; allowed: a file each")


class LibertyFile(click.Path):
    """A library of cells to read, which is found before the work if it has none."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        path = Path(str(super().convert(value, param, ctx)))
        if not re.search(rb"\bcell\s*\(", path.read_bytes()):
            raise InputError(f"{path}: found no cell; allowed: a library in Liberty's format")
        return path


class OutputFolder(click.Path):
    """A folder to write to, which is found before the work if it cannot be."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        path = super().convert(value, param, ctx)
        hold_writable_folder(Path(str(path)))
        return path


_TYPES: dict[Any, Any] = {
    int: WholeNumber(),
    float: Number(),
    str: Text(),
    Path: click.Path(path_type=Path),
}


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
        flag.name or dashed(name),
        name,
        type=_TYPES.get(kind, kind),
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
