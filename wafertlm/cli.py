"""The command ``wafertlm``. A subcommand's module is imported when it is called, not before."""

import gc
import os
import re
import signal
import sys
from collections.abc import Sequence
from threading import Timer, main_thread
from typing import NoReturn

import click

from tlm.children import end_all
from tlm.errors import InputError
from tlm.scratch import drop_run_folders
from wafertlm.commands import find_command
from wafertlm.commands.examples import FIRST
from wafertlm.commands.grouped import write_examples
from wafertlm.output import CheckFailedError
from wafertlm.signals import ENDING
from wafertlm.version import __version__

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
    "gates": "Count the gates of a router in Verilog.",
    "explore": "Find the best options, chips, models or routers, by many runs of a command.",
    "show": "Print the file of a chip, a model or a router.",
    "study": "Reproduce a published study row by row.",
    "replay": "Run a check case of a stored calibration again, with a wave.",
    "report": "Write stored results into one HTML page.",
}

_OK, _CHECK_FAILED, _BAD_INPUT, _INTERRUPTED = 0, 1, 2, 130
_LONGEST_MESSAGE = 300
_AGAIN_S = 0.01
_CUT = " ... "
# Objects in circles are few: at Python's 700 a tenth of a command's time would go into looking.
_OBJECTS_BETWEEN = 100_000
_FAULT = re.compile(r"%Error|%Fatal|\b(?:error|ERROR):")


class _Commands(click.Group):
    """A group that knows its commands' names and help lines without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            ctx.fail(f"unknown command '{name}'; known: {', '.join(COMMANDS)}")
        return find_command(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(FIRST, formatter)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="wafertlm")
@click.pass_context
def cli(context: click.Context) -> None:
    """Simulate wafer-scale and tile-based AI chips, from Verilog to LLM serving.

    A kernel is written once and runs at four levels: rtl (Verilog), at (every handshake), lt (one
    clock a tile) and perf (closed forms). Each result says how far off its level may be.

    Every command takes --json and --list; --help tells the rest.
    Exit status: 0 done, 1 a check did not hold, 2 bad input.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; messages go to stderr, a line each."""
    try:
        outcome = cli.main(arguments, prog_name="wafertlm", standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        return _told(f"error: {error}", _BAD_INPUT)
    except CheckFailedError as error:
        return _told(f"check failed: {error}", _CHECK_FAILED)
    except click.ClickException as error:
        return _told(f"error: {error.format_message().rstrip('.')}{_help_of(error)}", _BAD_INPUT)
    except OSError as error:  # of the machine, such as a full disk; files of options tell their own
        return _told(f"error: {error.filename or 'output'}: {error.strerror}", _BAD_INPUT)
    except MemoryError as error:
        return _told(f"error: this machine has too little memory for it: {error}", _BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    # click hands back the status that a command asked for by `ctx.exit(status)`.
    return outcome if isinstance(outcome, int) else _OK


def _interrupted() -> int:
    drop_run_folders()
    return _told("interrupted", _INTERRUPTED)


def _told(message: str, status: int) -> int:
    click.echo(one_line(message), err=True)
    return status


def one_line(message: str) -> str:
    """A message as a line that can be read: of many lines the first, and the first with a fault.

    What is too long loses its middle: it begins with what was found and ends with what is allowed.
    """
    first, *more = [line for line in message.splitlines() if line.strip()] or [""]
    fault = next((line for line in more if _FAULT.search(line)), "")
    whole = " ".join(f"{first} {fault}".split())
    line = "".join(each if each.isprintable() else "?" for each in whole)
    if len(line) <= _LONGEST_MESSAGE:
        return line
    half = (_LONGEST_MESSAGE - len(_CUT)) // 2
    return f"{line[:half]}{_CUT}{line[-half:]}"


def _help_of(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"; see '{context.command_path} --help'" if context else ""


def main() -> None:
    """Entry point of the console script."""
    gc.set_threshold(_OBJECTS_BETWEEN)
    owner, came = os.getpid(), list[int]()

    def interrupted(number: int, frame: object) -> NoReturn:
        if os.getpid() != owner:  # of a pool
            os._exit(_INTERRUPTED)
        came.append(number)
        end_all()
        raise KeyboardInterrupt

    def dropped(what: "sys.UnraisableHookArgs") -> None:
        if came and isinstance(what.exc_value, KeyboardInterrupt):
            # Raised where Python drops it, as where machine code is loaded: again, behind that.
            again = main_thread().ident, signal.SIGINT
            Timer(_AGAIN_S, signal.pthread_kill, again).start()
        else:
            sys.__unraisablehook__(what)

    if sys.stdout is None or sys.stderr is None:  # closed by who started it: nothing to write to
        sys.exit(_BAD_INPUT)
    try:
        for number in ENDING:
            signal.signal(number, interrupted)
        sys.unraisablehook = dropped
        status = run()
        for number in ENDING:  # Python has only to end, and would do so by the signal
            signal.signal(number, signal.SIG_IGN)
    except (Exception, KeyboardInterrupt):
        if not came:
            raise
        # It came beside the work, or was raised where Python drops it, and an ended process missed.
        status = _interrupted()
    try:
        sys.stdout.flush()
    except OSError:  # told already; else Python tries again as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


if __name__ == "__main__":
    main()
