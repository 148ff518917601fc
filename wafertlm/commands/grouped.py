"""The class of all commands: options under headings, and examples below them."""

from collections.abc import Iterable

import click

from wafertlm.commands.examples import EXAMPLES, Example
from wafertlm.commands.groups import grouped

_OUTPUT = "as_json"


class GroupedCommand(click.Command):
    """A command whose help lists its options by subject, and ends with two examples."""

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


def write_examples(examples: Iterable[Example], formatter: click.HelpFormatter) -> None:
    """Examples as they are typed: a line stays whole, so that it can be copied."""
    with formatter.section("Examples"):
        for each in examples:
            formatter.write(f"{'':{formatter.current_indent}}# {each.purpose}\n")
            formatter.write(f"{'':{formatter.current_indent}}{each.line}\n")
