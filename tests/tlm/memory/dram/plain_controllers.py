"""The controllers of tlm/memory/dram/controllers once more: lists, a step a tick, nothing clever.

Every tick looks at every request and asks every constraint of the standard's table. It shares no
code with the compiled core, which must give the same ticks.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tlm.memory.dram.device import Device
from tlm.memory.dram.standard import CONSTRAINTS, DramCommand, Level

_LONG_AGO = -(10**9)
_COLUMNS = ("RD", "WR")
_COMMANDS = {
    "ACT": DramCommand.ACTIVATE, "PRE": DramCommand.PRECHARGE, "PREA": DramCommand.PRECHARGE,
    "RD": DramCommand.READ, "WR": DramCommand.WRITE, "REF": DramCommand.REFRESH,
}  # fmt: skip


@dataclass(eq=False)
class Asked:
    write: int
    bank: int
    row: int
    column: int
    taken: int = -1
    ended: int = -1

    def meets(self, other: "Asked") -> bool:
        return (self.bank, self.row, self.column) == (other.bank, other.row, other.column)


class Banks:
    """Open rows, and when each command was given to whom."""

    def __init__(self, device: Device, activate_ticks: int) -> None:
        self.device, self.activate_ticks = device, activate_ticks
        self.row = [-1] * device.banks
        self._past: dict[tuple[str, str, int], list[int]] = defaultdict(list)

    def needs(self, one: Asked) -> str:
        if self.row[one.bank] == one.row:
            return _COLUMNS[one.write]
        return "ACT" if self.row[one.bank] < 0 else "PRE"

    def earliest(self, tick: int, kind: str, bank: int = 0) -> int:
        found = max(tick, *(since + wait for since, wait in self._rules(self.device, kind, bank)))
        if self.device.edge_ticks == 2 and kind not in ("PRE", "PREA"):
            found += found % 2
        return found

    def allows(self, tick: int, kind: str, bank: int = 0) -> bool:
        return self.earliest(tick, kind, bank) == tick

    def _rules(self, d: Device, kind: str, bank: int) -> Iterator[tuple[int, int]]:
        places = {
            Level.BANK: ("bank", bank),
            Level.GROUP: ("group", bank // d.banks_per_group),
            Level.CHANNEL: ("all", 0),
        }
        if kind not in _COLUMNS:
            yield self._last("ACT"), self.activate_ticks
            yield max(self._last("PRE"), self._last("PREA"), self._last("REF")), 1
        for one in CONSTRAINTS:
            if one.following != _COMMANDS[kind]:
                continue
            # A precharge of all banks waits for each of them.
            place = ("all", 0) if kind == "PREA" else places[one.level]
            for name, command in _COMMANDS.items():
                if command == one.preceding:
                    where = ("all", 0) if name == "PREA" else place
                    yield self._last(name, *where, nth=one.window), getattr(d, one.time)

    def _last(self, kind: str, scope: str = "all", place: int = 0, nth: int = 1) -> int:
        past = self._past[kind, scope, place]
        return past[-nth] if len(past) >= nth else _LONG_AGO

    def give(self, tick: int, kind: str, bank: int = 0, row: int = -1) -> None:
        for place in (("all", 0), ("group", bank // self.device.banks_per_group), ("bank", bank)):
            self._past[kind, *place].append(tick)
        if kind == "ACT":
            self.row[bank] = row
        elif kind == "PRE":
            self.row[bank] = -1
        elif kind == "PREA":
            self.row = [-1] * len(self.row)


class Controller(ABC):
    """What all have in common: a closed loop of requesters, taken in turn, and answers."""

    in_line = False  # whether who could not offer gets in line behind those who do

    def __init__(self, device: Device) -> None:
        self.device = device
        self.banks = Banks(device, device.activate_ticks)
        self.refreshing = False
        self.last_taken = -1
        self._answers: list[tuple[int, Asked]] = []

    def run(self, asked: Sequence[list[Asked]], depth: int) -> None:
        self.waiting, self.depth = [list(some) for some in asked], depth
        self.outstanding: list[list[Asked]] = [[] for _ in asked]
        self.line = list(range(len(asked)))
        tick = -1
        while any(self.waiting) or any(self.outstanding):
            tick += 1
            self.refreshing |= tick > 0 and tick % self.device.t_refi == 0
            for step in self.steps(tick):
                if step == "answer":
                    self._end(tick)
                elif self.last_taken < tick:
                    self._take(tick)

    def _end(self, tick: int) -> None:
        for answer in [a for a in self._answers if a[0] <= tick]:
            self._answers.remove(answer)
            answer[1].ended = tick
            for requester, some in enumerate(self.outstanding):
                if answer[1] in some:
                    was_full = len(some) == self.depth
                    some.remove(answer[1])
                    if was_full and self.in_line:
                        self.taken(requester)

    def _take(self, tick: int) -> None:
        for requester in self.line:
            waiting, outstanding = self.waiting[requester], self.outstanding[requester]
            if not waiting or len(outstanding) == self.depth or not self.accepts(tick, waiting[0]):
                continue
            one = waiting.pop(0)
            one.taken = self.last_taken = tick
            outstanding.append(one)
            self.taken(requester)
            return

    def taken(self, requester: int) -> None:
        """It is the turn of those behind a requester."""
        place = self.line.index(requester) + 1
        self.line = self.line[place:] + self.line[:place]

    @abstractmethod
    def steps(self, tick: int) -> Iterator[str]:
        """Do the work of a tick; in between, "answer" or take a request ("accept")."""

    @abstractmethod
    def accepts(self, tick: int, one: Asked) -> bool:
        """Take a request if there is room for it."""

    def answer(self, tick: int, one: Asked) -> None:
        self._answers.append((tick, one))

    def ready(self, tick: int, some: list[Asked], *kinds: str) -> list[Asked]:
        """Those whose next command is one of some kinds, and allowed; the oldest first."""
        needs = self.banks.needs
        found = [a for a in some if needs(a) in kinds]
        return [a for a in found if self.banks.allows(tick, needs(a), a.bank)]

    def close_and_refresh(self, tick: int) -> None:
        kind = "PREA" if max(self.banks.row) >= 0 else "REF"
        if self.banks.allows(tick, kind):
            self.banks.give(tick, kind)
            self.refreshing = kind != "REF"


class Ramulator(Controller):
    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.buffers: tuple[list[Asked], list[Asked]] = ([], [])
        self.active: list[Asked] = []
        self.writing = 0

    def _buffer(self) -> list[Asked]:
        reads, writes = (len(buffer) for buffer in self.buffers)
        if self.writing:
            self.writing = int(not (writes < 0.2 * 32 and reads))
        else:
            self.writing = int(writes > 0.8 * 32 or not reads)
        return self.buffers[self.writing]

    def steps(self, tick: int) -> Iterator[str]:
        self._commands(tick)
        yield "answer"
        yield "accept"

    def _commands(self, tick: int) -> None:
        source = self.active
        found = self.ready(tick, source, *_COLUMNS)
        if not found and not self.refreshing:
            source = self._buffer()
            found = self.ready(tick, source, *_COLUMNS)
        if found:
            one = min(found, key=lambda a: a.taken)
            self.banks.give(tick, self.banks.needs(one), one.bank)
            source.remove(one)
            self.answer(tick if one.write else tick + self.device.rl + self.device.bl, one)
        if self.refreshing:
            if not self.active:
                self.close_and_refresh(tick)
            return
        source = self._buffer()
        kept = {a.bank for a in self.active}
        for one in self.ready(tick, source, "ACT", "PRE"):
            kind = self.banks.needs(one)
            if kind == "PRE" and one.bank in kept:
                continue
            self.banks.give(tick, kind, one.bank, one.row)
            if kind == "ACT":
                source.remove(one)
                self.active.append(one)
            return

    def accepts(self, tick: int, one: Asked) -> bool:
        if any(one.meets(other) for other in self.buffers[1]):
            self.answer(tick + 1, one)
        elif len(self.buffers[one.write]) == 32:
            return False
        else:
            self.buffers[one.write].append(one)
        return True


class Dramsim3(Controller):
    def __init__(self, device: Device) -> None:
        super().__init__(replace(device, activate_ticks=1, edge_ticks=1, t_ppd=1))
        self.front: tuple[list[Asked], list[Asked]] = ([], [])
        self.queues: list[list[Asked]] = [[] for _ in range(device.banks)]
        self.served = [0] * device.banks
        self.turn = self.draining = 0
        self.read_first = False

    def _may(self, tick: int, queue: list[Asked], place: int) -> bool:
        one, kind = queue[place], self.banks.needs(queue[place])
        if not self.banks.allows(tick, kind, one.bank):
            return False
        if kind == "PRE":
            hits = any(other.row == self.banks.row[one.bank] for other in queue)
            return place == 0 and (not hits or self.served[one.bank] >= 4)
        older = queue[:place]
        return kind != "WR" or not any(a.meets(one) and not a.write for a in older)

    def _next(self, tick: int) -> Asked | None:
        for _ in self.queues:
            self.turn = (self.turn + 1) % len(self.queues)
            queue = self.queues[self.turn]
            for place, one in enumerate(queue):
                if self._may(tick, queue, place):
                    return one
        return None

    def _give(self, tick: int, one: Asked) -> None:
        kind = self.banks.needs(one)
        self.banks.give(tick, kind, one.bank, one.row)
        if kind in _COLUMNS:
            self.queues[one.bank].remove(one)
            self.served[one.bank] += 1
            if kind == "RD":
                self.answer(tick + self.device.rl + self.device.bl, one)
        else:
            self.served[one.bank] = 0

    def steps(self, tick: int) -> Iterator[str]:
        yield "accept"
        self._commands(tick)
        self._move()
        yield "answer"

    def _commands(self, tick: int) -> None:
        if self.refreshing:
            opened = [bank for bank, row in enumerate(self.banks.row) if row >= 0]
            able = [bank for bank in opened if self.banks.allows(tick, "PRE", bank)]
            if able:
                self.banks.give(tick, "PRE", able[0])
                self.served[able[0]] = 0
            elif not opened:
                self.close_and_refresh(tick)
        elif first := self._next(tick):
            column = self.banks.needs(first) in _COLUMNS
            self._give(tick, first)
            second = self._next(tick)
            if second and (self.banks.needs(second) in _COLUMNS) != column:
                self._give(tick, second)

    def _move(self) -> None:
        writes = len(self.front[1])
        full = writes == 32 or (writes > 8 and not any(self.queues))
        if not self.draining and not self.read_first and full:
            self.draining = writes
        self.read_first = False
        source = self.front[self.draining > 0]
        for one in source:
            queue = self.queues[one.bank]
            if len(queue) == 8:
                continue
            if self.draining:
                if any(a.meets(one) and not a.write for a in self.front[0] + queue):
                    self.draining = 0
                    self.read_first = any(a.meets(one) for a in self.front[0])
                    return
                self.draining -= 1
            source.remove(one)
            queue.append(one)
            return

    def accepts(self, tick: int, one: Asked) -> bool:
        if len(self.front[one.write]) == 32:
            return False
        if any(a.meets(one) and a.write for a in self.front[1] + self.queues[one.bank]):
            self.answer(tick + 1, one)
        else:
            self.front[one.write].append(one)
            if one.write:
                self.answer(tick + 1, one)
        return True


class Dramsys(Controller):
    in_line = True

    def __init__(self, device: Device) -> None:
        super().__init__(replace(device, activate_ticks=2, edge_ticks=1, t_ppd=1))
        self.queues: list[list[Asked]] = [[] for _ in range(device.banks)]
        self.last = self.queues[0]

    def steps(self, tick: int) -> Iterator[str]:
        yield "answer"
        yield "accept"
        if self.refreshing:
            self.close_and_refresh(tick)
            return
        while one := self._choose(tick):
            kind = self.banks.needs(one)
            self.banks.give(tick, kind, one.bank, one.row)
            if kind in _COLUMNS:
                self.queues[one.bank].remove(one)
                d = self.device
                self.answer(tick + (d.wl if one.write else d.rl) + d.bl, one)
                yield "accept"

    def _choose(self, tick: int) -> Asked | None:
        """The first of each bus's choices, if its time has come."""
        rows, columns = [], []
        for bank, queue in enumerate(self.queues):
            if queue:
                hits = [a for a in queue if a.row == self.banks.row[bank]]
                (columns if hits else rows).append((hits or queue)[0])
        both = [
            min(some, key=lambda a: (self._start(tick, a) + self._length(a), a.taken))
            for some in (rows, columns)
            if some
        ]
        one = min(both, key=lambda a: (self._start(tick, a), a.taken), default=None)
        return one if one and self._start(tick, one) == tick else None

    def _start(self, tick: int, one: Asked) -> int:
        return self.banks.earliest(tick, self.banks.needs(one), one.bank)

    def _length(self, one: Asked) -> int:
        return self.banks.activate_ticks if self.banks.needs(one) == "ACT" else 1

    def taken(self, requester: int) -> None:
        self.line.remove(requester)
        self.line.append(requester)

    def accepts(self, tick: int, one: Asked) -> bool:
        if len(self.last) == 8:
            return False
        self.last = self.queues[one.bank]
        self.last.append(one)
        return True


PLAIN_CONTROLLERS = {"ramulator": Ramulator, "dramsim3": Dramsim3, "dramsys": Dramsys}
