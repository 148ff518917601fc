"""The command ``wafertlm``. A subcommand's module is imported when it is called, not before."""

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from tlm.errors import InputError
from wafertlm import __version__
from wafertlm.output import CheckFailedError

# Name and help line; the module is wafertlm.commands.NAME and holds the click command `command`.
COMMANDS = {
    "doctor": "Check that this machine has what wafertlm needs.",
    "calibrate": "Measure the RTL, fit the models to it, and check them blind.",
    "noc": "Run traffic or a collective on a mesh.",
    "memory": "Run a stream of requests through a DRAM channel.",
    "kernel": "Run a kernel on a chip.",
    "check": "Check a kernel's program without running it.",
    "dies": "Run a collective between the dies of a wafer.",
    "iteration": "Run one iteration of a language model on a chip, kernel by kernel.",
    "serve": "Serve a language model's requests on a chip.",
    "compare": "Run a command with some options varied, and see what changes.",
    "show": "Print the file of a chip or a model.",
    "study": "Reproduce a published study row by row.",
    "replay": "Run a check case of a stored calibration again, with a wave.",
    "report": "Write stored results into one HTML page.",
}

_OK, _CHECK_FAILED, _BAD_INPUT, _INTERRUPTED = 0, 1, 2, 130


class _Commands(click.Group):
    """A group that knows its commands' names and help lines without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            ctx.fail(f"unknown command '{name}'; known: {', '.join(COMMANDS)}")
        command = import_module(f"wafertlm.commands.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="wafertlm")
def cli() -> None:
    """Write a kernel once, run it at any level, and know the error of each level.

    Every command takes --json and --list; --help tells the rest.
    Exit status: 0 done, 1 a check did not hold, 2 bad input.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; messages go to stderr."""
    try:
        outcome = cli.main(arguments, prog_name="wafertlm", standalone_mode=False)
    except InputError as error:
        click.echo(f"error: {error}", err=True)
        return _BAD_INPUT
    except CheckFailedError as error:
        click.echo(f"check failed: {error}", err=True)
        return _CHECK_FAILED
    except click.ClickException as error:
        error.show()
        return _BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    # click hands back the status that a command asked for by `ctx.exit(status)`.
    return outcome if isinstance(outcome, int) else _OK


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run())


if __name__ == "__main__":
    main()
