"""What documents show: commands with their output, examples in Python, and prose."""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import Wafertlm
from tlm.calibrated import REPOSITORY

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_COST = re.compile(r"^[\d.,e-]+ CPU-s, .* s of it compiling\n", re.MULTILINE)

_BOXES = re.compile(r"[┏┓┗┛┣┫┳┻╇┡┩┴┬└┘├┤┼━─]+")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?(?: %)?(?!\w)")
_NEAR, _NEAR_POINTS = 0.02, 15


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


def target_row(target: Mapping[str, Any]) -> str:
    """A target of a study as its document's table has it."""
    met = "yes" if target["met"] else "**no**"
    return f"| {target['target']} | {target['found']:,.3g} | {met} |"


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


def run_shown(shown: Shown, wafertlm: Wafertlm, *, near: bool = False) -> None:
    """Run a command in the working folder, and hold that it prints what is shown.

    Args:
        shown: The command.
        wafertlm: The fixture.
        near: Numbers are near those that are shown. Intervals rest on stored comparisons, which
            are measured anew whenever a kernel changes.
    """
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
    if near:
        assert_near(plain, expected)
    else:
        found = re.fullmatch(_pattern(expected), plain.rstrip("\n"), re.DOTALL)
        assert found, (shown.line, printed)
    assert ran.status == (2 if expected.startswith("error") else 0), (shown.line, ran.stderr)


def assert_near(printed: str, shown: str) -> None:
    """Hold that a text is what is shown, its numbers nearly: per cents are told to some points.

    Args:
        printed: The text.
        shown: What is shown; three dots stand for anything.
    """
    printed, shown = (" ".join(_BOXES.sub(" ", text).split()) for text in (printed, shown))
    pattern = _NUMBER.sub("\0", shown)
    pattern = ".*".join(re.escape(part) for part in pattern.split("..."))
    found = re.fullmatch(pattern.replace(re.escape("\0"), f"({_NUMBER.pattern})"), printed)
    assert found, (shown, printed)
    for wanted, got in zip(_NUMBER.findall(shown), found.groups(), strict=True):
        here, there = (float(text.replace(",", "").rstrip(" %")) for text in (got, wanted))
        off = _NEAR_POINTS if wanted.endswith("%") else _NEAR * abs(there)
        assert abs(here - there) <= off, (wanted, got)


def _pattern(shown: str) -> str:
    return ".*".join(re.escape(part) for part in shown.split("..."))
