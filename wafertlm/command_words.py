"""A command's options, read from words as its command line reads them."""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Any

import click
from click.core import ParameterSource

from tlm.errors import InputError
from wafertlm.asked.iteration import IterationOptions
from wafertlm.asked.kernel import KernelOptions
from wafertlm.asked.noc import NocOptions
from wafertlm.asked.serve import ServeOptions
from wafertlm.commands import find_command
from wafertlm.commands.common import required
from wafertlm.options import dashed

#: Commands that others run in this process, and what their options are.
OPTIONS: dict[str, type[Any]] = {
    "noc": NocOptions,
    "kernel": KernelOptions,
    "iteration": IterationOptions,
    "serve": ServeOptions,
}
SET = "set"
_SET_ONE = "set:"
_FLAG = {"on": True, "off": False}


@dataclass(frozen=True)
class CommandWords:
    """What a command understands.

    Attributes:
        command: One of `OPTIONS`.
        told: Where its options stand, for messages: the option or the file.
    """

    command: str
    told: str

    def words(self, name: str, value: str) -> list[str]:
        """What an option with a value is on the command line.

        Args:
            name: The option without its dashes, or ``set:TABLE.FIELD`` for a figure of the chip.
            value: The value as one writes it; of a flag ``on`` or ``off``.

        Raises:
            InputError: for an unknown option, or a flag with another value.
        """
        self.hold_option(name)
        if name.startswith(_SET_ONE):
            return ["--set", f"{name.removeprefix(_SET_ONE)}={value}"]
        parameter = self._allowed[name]
        if isinstance(parameter, click.Argument):
            return [value]
        if not getattr(parameter, "is_flag", False):
            return [f"--{name}", value]
        if value not in _FLAG:
            raise InputError(f"{self.told}: {name}: found '{value}'; allowed: {', '.join(_FLAG)}")
        return [f"--{name}"] if _FLAG[value] else []

    def hold_option(self, name: str) -> None:
        """Hold that there is an option.

        Raises:
            InputError: with those that there are.
        """
        if name in self._allowed or (name.startswith(_SET_ONE) and self.has_chip):
            return
        figures = ["set:TABLE.FIELD"] if self.has_chip else []
        allowed = ", ".join([*self._allowed, *figures])
        raise InputError(f"{self.told}: found '{name}'; allowed for {self.command}: {allowed}")

    def read(self, words: Sequence[str]) -> Any:
        """The record of the options that a command line is.

        Raises:
            InputError: if one is missing, or is there that has nothing to do with figures.
            click.UsageError: for what the command does not understand.
        """
        record = OPTIONS[self.command]
        known = {field.name: field for field in fields(record)}
        with self._reader.make_context(f"wafertlm {self.command}", list(words)) as context:
            for name in context.params:
                given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
                if name in known or not given:
                    continue
                raise InputError(
                    f"{dashed(name)}: found with {self.told}; allowed: options of "
                    f"{self.command} on which figures depend"
                )
            values = {name: value for name, value in context.params.items() if name in known}
        required(self.command, values, [f.name for f in known.values() if f.default is MISSING])
        return record(**values)

    def is_repeatable(self, name: str) -> bool:
        """Whether an option may be given more than once."""
        return bool(getattr(self._allowed.get(name), "multiple", False))

    @property
    def has_chip(self) -> bool:
        """Whether figures of a chip can be changed."""
        return SET in self._known

    @property
    def _known(self) -> set[str]:
        return {field.name for field in fields(OPTIONS[self.command])}

    @cached_property
    def _reader(self) -> click.Command:
        return find_command(self.command)

    @cached_property
    def _allowed(self) -> dict[str, click.Parameter]:
        return {
            option.lstrip("-"): parameter
            for parameter in self._reader.params
            for option in parameter.opts
            if parameter.name in self._known - {SET}
        }
