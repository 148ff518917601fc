"""Help that a newcomer can use: subjects, examples that work, and nothing asked that is known."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from wafertlm import cli
from wafertlm.commands.examples import EXAMPLES, FIRST
from wafertlm.commands.groups import group_of
from workloads.models import DTYPE_BYTES
from workloads.serving.engine.checkpoint import CHECKPOINT_EVERY_S
from workloads.serving.engine.engine import DEFAULT_MAX_SEQUENCES


def _command(name: str) -> click.Command:
    found = cli.cli.get_command(click.Context(cli.cli), name)
    assert found is not None
    return found


def _options(name: str) -> list[str]:
    options = (each for each in _command(name).params if isinstance(each, click.Option))
    return [each.name for each in options if each.name is not None]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_option_stands_under_a_subject(name: str) -> None:
    assert [each for each in _options(name) if group_of(name, each) == "Other options"] == []


def test_a_name_means_what_it_means_in_its_command(wafertlm: Any) -> None:
    assert group_of("noc", "collective") == "Load"
    assert group_of("kernel", "collective") == "Mapping"
    told = wafertlm("serve", "--help").stdout
    subjects = ["Load:", "Model:", "Chip:", "Levels:", "Mapping:", "Scheduler:", "Run:", "Output:"]
    assert sorted(subjects, key=told.index) == subjects
    assert told.index("Scheduler:") < told.index("--token-budget") < told.index("Run:")


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_ends_with_two_examples(wafertlm: Any, name: str) -> None:
    told, examples = wafertlm(name, "--help").stdout, EXAMPLES[name]
    assert len(examples) == 2
    for each in examples:
        assert f"  # {each.purpose}\n  {each.line}\n" in told


def test_without_a_command_the_help_is_shown(wafertlm: Any) -> None:
    ran = wafertlm()
    assert (ran.status, ran.stderr) == (0, "")
    assert ran.stdout == wafertlm("--help").stdout
    assert all(each.line in ran.stdout for each in FIRST)


@pytest.mark.parametrize("line", [each.line for of in EXAMPLES.values() for each in of])
def test_examples_are_lines_that_their_command_reads(line: str) -> None:
    program, name, *words = shlex.split(line)
    assert program == "wafertlm"
    with _command(name).make_context(name, words) as context:
        assert context.params


#: Those that measure RTL, run a study or write a page are run by tests of their own.
_RUN = ("noc", "memory", "kernel", "check", "dies", "iteration", "serve", "show")


@pytest.mark.parametrize("line", [each.line for name in _RUN for each in EXAMPLES[name]])
def test_examples_run(
    wafertlm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = wafertlm(*shlex.split(line)[1:])
    assert ran.status == 0, ran.stderr
    assert ran.stdout


#: What takes long to import, and what numbers and models rest on.
_SLOW = ("matplotlib", "numba", "numpy", "optuna", "pydantic", "scipy", "simpy", "tlm.chips")


@pytest.mark.parametrize("name", ["", *cli.COMMANDS])
def test_help_takes_little_to_start(name: str) -> None:
    program = (
        f"from wafertlm.cli import run; run([*{name!r}.split(), '--help'])\n"
        "import sys, time; seconds = time.process_time()\n"
        f"print(seconds, *(each for each in {_SLOW} if each in sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    seconds, *loaded = ran.stderr.split()
    assert loaded == []
    assert float(seconds) < 0.4


def test_defaults_are_those_of_what_runs() -> None:
    """They stand in the options, too, as the engine takes long to import."""
    by_name = {each.name: each for each in _command("serve").params}
    assert by_name["max_sequences"].default == DEFAULT_MAX_SEQUENCES
    assert by_name["checkpoint_every"].default == CHECKPOINT_EVERY_S
    assert isinstance(by_name["weights"], click.Option)
    assert f": {', '.join(DTYPE_BYTES)};" in (by_name["weights"].help or "")


_WSE2 = ("kernel", "mesh-gemm", "--chip", "wse2", "--grid", "4x4", "--shape", "32,32,32", "--json")


def test_what_a_chip_has_one_of_needs_no_option(wafertlm: Any) -> None:
    plain, named = (json.loads(wafertlm(*_WSE2, *d).stdout) for d in ((), ("--dtype", "fp16")))
    for times in ("cpu_s", "wall_s", "compile_s"):
        del plain[times], named[times]
    assert plain == named
    assert plain["options"]["dtype"] == "fp16"


def test_what_it_has_several_of_does(wafertlm: Any) -> None:
    ran = wafertlm(*(each if each != "wse2" else "rtl-4x4" for each in _WSE2))
    assert ran.status == 2
    assert ran.stderr == "error: --dtype: not given; chip 'rtl-4x4' computes int8, int16\n"
