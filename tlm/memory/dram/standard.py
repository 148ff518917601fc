"""The table of HBM's constraints, and a device by its organisation and speed, in JEDEC's names.

A device's times follow from the table. The standard counts clocks from the end of a command on its
bus to the end of the next one. Here ticks count, from the first tick of a command to that of the
next. So a command of two or three ticks shifts the times that it is in.
"""

from collections.abc import Mapping
from enum import IntEnum
from math import ceil
from typing import NamedTuple

from tlm.memory.dram.device import Device


class DramCommand(IntEnum):
    """Commands as a log numbers them: here, and that of rtl/bench/memory_bench.sv."""

    ACTIVATE = 0
    PRECHARGE = 1
    PRECHARGE_ALL = 2
    REFRESH = 3
    READ = 4
    WRITE = 5


class Level(IntEnum):
    """What two commands share, if a constraint is about them."""

    BANK = 0
    GROUP = 1
    CHANNEL = 2


_ACT, _PRE, _, _REF, _READ, _WRITE = DramCommand


class Constraint(NamedTuple):
    """From a command to a later one it takes a time at least.

    Attributes:
        time: The name in `Device`.
        level: What the two share.
        preceding: From which command.
        following: To which.
        clocks: The time as a sum of the standard's parameters.
        window: Counts from the so many last ``preceding``.
    """

    time: str
    level: Level
    preceding: DramCommand
    following: DramCommand
    clocks: str
    window: int = 1


#: A precharge of all banks is one of each that is open. Where a time is in two rows, the first row
#: sets it.
CONSTRAINTS = (
    Constraint("t_rcd_rd", Level.BANK, _ACT, _READ, "nRCDRD"),
    Constraint("t_rcd_wr", Level.BANK, _ACT, _WRITE, "nRCDWR"),
    Constraint("t_ras", Level.BANK, _ACT, _PRE, "nRAS"),
    Constraint("t_rc", Level.BANK, _ACT, _ACT, "nRC"),
    Constraint("t_rp", Level.BANK, _PRE, _ACT, "nRP"),
    Constraint("t_rtp", Level.BANK, _READ, _PRE, "nRTP"),
    Constraint("t_wtp", Level.BANK, _WRITE, _PRE, "nCWL + nBL + nWR"),
    Constraint("t_rrd_l", Level.GROUP, _ACT, _ACT, "nRRDL"),
    Constraint("t_ccd_l", Level.GROUP, _READ, _READ, "nCCDL"),
    Constraint("t_ccd_l", Level.GROUP, _WRITE, _WRITE, "nCCDL"),
    Constraint("t_wtr_l", Level.GROUP, _WRITE, _READ, "nCWL + nBL + nWTRL"),
    Constraint("t_rrd_s", Level.CHANNEL, _ACT, _ACT, "nRRDS"),
    Constraint("t_faw", Level.CHANNEL, _ACT, _ACT, "nFAW", window=4),
    Constraint("t_ccd_s", Level.CHANNEL, _READ, _READ, "nCCDS"),
    Constraint("t_ccd_s", Level.CHANNEL, _WRITE, _WRITE, "nCCDS"),
    Constraint("t_rtw", Level.CHANNEL, _READ, _WRITE, "nRTW"),
    Constraint("t_wtr_s", Level.CHANNEL, _WRITE, _READ, "nCWL + nBL + nWTRS"),
    Constraint("t_ppd", Level.CHANNEL, _PRE, _PRE, "nPPD"),
    Constraint("t_rp_ref", Level.CHANNEL, _PRE, _REF, "nRP"),
    Constraint("t_rc_ref", Level.CHANNEL, _ACT, _REF, "nRC"),
    Constraint("t_rfc", Level.CHANNEL, _REF, _ACT, "nRFC"),
    Constraint("t_rfc", Level.CHANNEL, _REF, _REF, "nRFC"),
)


class Organisation(NamedTuple):
    """A pseudo-channel's shape; ``rfc_ns`` follows from the density of its dies."""

    name: str
    bank_groups: int
    banks_per_group: int
    row_bits: int
    column_bits: int
    rfc_ns: int


class Speed(NamedTuple):
    """Times of a bin: ``clocks`` has the standard's parameters, in clocks of ``clock_ns``."""

    name: str
    clock_ns: float
    clocks: Mapping[str, int]


_BURST_BYTES = 32
_REFI_NS = 3900

Ticks = tuple[int, Mapping[DramCommand, int]]
#: Ticks of a clock, and of commands that take more than one; from HBM3 on some take half a clock.
WHOLE_CLOCKS: Ticks = (1, {_ACT: 2})
HALF_CLOCKS: Ticks = (2, {_ACT: 3, _READ: 2, _WRITE: 2})


def hbm_device(name: str, organisation: Organisation, speed: Speed, ticks: Ticks) -> Device:
    """A device of a standard.

    Args:
        name: What it is called.
        organisation: Its shape.
        speed: Its times.
        ticks: Ticks of a clock, and those of each command that takes more than one.
    """
    per_clock, lengths = ticks
    clocks = {
        "nRFC": ceil(organisation.rfc_ns / speed.clock_ns),
        "nREFI": ceil(_REFI_NS / speed.clock_ns),
        **speed.clocks,
    }
    times: dict[str, int] = {}
    for one in CONSTRAINTS:
        between = per_clock * sum(clocks[term] for term in one.clocks.split(" + "))
        shift = lengths.get(one.preceding, 1) - lengths.get(one.following, 1)
        times.setdefault(one.time, between + shift)
    return Device(
        name=name,
        source=f"Ramulator 2.1, {organisation.name} organisation, {speed.name} preset",
        tick_ns=speed.clock_ns / per_clock,
        burst_bytes=_BURST_BYTES,
        bank_groups=organisation.bank_groups,
        banks_per_group=organisation.banks_per_group,
        row_bits=organisation.row_bits,
        column_bits=organisation.column_bits,
        t_refi=per_clock * clocks["nREFI"],
        rl=per_clock * clocks["nCL"],
        wl=per_clock * clocks["nCWL"],
        bl=per_clock * clocks["nBL"],
        activate_ticks=lengths[_ACT],
        edge_ticks=per_clock,
        **times,
    )
