"""Refusing early what cannot fit in this machine's memory."""

from pathlib import Path

from tlm.errors import InputError

_MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """Memory that can be had without swapping; None where the system does not tell."""
    try:
        lines = _MEMINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def hold_room(what: str, needed_bytes: int, limit_bytes: int | None = None) -> None:
    """Hold that there is memory for something.

    Args:
        what: What takes it.
        needed_bytes: How much.
        limit_bytes: It may take so much; None: what the machine has to spare.

    Raises:
        InputError: with both figures, if there is not.
    """
    there = available_bytes() if limit_bytes is None else limit_bytes
    if there is not None and needed_bytes > there:
        raise InputError(
            f"{what}: takes {needed_bytes / 1e9:.2f} GB of memory; available: {there / 1e9:.2f} GB"
        )
