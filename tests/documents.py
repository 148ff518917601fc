"""What documents show: commands with their output, examples in Python, and prose."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import Wafertlm
from tlm.calibrated import REPOSITORY

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_COST = re.compile(r"^[\d.e-]+ CPU-s, .* s of it compiling\n", re.MULTILINE)


class Shown(NamedTuple):
    """A command, and what it prints.

    Attributes:
        line: What is typed.
        output: What is printed; three dots stand for anything, also for what a run costs.
    """

    line: str
    output: str


def text_of(name: str) -> str:
    """A document of ``docs``."""
    return (REPOSITORY / "docs" / name).read_text(encoding="utf-8")


def console_blocks(text: str) -> list[str]:
    """The blocks of a document in which a user and the command take turns."""
    return _CONSOLE.findall(text)


def indented(text: str) -> list[str]:
    """Commands of a document without their outputs."""
    return re.findall(r"^ {4}(wafertlm .*)$", text, re.MULTILINE)


def commands(block: str) -> Iterator[Shown]:
    """The commands of a block with their outputs."""
    for line, output in _COMMAND.findall(block):
        yield Shown(line, output)


def run_shown(shown: Shown, wafertlm: Wafertlm) -> None:
    """Run a command in the working folder, and hold that it prints what is shown."""
    line, _, file = shown.line.partition(" > ")
    words = shlex.split(line)
    if words[0] != "wafertlm":
        subprocess.run(words, check=True)
        return
    ran = wafertlm(*words[1:])
    if file:
        Path(file).write_text(ran.stdout)
        return
    expected = shown.output.rstrip("\n")
    printed = ran.stderr if expected.startswith("error") else ran.stdout
    plain = "\n".join(each.rstrip() for each in _COST.sub("", printed).splitlines())
    assert re.fullmatch(_pattern(expected), plain.rstrip("\n"), re.DOTALL), (shown.line, printed)
    assert ran.status == (2 if expected.startswith("error") else 0), (shown.line, ran.stderr)


def _pattern(shown: str) -> str:
    return ".*".join(re.escape(part) for part in shown.split("..."))
