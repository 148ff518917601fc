"""The rules of a DRAM channel, checked over a log of its commands.

The table reads as a standard's does: from a command to the next of a kind, within a scope, so many
cycles at least. What is no such time follows below it: which row is open, what the buses carry,
when a refresh is due. Nothing here knows how the commands were chosen.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from cosim.memory.channel import Timings


class Kind(IntEnum):
    """Commands, numbered as in the log of rtl/bench/memory_bench.sv."""

    ACTIVATE = 0
    PRECHARGE = 1
    PRECHARGE_ALL = 2
    REFRESH = 3
    READ = 4
    WRITE = 5


class Command(NamedTuple):
    """A command; what it does not have is -1.

    Attributes:
        cycle: When it was given.
        kind: What it is.
        group: Bank group.
        bank: Bank within the group.
        row: Row that is opened, or that a column command means.
        column: Column, in bursts.
        request: Number of the request that a column command serves.
    """

    cycle: int
    kind: Kind
    group: int = -1
    bank: int = -1
    row: int = -1
    column: int = -1
    request: int = -1


@dataclass(frozen=True, slots=True)
class Rule:
    """From a command ``first`` to a command ``then`` it takes ``cycles`` at least.

    Attributes:
        name: The standard's name of the time.
        first: Commands from which it counts.
        then: Commands that it holds back.
        scope: ``bank``, ``group`` or ``channel``: which pairs it is about.
        cycles: The time.
        nth: Counts from the nth last ``first``: 4 for a window of four.
    """

    name: str
    first: tuple[Kind, ...]
    then: tuple[Kind, ...]
    scope: str
    cycles: int
    nth: int = 1


def rules(t: Timings) -> list[Rule]:
    """The table; a precharge of all banks counts as a precharge of each that is open."""
    act, pre, ref, read, write = (
        (kind,) for kind in (Kind.ACTIVATE, Kind.PRECHARGE, Kind.REFRESH, Kind.READ, Kind.WRITE)
    )
    return [
        Rule("tRCDRD", act, read, "bank", t.t_rcd_rd),
        Rule("tRCDWR", act, write, "bank", t.t_rcd_wr),
        Rule("tRAS", act, pre, "bank", t.t_ras),
        Rule("tRC", act, act, "bank", t.t_rc),
        Rule("tRP", pre, act, "bank", t.t_rp),
        Rule("tRTP", read, pre, "bank", t.t_rtp),
        Rule("tWTP", write, pre, "bank", t.t_wtp),
        Rule("tRRD_S", act, act, "channel", t.t_rrd_s),
        Rule("tRRD_L", act, act, "group", t.t_rrd_l),
        Rule("tFAW", act, act, "channel", t.t_faw, nth=4),
        Rule("tCCD_S read", read, read, "channel", t.t_ccd_s),
        Rule("tCCD_L read", read, read, "group", t.t_ccd_l),
        Rule("tCCD_S write", write, write, "channel", t.t_ccd_s),
        Rule("tCCD_L write", write, write, "group", t.t_ccd_l),
        Rule("tRTW", read, write, "channel", t.t_rtw),
        Rule("tWTR_S", write, read, "channel", t.t_wtr_s),
        Rule("tWTR_L", write, read, "group", t.t_wtr_l),
        Rule("tRP refresh", pre, ref, "channel", t.t_rp),
        Rule("tRC refresh", act, ref, "channel", t.t_rc),
        Rule("tRFC", ref, act + ref, "channel", t.t_rfc),
    ]


def _place(command: Command, scope: str) -> tuple[int, ...]:
    """What two commands have in common if the rule is about them."""
    return (command.group, command.bank)[: {"channel": 0, "group": 1, "bank": 2}[scope]]


def single_banks(commands: Iterable[Command]) -> Iterator[Command]:
    """The commands with a precharge of all banks replaced by those of the open ones."""
    open_banks: set[tuple[int, int]] = set()
    for command in commands:
        where = (command.group, command.bank)
        if command.kind is Kind.PRECHARGE_ALL:
            for group, bank in sorted(open_banks):
                yield Command(command.cycle, Kind.PRECHARGE, group, bank)
            open_banks.clear()
            continue
        if command.kind is Kind.ACTIVATE:
            open_banks.add(where)
        elif command.kind is Kind.PRECHARGE:
            open_banks.discard(where)
        yield command


class Earliest(NamedTuple):
    """A command, and from which cycle on each rule that is about it allowed it."""

    command: Command
    allowed: dict[str, int]

    def decided_by(self) -> str | None:
        """The one rule that held the command back to its cycle, if it is one alone."""
        binding = [name for name, cycle in self.allowed.items() if cycle == self.command.cycle]
        return binding[0] if len(binding) == 1 else None


def earliest(commands: Sequence[Command], table: Sequence[Rule]) -> list[Earliest]:
    """Every command with the cycles from which on the rules that apply allowed it."""
    past: dict[tuple[str, Kind, tuple[int, ...]], deque[int]] = defaultdict(lambda: deque(maxlen=4))
    scopes = sorted({rule.scope for rule in table})
    result = []
    for command in single_banks(commands):
        allowed: dict[str, int] = {}
        for rule in table:
            if command.kind not in rule.then:
                continue
            for first in rule.first:
                seen = past[rule.scope, first, _place(command, rule.scope)]
                if len(seen) >= rule.nth:
                    allowed[rule.name] = seen[-rule.nth] + rule.cycles
        result.append(Earliest(command, allowed))
        for scope in scopes:
            past[scope, command.kind, _place(command, scope)].append(command.cycle)
    return result


def violations(commands: Sequence[Command], timings: Timings, end_cycle: int) -> list[str]:
    """Everything that the log does against the rules, in the order of rules, then of time.

    Args:
        commands: The log, in order of time.
        timings: The times of the channel.
        end_cycle: Cycle to which the log goes; cycle 0 is the first after reset.
    """
    found = [
        f"{name}: {command.kind.name} at {command.cycle}, allowed from {cycle}"
        for command, allowed in earliest(commands, rules(timings))
        for name, cycle in allowed.items()
        if command.cycle < cycle
    ]
    return [
        *found,
        *_state_violations(commands),
        *_bus_violations(commands, timings),
        *_refresh_violations(commands, timings, end_cycle),
    ]


def _state_violations(commands: Sequence[Command]) -> Iterator[str]:
    """A row is opened in a closed bank, used while it is open, and closed before a refresh."""
    rows: dict[tuple[int, int], int] = {}
    for command in commands:
        where = (command.group, command.bank)
        place = f"{command.kind.name} at {command.cycle}"
        if command.kind is Kind.ACTIVATE:
            if where in rows:
                yield f"state: {place} of bank {where}, whose row {rows[where]} is open"
            rows[where] = command.row
        elif command.kind is Kind.PRECHARGE:
            if rows.pop(where, None) is None:
                yield f"state: {place} of bank {where}, which is closed"
        elif command.kind is Kind.PRECHARGE_ALL:
            rows.clear()
        elif command.kind is Kind.REFRESH:
            if rows:
                yield f"state: {place} with {len(rows)} rows open"
        elif rows.get(where) != command.row:
            yield f"state: {place} to row {command.row} of bank {where}, open is {rows.get(where)}"


def _bus_violations(commands: Sequence[Command], timings: Timings) -> Iterator[str]:
    """One row and one column command a cycle, and one burst at a time on the data bus."""
    last = {True: -1, False: -1}
    busy_until = 0
    for command in commands:
        is_column = command.kind in (Kind.READ, Kind.WRITE)
        if command.cycle <= last[is_column]:
            bus = "column" if is_column else "row"
            yield f"command bus: two {bus} commands at {command.cycle}, or out of order"
        last[is_column] = command.cycle
        if is_column:
            start = command.cycle + (timings.rl if command.kind is Kind.READ else timings.wl)
            if start < busy_until:
                yield f"data bus: burst of {command.kind.name} at {command.cycle} begins at {start}"
            busy_until = start + timings.bl


def _refresh_violations(commands: Sequence[Command], timings: Timings, end: int) -> Iterator[str]:
    """The nth refresh comes when n intervals have gone, or so much later as closing rows takes."""
    cycles = [command.cycle for command in commands if command.kind is Kind.REFRESH]
    late = timings.refresh_delay_cycles()
    for number, cycle in enumerate(cycles, start=1):
        due = number * timings.t_refi
        if not due <= cycle <= due + late:
            yield f"tREFI: refresh {number} at {cycle}, allowed {due} to {due + late}"
    due = (len(cycles) + 1) * timings.t_refi
    if due + late < end:
        yield f"tREFI: refresh {len(cycles) + 1} has not come by {end}, allowed to {due + late}"
