"""The loosely-timed engine: one local clock per tile, synchronised only where tiles communicate.

An operation is one max-plus update of arrays over the grid (`tlm.engines.lt.sweep`). The network is
its zero-load law plus the serialisation at interfaces and ejection ports. Multicasts that are under
way together contend for links and buffers, too. So do the transfers of sends that share links, and
all that moves beside blocks of off-chip memory (`tlm.engines.lt.contention`).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from tlm.engines.lt.batch import Batch
from tlm.engines.lt.behind import Behind
from tlm.engines.lt.compile import TAKEN, TOKENS, Builder, Built
from tlm.engines.lt.contention.held import Held, Taken, kept, may_meet, meet
from tlm.engines.lt.contention.multicast_graph import joins
from tlm.engines.lt.contention.multicasts import most_under_way
from tlm.engines.lt.contention.ordered import OrderedLinks
from tlm.engines.lt.contention.sends import MOST_TOGETHER
from tlm.engines.lt.cycle_tables import CycleTables
from tlm.engines.lt.form import Scan, scan
from tlm.engines.lt.load import OffChipTimes
from tlm.engines.lt.machine import Fixed, Machine, Note
from tlm.engines.lt.memory import check_memory
from tlm.engines.lt.script import Calls, Script, keep_script
from tlm.engines.lt.state import TileSlot
from tlm.engines.lt.step import Pools
from tlm.engines.lt.tokens import Places, TokenFaultError, Units
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Blocks, Edge
from tlm.program import Collective, Engine, OffChip, Operation, Program, Send, Work
from tlm.program.operations import COMPUTING
from tlm.tiles.timing import FREE, QueueTiming
from tlm.trace.loosely import note_operation
from tlm.trace.recorder import Recorder

_LIMIT_CYCLES = 2**30
"""Times are 32-bit; a run may take this long, and no operation longer."""
_OUTSTANDING = 2
"""Transfers of a tile under way, if they are launched (`tlm.engines.lt.port.next_flit`)."""
_POOLED_ENTRIES = 2**22
_MOST_SENDS = 2**12
_MOST_BEHIND = 2**8
"""Operations that wait until blocks have come."""
_MOST_PACKETS = 2**28
"""That come to tiles, of a run whose multicasts contend for links: half a minute's work."""

Progress = Callable[[int, int], object]
"""Told now and then how many operations are done, and of how many."""


def run_lt(
    program: Program,
    timing: NocTiming,
    *,
    threads: int = 1,
    recorder: Recorder | None = None,
    progress: Progress | None = None,
    memory_bytes: int | None = None,
    queues: QueueTiming = FREE,
    offchip: Edge | None = None,
) -> Outcome:
    """Run a program on one local clock per tile.

    The program is read twice: for its form, and to run it. A short one that has run so before is
    not read again.

    Args:
        program: What to run.
        timing: Measured constants of the router.
        threads: Threads that share the grid; the outcome is the same for any number.
        recorder: Is told of operations and transfers of its region. Operations are then done one
            by one, which takes longer and changes no time.
        progress: Hears of operations done, after each taken up and at the end, all at much the
            same pace; of a program that is not read again at the end alone.
        memory_bytes: The run may take so many; None: what the machine has to spare.
        queues: Costs of the tiles' network interfaces: of these launches count. Two transfers of
            a tile are under way, so that one is launched while another leaves.
        offchip: Channels of off-chip memory; None: what it holds is in the tile when asked for.

    Raises:
        InputError: if there is no thread, if channels are locked or other than two transfers of a
            tile are under way, which level lt does not know, the run would not fit into memory, or
            an operation does not fit the program, takes a token that no earlier operation gave,
            gives one beyond its depth, or ends after 2**30 cycles.
    """
    if threads < 1:
        raise InputError(f"threads is {threads}; allowed: 1 or more")
    if timing.locks:
        raise InputError(f"channel: found {timing.channel}; allowed at level lt: none")
    if queues.launch_cycles and queues.outstanding != _OUTSTANDING:
        raise InputError(
            f"outstanding: found {queues.outstanding}; allowed at level lt: {_OUTSTANDING}"
        )
    tell = progress or (lambda done, of: None)
    known: dict[Any, Script] = program.found.scripts
    key = timing, queues.launch_cycles, threads, offchip
    keeps = recorder is None and memory_bytes is None
    if keeps and (script := known.get(key)) is not None:
        outcome = script.run()
        tell(script.operations, script.operations)
        return outcome
    check_memory(program, memory_bytes)
    launch, form = queues.launch_cycles, scan(program)
    note = None if recorder is None else partial(note_operation, recorder, timing, launch)
    run = _LooseRun(program, timing, form, threads, launch, memory_bytes, offchip, note, keeps)
    for number, operation in enumerate(program.operations()):
        run.add(number, operation)
        tell(number + 1 - run.held, form.operations)
    outcome, script = run.end()
    tell(form.operations, form.operations)
    if script is not None:
        keep_script(known, key, script)
    return outcome


class _LooseRun:
    """A run: operations are taken up, held, and done in batches; ``note``, if any, is told."""

    def __init__(
        self,
        program: Program,
        timing: NocTiming,
        form: Scan,
        threads: int,
        launch_cycles: int,
        memory_bytes: int | None,
        offchip: Edge | None,
        note: Note | None,
        keeps: bool,
    ) -> None:
        self._launch_cycles, self._operations = launch_cycles, form.operations
        self._turned = form.turned
        rows, cols = (program.rows, program.cols)[:: -1 if form.turned else 1]
        both = len(form.computing) == len(COMPUTING)
        self._beside = {Engine.MATRIX: Engine.VECTOR, Engine.VECTOR: Engine.MATRIX} if both else {}
        self._units = Units(
            program.tokens, form.queued, TileSlot.FIRST_TOKEN if both else TileSlot.OVERLAP
        )
        first = self._units.initial
        # Of transfers this engine counts from their first flits, which leave no earlier.
        first[Engine.TRANSFER] = launch_cycles
        self._pools = Pools()
        self._builder = Builder(timing, self._pools, launch_cycles)
        self._tables = CycleTables(rows, cols, turned=form.turned)
        self._bound_cycles = 0
        # Of other routers, and where it would take minutes, only ports contend.
        followed = timing.cut_through and timing.link_interval_cycles == 1
        packets = form.multicasts + form.multicast_flits // timing.packet_bound
        followed &= packets <= _MOST_PACKETS
        meets = followed and form.multicasts > 0
        self._held = Held(most_under_way(rows, cols) if meets else 0)
        self._sends: list[Taken] = []
        self._together = 0
        self._behind = Behind(rows, cols, turned=form.turned)
        if offchip is not None:
            Blocks(program, offchip)  # refuses what the channels do not hold
        self._machine = Machine(
            Fixed(
                program=replace(program),  # without what was found: it would hold itself
                timing=timing,
                launch_cycles=launch_cycles,
                threads=threads,
                memory_bytes=memory_bytes,
                offchip=offchip,
                ordered=offchip is not None
                and followed
                and offchip.fills_links
                and OrderedLinks.takes(program),
                turned=form.turned,
                both=both,
                first=first,
                pools=self._pools,
                tables=self._tables,
                told_fault=self._units.fault,
            ),
            note,
        )
        self._offchip, self._ordered = self._machine.offchip, self._machine.ordered
        self._batch = Batch(self._machine.state.shape, threads)
        # Those of a long program are not kept, no more than its operations are.
        self._calls: Calls | None = [] if keeps and program.found.operations is not None else None

    def _do(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have the machine do something, and note it."""
        if self._calls is not None:
            self._calls.append((call, arguments))
        call(self._machine, *arguments)

    @property
    def held(self) -> int:
        """Operations taken up that wait to be done with others."""
        accesses = 0 if self._offchip is None else len(self._offchip)
        ordered = 0 if self._ordered is None else len(self._ordered)
        waiting = len(self._held) + len(self._sends) + ordered
        return waiting + self._behind.operations + accesses

    def add(self, number: int, operation: Operation) -> None:
        """Take an operation up; it is done with others."""
        if not isinstance(operation, Send | Work):
            self._do_sends()
        if self._ordered is not None and not self._sends and joins(operation):
            if not self._ordered.has_room(operation):
                self._do_ordered()
            self._ordered.append(Taken(number, operation, self._places(number, operation)))
            return
        self._do_ordered()
        if isinstance(operation, OffChip):
            if self._offchip is not None:
                self._access(number, operation, self._offchip)
                return
            operation = operation.at_once()
        if self._offchip is not None and self._waits(operation, self._offchip):
            self._do_sends()
            if len(self._behind) < _MOST_BEHIND:
                places = self._places(number, operation, settle=False)
                self._behind.append(Taken(number, operation, places))
                return
            self._do_accesses()
        self._take_up(Taken(number, operation, self._places(number, operation)))

    def _take_up(self, taken: Taken) -> None:
        """Do an operation in the tiles and the network, or hold it."""
        operation = taken.operation
        for _ in range(self._held.before(operation)):
            self._do_first()
        if self._held.holds(operation) and not self._sends:
            self._held.append(taken)
        elif isinstance(operation, Send) or (self._sends and isinstance(operation, Work)):
            self._together += len(operation.near)
            if self._together > MOST_TOGETHER or len(self._sends) == _MOST_SENDS:
                self._do_sends()
                self._together = len(operation.near)
            self._sends.append(kept(taken))  # it waits for those behind it
        else:
            self._do_alone(taken)

    def _do_first(self) -> None:
        """Do the first of the operations held, a multicast together with those that it meets."""
        taken = self._held.first()
        meets = may_meet(taken.operation)
        others = self._held.multicasts() if meets else []
        links = self._machine.links
        under_way = meets and links is not None and len(links) > 0
        if not under_way and not any(meet(taken.operation, each.operation) for each in others):
            self._do_alone(taken)
            return
        self._flush()
        for each in [taken, *others]:
            if links is None or each not in links:
                self._do(Machine.begin, each)
        self._do(Machine.end, taken)
        self._bound_cycles = _LIMIT_CYCLES  # look at the times themselves
        self._keep_in_range(taken.number, 0)

    def _do_alone(self, taken: Taken) -> None:
        """Take up an operation that meets no other in the network."""
        number, operation = taken.number, taken.operation
        self._make_room()
        built = self._build(operation.turned() if self._turned else operation, taken.places)
        self._keep_in_range(number, built.longest_cycles + self._launch_cycles)
        if not self._batch.takes(built):
            self._flush()
        self._batch.add(number, operation, built)
        if self._machine.note is not None:
            self._flush()
            self._machine.tell(number, operation)

    def _do_sends(self) -> None:
        """Take up sends and the work between them: over the links that they share, if they do."""
        waiting, self._sends, self._together = self._sends, [], 0
        operations, shared = [taken.operation for taken in waiting], self._machine.shared
        if waiting and shared.share(operations) and shared.follows(operations):
            self._do_together(waiting, ordered=False)
            return
        for taken in waiting:
            self._do_alone(taken)

    def _do_ordered(self) -> None:
        """Do what goes through the network in order of time with blocks of off-chip memory."""
        if self._ordered is not None and len(self._ordered):
            self._do_together(self._ordered.all(), ordered=True)

    def _do_together(self, together: list[Taken], *, ordered: bool) -> None:
        """Do transfers, and work between them, in the network."""
        self._flush()
        self._do(Machine.carry, together, ordered)
        for place, taken in enumerate(together):
            if isinstance(taken.operation, Work):
                self._do_alone(taken)
                continue
            self._flush()
            self._do(Machine.end_transfer, taken, place)
        self._bound_cycles = _LIMIT_CYCLES  # look at the times themselves
        self._keep_in_range(together[-1].number, 0)

    def _waits(self, operation: Operation, offchip: OffChipTimes) -> bool:
        """Whether an operation has to wait for blocks that are under way."""
        return len(self._behind) > 0 or offchip.brings(operation)

    def _access(self, number: int, operation: OffChip, offchip: OffChipTimes) -> None:
        """Move blocks from and to off-chip memory, beside those before that are under way."""
        free, busy = self._behind.split(operation)
        if not free or offchip.waits(operation) or self._needs_others(operation):
            self._do_accesses()
            free, busy = [operation], []
        self._do_taken()
        self._keep_in_range(number, offchip.longest_cycles(operation))
        settle = not self._behind and not busy
        places = self._places(number, operation, settle=settle)
        for part in free:
            self._do(Machine.ask, offchip.move(Taken(number, part, places)))
        for part in busy:
            self._behind.append(Taken(number, part, places))

    def _needs_others(self, operation: OffChip) -> bool:
        """Whether an operation needs what those that wait for blocks do first, or its places."""
        if not self._behind:
            return False
        return not self._units.has_room(operation) or self._behind.change(operation)

    def _do_accesses(self) -> None:
        """Have the channels serve all blocks that are under way, and do what waits for them."""
        offchip = self._offchip
        if offchip is None or not len(offchip):
            return
        while len(offchip):
            self._do(Machine.answer, offchip.requests())
            for taken in self._behind.all():
                if not isinstance(taken.operation, Send | Work):
                    self._do_sends()
                if isinstance(taken.operation, OffChip):
                    self._do_taken()
                    self._keep_in_range(taken.number, offchip.longest_cycles(taken.operation))
                    self._do(Machine.ask, offchip.move(taken))
                elif self._waits(taken.operation, offchip):
                    self._do_sends()
                    self._behind.append(taken)
                else:
                    self._take_up(taken)
        self._units.settle()

    def end(self) -> tuple[Outcome, Script | None]:
        """The times after the last operation, and the script of a short program."""
        self._do_all()
        busy_cycles = self._tables.busy_cycles()
        outcome, script = self._machine.outcome(busy_cycles), None
        if self._calls is not None:
            script = Script(self._operations, self._machine.fixed, self._calls, busy_cycles)
        return outcome, script

    def _places(self, number: int, operation: Operation, *, settle: bool = True) -> Places:
        """Where the units lie that an operation takes and gives, by field.

        ``settle``: what it takes may be given to by the next one.
        """
        places: Places = {}
        units = self._units
        for field in TOKENS:
            names = getattr(operation, field)
            try:
                places[field] = units.take(names) if field in TAKEN else units.give(names)
            except TokenFaultError as fault:
                self._do_all()
                raise InputError(f"{operation.called(number)} {fault}") from None
        if settle:
            units.settle()
        return places

    def _build(self, operation: Operation, places: Places) -> Built:
        if isinstance(operation, Work):
            table, longest = self._tables.put(operation)
            beside = self._beside.get(operation.engine, -1)
            return self._builder.work(operation, places, longest, table, beside)
        assert isinstance(operation, Send | Collective)
        return self._builder.transfer(operation, places)

    def _make_room(self) -> None:
        """Forget what operations share when it has become too much."""
        if self._tables.full:
            self._flush()
            self._tables.clear()
            self._calls = None  # these tables mean nothing any more
        if self._pools.entries > _POOLED_ENTRIES:
            self._flush()
            self._pools.clear()
            self._builder.forget()
            self._calls = None

    def _do_all(self) -> None:
        """Do all operations taken up."""
        self._do_accesses()
        self._do_taken()

    def _do_taken(self) -> None:
        """Do all but blocks of off-chip memory that are under way."""
        while len(self._held):
            self._do_first()
        self._do_ordered()
        self._do_sends()
        self._flush()

    def _flush(self) -> None:
        """Do the operations of a batch."""
        batch = self._batch.end()
        if batch is not None:
            self._do(Machine.sweep, batch)

    def _keep_in_range(self, number: int, longest: int) -> None:
        """No time exceeds the sum of the operations' longest; look closer when that is large."""
        self._bound_cycles += longest
        if self._bound_cycles >= _LIMIT_CYCLES:
            self._flush()
            self._bound_cycles = self._machine.latest_cycle + longest
            if self._bound_cycles >= _LIMIT_CYCLES:
                raise InputError(f"operation {number} ends after {_LIMIT_CYCLES} cycles")
