"""Command lines as nobody means them: commands, options and names are read from the program."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import click
from click.testing import CliRunner
from hypothesis import strategies as st

from wafertlm import cli
from wafertlm.commands.common import Number, OutputFile, WholeNumber

#: Lines that work and take little. A command that is not here is attacked from none.
PLAIN = {
    "noc": "--mesh 4x4 --traffic uniform --rate 0.1 --cycles 50 --level perf",
    "memory": "--requests 50",
    "kernel": "mesh-gemm --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8 --level perf",
    "check": "mesh-gemm --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8",
    "dies": "--chip flat32-wafer --collective all-reduce --bytes 64 --level perf",
    "iteration": "--model llama3-8b --chip flat32 --decode 8@100",
    "serve": "--model llama3-8b --chip h100x2 --scheduler chunked --workload sharegpt "
    "--rate 4 --requests 3",
    "compare": "noc --mesh 4x4 --collective multicast --group row --source 0,0 --flits 4 "
    "--level perf --vary flits=4,8",
    "gates": "mesh",
    "show": "chip flat32",
    "report": "--list",
    "study": "--quick waferllm",
    "replay": "--list unicast",
}
_WHOLE = ("0", "-1", "1", "2", "3", "7", "64", "1000001", "9" * 18, "9" * 19, "9" * 5000)
_NOT_WHOLE = ("1_0", " 1", "٣", "", "1.5", "1e3", "nan", "+", "0x10", "--json")
_NUMBERS = ("0", "-1", "0.5", "1", "nan", "inf", "-inf", "1e308", "1e-308", "1e999", "1_0", "", ".")
_TEXTS = (
    *("4x4", "0x0", "1x1", "3x5", "999999999x1", "1_0x4", "64,64,64", "0,0,0", "-1,-1,-1", "1,2"),
    *("0:2,0:2", "2:0,0:9", "8@100", "0@0", "9" * 5000, "", " ", "-", "--", "a" * 300, "\x1b[2J"),
    *("noc.hop_cycles=2", "noc.hop_cycles=1e400", "a.b.c=1", "=", "noc=1", "grid.rows=10000000"),
    *("tile.sram_kib=nan", "[x", "no/such.toml", "no.json", "/dev/null", "/", ".", "auto", "[red]"),
)
OUTPUTS = ("out.json", "new/out.png", "/dev/full", "/dev/null", "/proc/x/y", ".", "a" * 300, "a\nb")


class Line(NamedTuple):
    """A command line, and the files that it names to be written."""

    arguments: tuple[str, ...]
    outputs: tuple[str, ...]


@cache
def command(name: str) -> click.Command:
    """A command of the program."""
    found = cli.cli.get_command(click.Context(cli.cli), name)
    assert found is not None
    return found


@cache
def known_names(name: str) -> tuple[str, ...]:
    """What a command says that its options may name."""
    listed = CliRunner().invoke(command(name), ["--list", "--json"])
    return tuple(one for names in json.loads(listed.stdout).values() for one in names)


def values(name: str, parameter: click.Parameter) -> "st.SearchStrategy[str]":
    """Values of an option or argument, most of which it cannot mean."""
    kind: Any = parameter.type
    if isinstance(kind, OutputFile):
        return st.sampled_from(OUTPUTS)
    if isinstance(kind, WholeNumber | click.types.IntParamType):
        return st.sampled_from(_WHOLE + _NOT_WHOLE)
    if isinstance(kind, Number):
        return st.sampled_from(_NUMBERS)
    text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
    return st.sampled_from(known_names(name)) | st.sampled_from(_TEXTS + _WHOLE) | text


@st.composite
def lines(draw: st.DrawFn, names: Sequence[str] = tuple(cli.COMMANDS)) -> Line:
    """A command with one to three of its options as nobody means them."""
    name = draw(st.sampled_from(names))
    plain = PLAIN.get(name, "").split()
    arguments = [name, *plain] if draw(st.integers(0, 9)) else [name]
    outputs: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        parameter = draw(st.sampled_from(command(name).params))
        if isinstance(parameter, click.Option):
            arguments.append(parameter.opts[0])
        if getattr(parameter, "is_flag", False):
            continue
        value = draw(values(name, parameter))
        # An iteration at this level takes minutes, and so do a million requests; both say so.
        if (name, value) in (("iteration", "at"), ("serve", "1000001")):
            value = {"at": "lt", "1000001": "1001"}[value]
        arguments.append(value)
        outputs += [value] if isinstance(parameter.type, OutputFile) else []
        # The page of a report lies in the folder of its results, if nothing else is said.
        outputs += [f"{value}/report.html".lstrip("/")] if parameter.name == "folder" else []
    if name == "report":  # and else among the results that nobody named
        outputs.append("results/report.html")
    return Line(tuple(arguments), tuple(outputs))
