"""Verilator's lint of Verilog, with parameters."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from cosim.verilated.toolchain import verilator_environment


def lint(
    top: str, sources: Iterable[Path], **parameters: int | str
) -> subprocess.CompletedProcess[str]:
    """Elaborate a module with all warnings on; one that is not waived ends with a status."""
    values = [f"-G{name}={value}" for name, value in parameters.items()]
    return subprocess.run(
        ["verilator", "--lint-only", "-Wall", "--top-module", top, *values, *map(str, sources)],
        env=verilator_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
