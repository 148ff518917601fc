"""The approximately-timed engine: every tile's engines as SimPy processes, every packet on its way.

The network is an `Interconnect` advanced in step with SimPy (`SimpyNetwork`).
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from inspect import GEN_CLOSED, getgeneratorstate
from typing import cast

from simpy import Event

from tlm.engines.at.credits import CreditMesh, Credits, UndisturbedCredits
from tlm.engines.at.relay import Relays
from tlm.engines.at.shared_tiles import SharedTiles
from tlm.engines.at.starts import Starts
from tlm.engines.at.times import RunTimes
from tlm.engines.at.units import GivenUnits
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect import packets
from tlm.interconnect.base import Interconnect
from tlm.interconnect.packets import TileSet
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.interconnect.zero_load import NocTiming
from tlm.lockstep import Moment, SteppedEnvironment, call_after, go_on
from tlm.offchip.system import OffChipMemory, SendPart
from tlm.program import Engine, Program
from tlm.program.operations import Reduce, Tile
from tlm.program.steps import (
    OffChipStep,
    ProgramDeadlockError,
    RelayStep,
    Step,
    TransferStep,
    Unit,
    WorkStep,
    held_steps,
)
from tlm.tiles.interconnect import TiledInterconnect, TileStarts
from tlm.tiles.jobs import Job
from tlm.tiles.timing import FREE, QueueTiming
from tlm.trace.recorder import EngineSpan, Recorder, TransferSpan

_Waits = Generator[Event, None, None]


def run_at(
    program: Program,
    timing: NocTiming,
    network: Interconnect,
    recorder: Recorder | None = None,
    queues: QueueTiming = FREE,
    offchip: OffChipMemory | None = None,
) -> Outcome:
    """Run a program packet by packet.

    Args:
        program: What to run.
        timing: Packet bound (``fifo_depth``) and latency of credits.
        network: A network of the program's size, with off-chip memory of `Edge.edge_rows` rows
            more, which have no tiles (`TiledInterconnect.edge_rows`); not yet used. With a
            `TiledInterconnect` work on the program's blocks takes as long as its words, and those
            of transfers, wait for each other at the tiles' banks; else as long as the operations
            say.
        recorder: Is told of every operation and transfer.
        queues: Costs of the tiles' sequencers and network interfaces; by default none.
        offchip: Off-chip memory; None: what it holds is in the tile when asked for.

    Raises:
        InputError: if an operation does not fit the program, its steps do not fit into memory, or
            the network has more or fewer rows without tiles.
        ProgramDeadlockError: if operations wait for ever, naming one of them.
    """
    return _Processes(program, timing, network, recorder, queues, offchip).outcome()


class _Processes:
    """The engines of all tiles, and what they share."""

    def __init__(
        self,
        program: Program,
        timing: NocTiming,
        network: Interconnect,
        recorder: Recorder | None,
        queues: QueueTiming,
        offchip: OffChipMemory | None,
    ) -> None:
        self._program = program
        self._recorder = recorder
        self._queues = queues
        self._env = SteppedEnvironment()
        self._network = SimpyNetwork(self._env, network, timing.fifo_depth)
        self._offchip = offchip
        self._units = GivenUnits(self._env, program)
        edge_rows = 0 if offchip is None else offchip.edge.edge_rows
        self._tiles = (
            SharedTiles(
                self._env,
                cast("TiledInterconnect", network),  # to ask whether it is one takes long
                self._network,
                program,
                edge_rows=edge_rows,
            )
            if isinstance(network, TileStarts)
            else None
        )
        if offchip is not None:
            offchip.attach(self._env, self._network, program, self._tiles)
        self._starts = Starts(
            self._env, take_turns=queues.starts_take_turns, behind_models=self._tiles is not None
        )
        self._timing = timing
        self._relays = Relays(self._env, self._network, program.cols)
        # By engines, of each tile the operation that began last.
        self._begun: list[dict[Tile, int]] = [{} for _ in Engine]
        self._times = RunTimes(self._env, program)

    def outcome(self) -> Outcome:
        """Run to the end."""
        queues: dict[tuple[Tile, Engine], list[Step]] = {}
        steps = held_steps(self._program)
        for step in steps:
            queues.setdefault((step.tile, step.engine), []).append(step)
        self._credits = self._made_credits(steps)
        engines = {
            key: self._transfers(key[0], steps)
            if key[1] is Engine.TRANSFER
            else self._engine(*key, steps)
            for key, steps in queues.items()
        }
        for waits in engines.values():
            go_on(waits)
        self._env.run()
        stuck = [key for key, waits in engines.items() if getgeneratorstate(waits) != GEN_CLOSED]
        if stuck:
            tile, engine = stuck[0]
            raise ProgramDeadlockError(
                f"operation {self._begun[engine][tile]} waits for ever at the {engine.name} engine "
                f"of tile {tile}; engines that wait for ever: {len(stuck)}"
            )
        return self._times.outcome()

    def _made_credits(self, steps: list[Step]) -> Credits:
        """Credits of all steps."""
        common = self._env, self._units, self._program, self._timing
        if not self._queues.credit_interval_cycles:
            return UndisturbedCredits(*common)
        return CreditMesh(*common, self._queues, steps)

    def _engine(self, tile: Tile, engine: Engine, steps: list[Step]) -> _Waits:
        """An engine does its work in order."""
        begun = self._begun[engine]
        for step in steps:
            assert isinstance(step, WorkStep)
            begun[tile] = step.number
            for unit in step.takes:
                if awaited := self._units.awaited(unit):
                    yield awaited
            yield from self._starts.turn(tile, engine)
            start = self._env.now
            self._times.begin_work(tile, engine)
            if jobs := self._tiles.jobs(step) if self._tiles is not None else ():
                yield from self._jobs(tile, engine, step, jobs)
            else:
                yield self._env.after(step.cycles)
                yield from self._credits.end(step)
            self._times.end_work(tile, engine, start)
            self._end(step, start)
            if len(self._credits.given_by(step)) > 1:
                yield from self._end_rest(step)

    def _jobs(self, tile: Tile, engine: Engine, step: Step, jobs: Sequence[Job]) -> _Waits:
        """The work of a step that starts now, in a tile whose banks count."""
        assert self._tiles is not None
        for place, job in enumerate(jobs):
            if place > 0:
                yield from self._starts.turn(tile, engine)
            yield self._tiles.begin(self._node(tile), job)
            yield from self._credits.end(step)

    def _transfers(self, tile: Tile, steps: list[Step]) -> _Waits:
        """An interface starts its transfers in order, a few before the first has left."""
        under_way: deque[Moment] = deque()  # each when one ends
        begun = self._begun[Engine.TRANSFER]
        for step in steps:
            assert isinstance(step, TransferStep)
            if len(under_way) == self._queues.outstanding:
                yield under_way.popleft()
            begun[tile] = step.number
            for unit in step.takes:
                if awaited := self._units.awaited(unit):
                    yield awaited
            if self._offchip is None and isinstance(step, OffChipStep):
                now = self._env.now
                self._end(step, now)
                self._arrive(step, now, tile, step.arrivals[tile], self._node(tile))
                continue
            for unit in step.slots:
                yield from self._credits.learn(unit, tile)
            yield from self._starts.turn(tile, Engine.TRANSFER)
            if self._tiles is None:
                self._send(step, self._env.now, self._message(step), under_way)
                if self._queues.outstanding > 1:
                    yield self._env.after(step.flits)
            else:
                yield from self._read(step, self._tiles, under_way)
            if len(self._credits.given_by(step)) > 1:
                while under_way:
                    yield under_way.popleft()
                yield from self._end_rest(step)
        yield from under_way

    def _read(self, step: TransferStep, tiles: SharedTiles, under_way: deque[Moment]) -> _Waits:
        """Start what a step sends, until the next step's words may be read."""
        node, start = self._node(step.tile), self._env.now
        messages = [self._message(step)]
        if self._offchip is not None and isinstance(step, OffChipStep):
            messages = self._offchip.messages(step, self._arrivals(step)[node])
        for message, words in zip(messages, tiles.transfers(step), strict=True):
            if message is not messages[0]:
                if len(under_way) == self._queues.outstanding:
                    yield under_way.popleft()
                yield from self._starts.turn(step.tile, Engine.TRANSFER)
            words_read = tiles.read(node, words)
            self._send(step, start, message, under_way, last=message is messages[-1])
            yield words_read

    def _send(
        self,
        step: TransferStep,
        start: int,
        message: SendPart,
        under_way: deque[Moment],
        *,
        last: bool = True,
    ) -> None:
        """Queue the packets of a transfer.

        It ends when the last packet has left, and those ``under_way`` have ended.
        """
        before, ended = [*under_way], Moment()
        under_way.append(ended)

        def ends() -> _Waits:
            yield from before
            yield from self._credits.end(step)
            if last:
                self._end(step, start)
            ended.happen()

        def left(_node: int) -> None:
            go_on(ends())

        launch_cycles = self._queues.launch_cycles if self._tiles is None else 0
        if launch_cycles:
            call_after(self._env, launch_cycles, partial(message, left))
        else:
            message(left)

    def _message(self, step: TransferStep) -> SendPart:
        """What sends all of a transfer that starts now."""
        node, tile = self._node(step.tile), step.tile
        if isinstance(step, OffChipStep):
            assert self._offchip is not None
            arrived = partial(self._arrive, step, self._env.now, tile, step.arrivals[tile])
            return partial(self._offchip.start, step, arrived)
        arrivals = self._arrivals(step)
        if isinstance(step, RelayStep):
            if self._tiles is not None:
                called = step.operation.called(step.number)
                raise InputError(
                    f"{called}: tiles whose banks count run relays as messages (tlm.program.relays)"
                )
            return partial(self._relays.start, step, [*arrivals.values()])
        goal = self._goal(step)
        return lambda left: self._network.send(node, goal, step.flits, left, arrivals)

    def _arrivals(self, step: TransferStep) -> dict[int, Callable[[int], object]]:
        """By node, what happens when a transfer has been written there that starts now."""
        start = self._env.now
        return {
            self._node(tile): partial(self._arrive, step, start, tile, units)
            for tile, units in step.arrivals.items()
        }

    def _end(self, step: Step, start: int) -> None:
        end = self._env.now
        self._times.ends[step.engine][step.tile] = end
        if self._recorder is not None:
            label = step.operation.label
            span = EngineSpan(step.number, label, step.engine, step.tile, start, end)
            self._recorder.operation(span)
        self._units.give(step.gives)
        self._credits.send(step, self._credits.given_by(step)[0])

    def _end_rest(self, step: Step) -> _Waits:
        """Give the credits that are too many for a step's own end, by waits behind it."""
        for credits in self._credits.given_by(step)[1:]:
            yield from self._starts.turn(step.tile, step.engine)
            yield self._env.after(self._queues.least_work_cycles)
            yield from self._credits.end(step)
            self._times.ends[step.engine][step.tile] = self._env.now
            self._credits.send(step, credits)

    def _goal(self, step: TransferStep) -> TileSet | packets.ReductionGoal:
        operation = step.operation
        if step.root is None or not isinstance(operation, Reduce):
            return step.members
        root = self._node(step.root)
        kind = packets.PacketKind[operation.operation.upper()]
        return packets.ReductionGoal(step.members, root, kind)

    def _node(self, tile: Tile) -> int:
        return tile[0] * self._program.cols + tile[1]

    def _arrive(
        self, step: TransferStep, start: int, tile: Tile, units: list[Unit], _node: int
    ) -> None:
        """A transfer has been written at a tile."""
        self._times.arrived[tile] = self._env.now
        if self._recorder is not None:
            way = step.number, step.operation.label, step.tile, tile, step.flits
            self._recorder.transfer(TransferSpan(*way, start, self._env.now))
        self._units.give(units)
