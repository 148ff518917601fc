"""Every line of the documents that calls the command is understood by it: options and numbers."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tlm.calibrated import REPOSITORY
from wafertlm.cli import COMMANDS, cli
from wafertlm.compare.variants import variants

_PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "rtl/**/*.md")
_LINE = re.compile(r"^(?: {4}|\$ |)wafertlm (.+)$", re.MULTILINE)
_SHELL = re.compile(r"\s(?:#|>|\||&&).*$")


def _lines() -> Iterator[object]:
    for page in sorted({path for pattern in _PAGES for path in REPOSITORY.glob(pattern)}):
        for found in _LINE.findall(page.read_text(encoding="utf-8")):
            line = _SHELL.sub("", found).rstrip("\\ ")
            name = page.relative_to(REPOSITORY).as_posix()
            # Runs in files are read as the line is understood: test_config.py has the files.
            if line.split(" ")[0] in COMMANDS and "..." not in line and "--config" not in line:
                yield pytest.param(line, id=f"{name}: {line}"[:120])


@pytest.mark.parametrize("line", [*_lines()])
def test_the_command_understands_it(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *words = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    try:
        with command.make_context(name, [*words]) as context:
            given = context.params
    except click.BadParameter as error:
        if "does not exist" in str(error):  # a file of the user's
            return
        raise
    if name == "compare" and given["compared"]:
        assert len(variants(given["compared"], given["given"], given["vary"])) > 1
