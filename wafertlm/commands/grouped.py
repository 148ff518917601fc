"""The class of all commands: options under headings, examples below, and options from files."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import click

from tlm.errors import InputError
from wafertlm.commands.config import Configured, config_options, config_text, told_in_file
from wafertlm.commands.examples import EXAMPLES, Example
from wafertlm.commands.groups import grouped
from wafertlm.commands.repeated import is_of_other_files
from wafertlm.output import Result, told_of, warn

_OUTPUT = "as_json"
#: Commands that run nothing that one would repeat, or have a file of their own.
_NOT_CONFIGURED = ("doctor", "show", "report", "explore")


class GroupedCommand(click.Command):
    """A command whose help lists its options by subject, and ends with two examples.

    What it runs can be written in a file: ``--config`` and ``--print-config``.
    """

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        if name not in _NOT_CONFIGURED:
            self.params += config_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; a value of a file is told with the file and the field."""
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as error:
            if told := told_in_file(ctx, error):
                raise InputError(told) from error
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, or print what it would run."""
        configured = Configured.of(ctx)
        if configured.is_to_print:
            click.echo(config_text(ctx), nl=False)
            return None
        try:
            with told_of(partial(_hold_repeated, configured)):
                return super().invoke(ctx)
        except InputError as error:
            if configured.file is None:
                raise
            raise InputError(f"{configured.file}: {error}") from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options under their headings; what is of every command stands with the output."""
        command, own, found = self.name or "", {each.name for each in self.params}, []
        for option in self.get_params(ctx):
            told = option.get_help_record(ctx)
            if told is not None and not isinstance(option, click.Argument):
                name = option.name if option.name in own else None
                found.append((name or _OUTPUT, told))
        for title, lines in grouped(command, found):
            with formatter.section(title):
                formatter.write_dl(lines)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples."""
        write_examples(EXAMPLES.get(self.name or "", ()), formatter)


def _hold_repeated(configured: Configured, result: Result) -> None:
    """Say so, if a result is not the one that it should repeat: names are those of other files."""
    if configured.stored is not None and is_of_other_files(result, configured.stored):
        warn(
            [
                f"{configured.file}: this is another run: a result keeps names of chips, models "
                "and routers, and those are of other files; name the files on the command line"
            ]
        )


def write_examples(examples: Iterable[Example], formatter: click.HelpFormatter) -> None:
    """Examples as they are typed: a line stays whole, so that it can be copied."""
    with formatter.section("Examples"):
        for each in examples:
            formatter.write(f"{'':{formatter.current_indent}}# {each.purpose}\n")
            formatter.write(f"{'':{formatter.current_indent}}{each.line}\n")
