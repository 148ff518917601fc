"""What a trial asks: a command's options at a point, and by what its answer is known again."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import tomli_w

from tlm.calibrated import REPOSITORY, file_hash
from tlm.chips import find_chip
from tlm.errors import InputError
from tlm.files import is_file, whole_file
from tlm.tables import toml_fields
from wafertlm import __version__
from wafertlm.command_words import SET, CommandWords
from wafertlm.explore.file import ExploreFile, file_beside, near
from wafertlm.explore.space import Point, Space
from wafertlm.output import config_hash, plain
from workloads.models import find_model
from workloads.models.model import Model
from workloads.studies.campaign import sources_hash

#: What a parameter may change beside options: figures of the chip, fields of the model, parameters
#: of the routers' Verilog.
_SET, _MODEL, _RTL = "set:", "model:", "rtl:"
#: All that decides a result, beside what a user gives.
_SOURCES = ("tlm", "workloads", "wafertlm", "cosim", "calibration")
_NO_NAME = re.compile(r"[^a-z0-9]+")
_VERILOG = ".sv"
_Given = TypeVar("_Given")


class Job(NamedTuple):
    """A run of a command.

    Attributes:
        command: The command.
        options: The record of its options.
        has_gates: Whether gates of its routers are counted, too.
        has_toggles: Whether toggles are.
        is_quick: Whether routers that are not calibrated get a quick calibration.
        key: Of equal jobs it is equal, on every machine.
        words: The command line.
    """

    command: str
    options: Any
    has_gates: bool
    has_toggles: bool
    is_quick: bool
    key: str
    words: tuple[str, ...]

    @property
    def shown(self) -> str:
        """As a user would run it."""
        return shlex.join(["wafertlm", self.command, *self.words])


@dataclass(frozen=True)
class Question:
    """An exploration's question, which its points complete.

    Attributes:
        asked: The file's content.
        file: The file. What names a file beside it is that file.
        kept: Folder of derived models and specifications.
    """

    asked: ExploreFile
    file: Path
    kept: Path

    def job(self, point: Point, level: str | None = None) -> Job:
        """The run at a point.

        Args:
            point: A value of each parameter.
            level: Instead of the options' own.

        Raises:
            InputError: for options that the command does not understand.
        """
        try:
            words = self._words(self.options(point, level))
            options = self._reader.read(words)
        except click.UsageError as error:
            raise InputError(error.format_message().rstrip(".")) from error
        asked = self.asked
        counted = (asked.needs_gates(), asked.needs_gates(".toggles"))
        quick = asked.calibration == "quick"
        content = {
            "sources": _product(),
            "version": __version__,
            "command": asked.command,
            "options": {name: _content(name, v) for name, v in plain(asdict(options)).items()},
            "counted": counted,
            "calibration": quick,
        }
        return Job(asked.command, options, *counted, quick, config_hash(content), tuple(words))

    def options(self, point: Point, level: str | None = None) -> dict[str, Any]:
        """Options by name at a point, derived files in place of what changes them.

        Raises:
            InputError: for a model that makes no sense.
        """
        folder = self.file.parent
        found = {name: _in_folder(folder, value) for name, value in self.asked.options.items()}
        changes: dict[str, dict[str, Any]] = {_SET: {}, _MODEL: {}, _RTL: {}}
        for name, value in point.items():
            kind = next((each for each in changes if name.startswith(each)), None)
            if kind is None:
                found[name] = _in_folder(folder, value)
            else:
                changes[kind][name.removeprefix(kind)] = value
        if level is not None:
            found["level"] = level
        sets = [f"{path}={_toml(value)}" for path, value in changes[_SET].items()]
        if sets:
            found[SET] = [*found.get(SET, ()), *sets]
        if changes[_MODEL]:
            found["model"] = str(self._model(str(found["model"]), changes[_MODEL]))
        if changes[_RTL]:
            found["rtl"] = str(self._specification(Path(found["rtl"]), changes[_RTL]))
        return found

    def hold(self, space: Space) -> None:
        """Hold that the command understands all that the file says, before anything runs.

        Raises:
            InputError: naming the file, the field, what was found and what is allowed.
        """
        self._hold_names()
        first, fixed = space.first, list(self.asked.options.get(SET, ()))
        self._try("options.set", self._hold_chip, fixed)
        for axis in space.axes:
            path = axis.name.removeprefix(_SET)
            for end in axis.ends if axis.name != path else ():
                changes = [*fixed, f"{path}={_toml(end)}"]
                self._try(f"parameters.{axis.name}", self._hold_chip, changes)
        self._try("options", self.job, first)
        for axis in space.axes:
            # Some fields of models make sense with others alone.
            for end in axis.ends if not axis.name.startswith(_MODEL) else ():
                point = first | {axis.name: end}
                self._try(f"parameters.{axis.name}", self.job, point)

    def _try(self, field: str, what: Callable[[_Given], object], given: _Given) -> None:
        try:
            what(given)
        except InputError as error:
            raise InputError(f"{self.file}: {field}: {error}") from error

    def _hold_chip(self, changes: Sequence[str]) -> None:
        chip = self.asked.options.get("chip")
        if changes and isinstance(chip, str):
            find_chip(file_beside(self.file.parent, chip), changes)

    def _hold_names(self) -> None:
        given, folder = self.asked.options, self.file.parent
        for name in given:
            if name != SET:
                CommandWords(self.asked.command, f"{self.file}: options").hold_option(name)
        changes = given.get(SET, ())
        if not isinstance(changes, tuple) or not all(isinstance(each, str) for each in changes):
            raise InputError(
                f"{self.file}: options.{SET}: found {changes!r}; allowed: texts, as "
                '["noc.hop_cycles=2"]'
            )
        for name in self.asked.parameters:
            field = f"{self.file}: parameters.{name}"
            kind = next((each for each in (_MODEL, _RTL) if name.startswith(each)), None)
            if kind is None:
                CommandWords(self.asked.command, f"{self.file}: parameters").hold_option(name)
                continue
            option, path = kind.removesuffix(":"), name.removeprefix(kind)
            if not isinstance(given.get(option), str):
                raise InputError(f"{field}: found without options.{option}; allowed: with it")
            if kind == _MODEL:
                path, known = path.split(".")[0], [*Model.model_fields.keys() - {"name"}]
            else:
                known = [*self._verilog_parameters(Path(file_beside(folder, given["rtl"])))]
            if path not in known:
                allowed = ", ".join(sorted(known)) or "none: rtl.parameters has none"
                raise InputError(f"{field}: found '{path}'; allowed: {allowed}")

    def _verilog_parameters(self, spec: Path) -> Mapping[str, Any]:
        from cosim.spec.mesh import load_spec  # slow to import: only for custom routers

        try:
            return load_spec(spec).rtl.parameters
        except InputError as error:
            raise InputError(f"{self.file}: options.rtl: {error}") from error

    def _words(self, options: Mapping[str, Any]) -> list[str]:
        words: list[str] = []
        for name, value in options.items():
            for one in value if isinstance(value, list | tuple) else (value,):
                is_one = isinstance(one, bool | int | float | str)
                if not is_one or (one is not value and not self._repeats(name)):
                    raise InputError(f"{name}: found {value!r}; allowed: one value")
                words += (
                    ["--set", str(one)] if name == SET else self._reader.words(name, _word(one))
                )
        return words

    def _repeats(self, name: str) -> bool:
        return name == SET or self._reader.is_repeatable(name)

    @cached_property
    def _reader(self) -> CommandWords:
        return CommandWords(self.asked.command, str(self.file))

    def _model(self, asked: str, changes: Mapping[str, Any]) -> Path:
        fields = find_model(asked).model_dump(exclude_none=True)
        name = _derived(fields["name"], changes)
        for path, value in changes.items():
            *tables, field = path.split(".")
            table = fields
            for each in tables:
                table = table.setdefault(each, {})
                if not isinstance(table, dict):
                    raise InputError(f"model:{path}: found '{each}', which is no table")
            table[field] = value
        fields["name"] = name
        Model.made(fields, ", ".join(f"model:{path}" for path in changes))
        return self._keep(f"{name}.toml", fields)

    def _specification(self, spec: Path, changes: Mapping[str, Any]) -> Path:
        fields = toml_fields(spec, str(spec))
        name = _derived(fields["name"], changes)
        for key in ("sources", "include_folders"):
            if key in fields["rtl"]:
                fields["rtl"][key] = [str((spec.parent / p).resolve()) for p in fields["rtl"][key]]
        fields["rtl"]["parameters"] = fields["rtl"].get("parameters", {}) | changes
        fields["name"] = name
        return self._keep(f"{name}.toml", fields)

    def _keep(self, name: str, fields: Mapping[str, Any]) -> Path:
        path, text = self.kept / name, tomli_w.dumps(fields)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            with whole_file(path) as scratch:
                scratch.write_text(text, encoding="utf-8")
        return path


def hold_figure(figures: Mapping[str, float | None], path: str, told: str) -> None:
    """Hold that there is a figure of a path.

    Raises:
        InputError: with those that are like it.
    """
    if path not in figures:
        raise InputError(f"{told}: found '{path}'; allowed: {near(path, figures)}")


def _derived(name: str, changes: Mapping[str, Any]) -> str:
    """A name with what was changed, as names of routers may be."""
    told = "-".join(f"{path}-{value}" for path, value in changes.items())
    return _NO_NAME.sub("-", f"{name}-{told}".lower()).strip("-")


def _in_folder(folder: Path, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [file_beside(folder, each) for each in value]
    return file_beside(folder, value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _toml(value: Any) -> str:
    """As ``--set`` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _content(name: str, value: Any) -> Any:
    """A value of an option by its content, where it names a file."""
    if isinstance(value, list):
        return [_content(name, each) for each in value]
    if not isinstance(value, str) or not is_file(Path(value)):
        return value
    if name != "rtl":
        return file_hash(Path(value))
    return _verilog(value, file_hash(Path(value)))


@cache
def _verilog(file: str, _content: str) -> list[Any]:
    """What a specification says, and its Verilog, wherever these lie."""
    from cosim.spec.mesh import load_spec  # slow to import: only for custom routers
    from cosim.verilated.cache import included_files

    spec = load_spec(Path(file))
    said = spec.model_dump(mode="json", exclude={"rtl": {"sources", "include_folders"}})
    included = sorted(map(file_hash, included_files(spec.include_folders())))
    return [said, [file_hash(path) for path in spec.source_files()], included]


@cache
def _product() -> list[str]:
    """Content of all that computes results, the project's own Verilog too."""
    verilog: Sequence[Path] = sorted((REPOSITORY / "rtl").rglob(f"*{_VERILOG}"))
    return [sources_hash(_SOURCES), *map(file_hash, verilog)]
