"""The subcommands, a module each."""

from importlib import import_module

import click


def find_command(name: str) -> click.Command:
    """A subcommand, whose module is imported now and not before."""
    command: click.Command = import_module(f"{__name__}.{name}").command
    return command
