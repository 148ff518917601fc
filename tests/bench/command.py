"""What a user of the command waits for: its start, the first run with compilation, later runs."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.measure import Row
from tests.bench.network import Note

_HELP_S, _FIRST_S, _LATER_S = 0.4, 20.0, 2.0
_START = (sys.executable, "-c", "import sys; from wafertlm.cli import main; main()")
COMMANDS = {
    "noc": (
        "noc --mesh 8x8 --traffic uniform --rate 0.15 --packet-flits 5 --cycles 1000 --level at"
    ),
    "memory": "memory --requests 10000",
    "kernel": "kernel mesh-gemm --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8 --level at",
}


def command_rows(names: Sequence[str], runs: int, first_runs: int, done: Note) -> list[Row]:
    """CPU seconds of whole processes, start-up and all."""
    helps = []
    for _ in range(runs):
        helps.append(process_seconds("--help", {}))
        done()
    rows = [Row("wafertlm --help", "CPU-s", tuple(helps), _HELP_S)]
    for name in names:
        first, later = [], []
        for again in range(first_runs):
            with tempfile.TemporaryDirectory() as folder:
                environment = {"NUMBA_CACHE_DIR": folder}
                first.append(process_seconds(COMMANDS[name], environment))
                done()
                for _ in range(runs if again == 0 else 0):
                    later.append(process_seconds(COMMANDS[name], environment))
                    done()
        rows += [
            Row(f"wafertlm {name}, first run, with compilation", "CPU-s", tuple(first), _FIRST_S),
            Row(f"wafertlm {name}, later runs", "CPU-s", tuple(later), _LATER_S),
        ]
    return rows


def process_seconds(arguments: str, environment: Mapping[str, str]) -> float:
    """CPU seconds of a run of the command and its children.

    Raises:
        RuntimeError: if it fails; with what it told.
    """
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "told").open("w+") as told:
        child = subprocess.Popen(
            [*_START, *arguments.split()],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=told,
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            told.seek(0)
            raise RuntimeError(f"wafertlm {arguments}: status {child.returncode}: {told.read()}")
    return usage.ru_utime + usage.ru_stime
