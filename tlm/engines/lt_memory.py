"""How much memory a run of the loosely-timed engine takes, and whether there is so much."""

import os
from pathlib import Path

from tlm.engines.lt_queues import FIRST_TOKEN
from tlm.engines.lt_tables import TABLES
from tlm.engines.outcome import OUTCOME_BYTES_PER_TILE
from tlm.errors import InputError
from tlm.program import Program

_TIME_BYTES = 4
_SPENT_CYCLES_BYTES = 8


def needed_bytes(program: Program) -> int:
    """Most memory that a run takes: its times, tables of cycles, and outcome."""
    units = sum(token.depth for token in program.tokens.values())
    times = _TIME_BYTES * (FIRST_TOKEN + units + TABLES)
    tile = times + _SPENT_CYCLES_BYTES + 2 * OUTCOME_BYTES_PER_TILE
    return program.rows * program.cols * tile


def check_memory(program: Program, limit_bytes: int | None) -> None:
    """Hold that a run fits into memory.

    Args:
        program: What is to run.
        limit_bytes: What it may take; None: what the machine has to spare.

    Raises:
        InputError: with both figures, if it does not.
    """
    limit = available_bytes() if limit_bytes is None else limit_bytes
    needed = needed_bytes(program)
    if needed > limit:
        raise InputError(
            f"a grid of {program.rows} x {program.cols} tiles with {len(program.tokens)} tokens "
            f"needs {needed / 1e9:.2f} GB at level lt; available: {limit / 1e9:.2f} GB"
        )


def available_bytes() -> int:
    """Memory that this machine can still give, by what Linux estimates; else all that it has."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["MemAvailable"].split()[0]) * 1024
