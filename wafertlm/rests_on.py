"""What a time rests on: the share of each subsystem, its level, and whose Verilog it is."""

from typing import Any


def subsystem(share: float, level: str | None, verilog: str | None) -> dict[str, Any]:
    """A line of ``error.rests_on``.

    Args:
        share: Of the time, from 0 to 1.
        level: At which it was; None: its time was not counted.
        verilog: Hash of the Verilog behind it; None: a chip's profile alone.
    """
    return {"share": share, "level": level, "rtl_hash": verilog or "profile only"}
